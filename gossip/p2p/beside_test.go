package p2p

import (
	"testing"

	ma "github.com/multiformats/go-multiaddr"
)

// Beside a connection of the swarm there may be another one for a question, over each
// transport.
func TestBesideTheSwarm(t *testing.T) {
	for _, listen := range []string{"/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/tcp/0/ws", "/ip4/127.0.0.1/udp/0/quic-v1"} {
		c := newPerson(2).config()
		c.Listen = []string{listen}
		a, b := start(t, newPerson(1).config()), start(t, c)
		join(t, a, b)
		at := ma.StringCast(b.Listening()[0])
		seen, err := a.seenBy(t.Context(), b.pid, at)
		if err != nil || !has(seen, ma.P_IP4) {
			t.Errorf("%s: seen at %v, %v", at, seen, err)
		}
	}
}
