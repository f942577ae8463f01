package p2p

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/p2p/address"
)

const listenExample = "/ip4/0.0.0.0/tcp/4001, /ip4/0.0.0.0/udp/4001/quic-v1 or /ip4/0.0.0.0/tcp/443/ws"

// CheckListen refuses addresses that no host can listen on, whatever is free.
func CheckListen(addrs []string) error {
	_, err := parseListen(addrs)
	return err
}

// parseListen checks listen addresses: IP, then TCP, WebSocket or QUIC, nothing else.
func parseListen(addrs []string) ([]ma.Multiaddr, error) {
	parsed := make([]ma.Multiaddr, 0, len(addrs))
	for _, text := range addrs {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("listen address %q: %w; want something like %s", text, err, listenExample)
		}
		if !listenable(a) {
			return nil, fmt.Errorf("listen address %q: not an IP address with a port of TCP, QUIC or WebSocket; want something like %s", text, listenExample)
		}
		parsed = append(parsed, a)
	}
	return parsed, nil
}

func listenable(a ma.Multiaddr) bool {
	var codes []int
	for _, p := range a.Protocols() {
		codes = append(codes, p.Code)
	}
	if len(codes) == 0 || codes[0] != ma.P_IP4 && codes[0] != ma.P_IP6 {
		return false
	}
	switch len(codes) {
	case 2:
		return codes[1] == ma.P_TCP
	case 3:
		return codes[1] == ma.P_UDP && codes[2] == ma.P_QUIC_V1 || codes[1] == ma.P_TCP && codes[2] == ma.P_WS
	}
	return false
}

// sharesPort reports whether TCP and WebSocket are to listen on one port, of which the first
// bytes of a connection then say what it is.
func sharesPort(addrs []string) bool {
	return slices.ContainsFunc(addrs, func(a string) bool {
		bare, ws := strings.CutSuffix(a, "/ws")
		return ws && slices.Contains(addrs, bare)
	})
}

// listen opens every address or fails: libp2p itself is content with one.
func (h *Host) listen(addrs []ma.Multiaddr) error {
	for _, a := range addrs {
		if err := h.portFree(a); err != nil {
			return listenError(a, err)
		}
	}
	for _, a := range addrs {
		if err := h.host.Network().Listen(a); err != nil {
			return listenError(a, err)
		}
	}
	return nil
}

func listenError(a ma.Multiaddr, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: port in use, perhaps by another node; stop that one, choose another port, or use port 0 for any free one: %w", a, err)
	}
	return fmt.Errorf("listen on %s: %w: use an address of this machine, or 0.0.0.0 for all of them, and a port that this user may have", a, err)
}

// DefaultPort is where nodes on the internet listen, so that a port which somebody has
// forwarded stays right. It is registered for nothing else.
const DefaultPort = 27182

// maxPort is the highest port that there is.
const maxPort = 1<<16 - 1

// listenAnywhere listens on the usual port, or, where another program has that, on any port.
func (h *Host) listenAnywhere() error {
	port := h.cfg.Port
	err := h.listen(anywhere("0.0.0.0", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		h.log.Info("the usual port is taken, listens on another", "port", port)
		port = 0
		err = h.listen(anywhere("0.0.0.0", port))
	}
	if err != nil {
		return err
	}
	if err := h.listen(anywhere("::", port)); err != nil {
		h.log.Debug("no IPv6 here", "err", err)
	}
	return nil
}

// listenWeb listens where browsers find the web: some networks let nothing else out.
func (h *Host) listenWeb() error {
	err := h.listen(onWebPort("ip4", "0.0.0.0"))
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%w; run it as root, or let the program have low ports: setcap cap_net_bind_service=+ep PROGRAM", err)
	case err != nil:
		return err
	}
	if err := h.listen(onWebPort("ip6", "::")); err != nil {
		h.log.Debug("no IPv6 here", "err", err)
	}
	return nil
}

// onWebPort is WebSocket and TCP there, of which the first bytes of a connection say what it is.
func onWebPort(kind, ip string) (addrs []ma.Multiaddr) {
	for _, transport := range []string{"/ws", ""} {
		addrs = append(addrs, ma.StringCast(fmt.Sprintf("/%s/%s/tcp/%s%s", kind, ip, address.WebPort, transport)))
	}
	return addrs
}

// anywhere is TCP and QUIC on a port of every interface.
func anywhere(ip string, port int) (addrs []ma.Multiaddr) {
	kind := "ip4"
	if strings.Contains(ip, ":") {
		kind = "ip6"
	}
	for _, transport := range []string{"tcp/%d", "udp/%d/quic-v1"} {
		addrs = append(addrs, ma.StringCast(fmt.Sprintf("/%s/%s/"+transport, kind, ip, port)))
	}
	return addrs
}

// portFree fails when another process listens on a's port. libp2p listens on
// TCP ports with SO_REUSEPORT to dial from the same port. So two nodes of one
// user would share it unnoticed, and each would get half of the connections.
// Its own error for UDP is a text.
func portFree(a ma.Multiaddr) error {
	socket, _ := ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_WS })
	nw, host, err := manet.DialArgs(socket)
	if err != nil {
		return err
	}
	var probe io.Closer
	if strings.HasPrefix(nw, "udp") {
		probe, err = net.ListenPacket(nw, host)
	} else {
		probe, err = net.Listen(nw, host)
	}
	if err != nil {
		return err
	}
	return probe.Close()
}
