package preflight

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"

	"atoll/node/inspect"
)

// Packets is how a way stands to large ones.
type Packets struct {
	Addr   string // of the peer
	Lost   int    // bytes of an IPv4 packet that is lost on the way, one way or both; 0 = not known to be
	Passes int    // bytes of one that passes both ways, where some are lost
	Slow   bool   // large ones did not come back in time, and nothing shows that their size is why
}

// headers are what an IPv4 packet has beside a segment of TCP.
const headers = 40

// headers6 is the same of an IPv6 packet.
const headers6 = 60

// packets says whether large ones pass.
func (f Facts) packets() (inspect.Finding, bool) {
	switch p := f.Packets; {
	case p == nil:
		return nothing()
	case p.Slow:
		return bad("packets", fmt.Sprintf("%s does not send back in time what fills some large packets, and nothing shows that their size is why: the way to it is too slow, or it is busy", shown(p.Addr)), "ask again while the link of this machine and the peer's carry less")
	case p.Lost == 0:
		return good("packets", "large packets pass, both ways", "")
	case strings.HasPrefix(p.Addr, "/ip6/"):
		return bad("packets", fmt.Sprintf("the way to %s loses packets of %d bytes without a word, and those of %d pass", shown(p.Addr), p.Lost+headers6-headers, p.Passes+headers6-headers),
			"every way of IPv6 has to carry packets of 1280 bytes, so no MTU below that helps: have the VPN, tunnel or router between carry them, or ask a member for a link with an address of IPv4")
	default:
		return bad("packets", fmt.Sprintf("the way to %s loses packets of %d bytes without a word, and those of %d pass", shown(p.Addr), p.Lost, p.Passes), lowerMTU(p.Addr, p.Passes))
	}
}

// lowerMTU is what to do on a way that loses large packets.
func lowerMTU(addr string, bytes int) string {
	name, command := device(addr), ""
	switch runtime.GOOS {
	case "linux":
		command = fmt.Sprintf(": `sudo ip link set dev %s mtu %d`", name, bytes)
	case "darwin":
		command = fmt.Sprintf(": `sudo ifconfig %s mtu %d`", name, bytes)
	case "windows":
		command = fmt.Sprintf(": `netsh interface ipv4 set subinterface \"%s\" mtu=%d`", name, bytes)
	}
	return fmt.Sprintf("lower the MTU of this machine's device %s to %d bytes%s, or that of the VPN or router between; below 1280 it has no IPv6", name, bytes, command)
}

// device is the name of the network device that leads to an address, as far as can be told.
func device(addr string) string {
	at, known := machineOf([]string{addr})
	way, err := net.Dial("udp", netip.AddrPortFrom(at, 9).String()) // sends nothing
	if !known || err != nil {
		return "DEVICE"
	}
	defer way.Close()
	own := way.LocalAddr().(*net.UDPAddr).IP
	interfaces, _ := net.Interfaces() // without them the name is missing
	for _, i := range interfaces {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, is := a.(*net.IPNet); is && n.IP.Equal(own) {
				return i.Name
			}
		}
	}
	return "DEVICE"
}
