package p2p

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

const listenExample = "/ip4/0.0.0.0/tcp/4001 or /ip4/0.0.0.0/udp/4001/quic-v1"

// CheckListen refuses addresses that no host can listen on, whatever is free.
func CheckListen(addrs []string) error {
	_, err := parseListen(addrs)
	return err
}

// parseListen checks listen addresses: IP, then TCP or QUIC, nothing else.
func parseListen(addrs []string) ([]ma.Multiaddr, error) {
	parsed := make([]ma.Multiaddr, 0, len(addrs))
	for _, text := range addrs {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, fmt.Errorf("listen address %q: %w; want something like %s", text, err, listenExample)
		}
		if !listenable(a) {
			return nil, fmt.Errorf("listen address %q: not an IP address with a TCP or QUIC port; want something like %s", text, listenExample)
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
		return codes[1] == ma.P_UDP && codes[2] == ma.P_QUIC_V1
	}
	return false
}

// listen opens every address or fails: libp2p itself is content with one.
func (h *Host) listen(addrs []ma.Multiaddr) error {
	for _, a := range addrs {
		err := h.portFree(a)
		if err == nil {
			err = h.host.Network().Listen(a)
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen on %s: port in use, perhaps by another node; stop that one, choose another port, or use port 0 for any free one: %w", a, err)
		}
		if err != nil {
			return fmt.Errorf("listen on %s: %w", a, err)
		}
	}
	return nil
}

// portFree fails when another process listens on a's port. libp2p listens on
// TCP ports with SO_REUSEPORT to dial from the same port. So two nodes of one
// user would share it unnoticed, and each would get half of the connections.
// Its own error for UDP is a text.
func portFree(a ma.Multiaddr) error {
	nw, host, err := manet.DialArgs(a)
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
