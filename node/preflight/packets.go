package preflight

import (
	"fmt"
	"net"
	"net/netip"
	"runtime"

	"atoll/node/inspect"
)

// Packets is how a way stands to large ones.
type Packets struct {
	Addr   string // of the peer
	Lost   int    // bytes of an IPv4 packet that is lost on the way, one way or both; 0 = those of atoll pass
	Passes int    // bytes of one that passes both ways; 0 = not known
}

// headers are what an IPv4 packet has beside a segment of TCP.
const headers = 40

// packets says whether large ones pass.
func (f Facts) packets() (inspect.Finding, bool) {
	switch p := f.Packets; {
	case p == nil:
		return nothing()
	case p.Lost == 0:
		return good("packets", "large packets pass, both ways", "")
	case p.Passes == 0:
		return bad("packets", fmt.Sprintf("the way to %s loses large packets without a word, of %d bytes and above; how large they may be is not known", shown(p.Addr), p.Lost), lowerMTU(p.Addr, "1000"))
	default:
		return bad("packets", fmt.Sprintf("the way to %s loses packets of %d bytes without a word, and those of %d pass", shown(p.Addr), p.Lost, p.Passes), lowerMTU(p.Addr, fmt.Sprint(p.Passes)))
	}
}

// lowerMTU is what to do on a way that loses large packets.
func lowerMTU(addr, bytes string) string {
	name, command := device(addr), ""
	switch runtime.GOOS {
	case "linux":
		command = fmt.Sprintf(": `sudo ip link set dev %s mtu %s`", name, bytes)
	case "darwin":
		command = fmt.Sprintf(": `sudo ifconfig %s mtu %s`", name, bytes)
	case "windows":
		command = fmt.Sprintf(": `netsh interface ipv4 set subinterface \"%s\" mtu=%s`", name, bytes)
	}
	return fmt.Sprintf("lower the MTU of this machine's device %s to %s bytes%s, or that of the VPN or router between; below 1280 it has no IPv6", name, bytes, command)
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
