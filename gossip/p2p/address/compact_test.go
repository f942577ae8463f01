package address

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// anyAddr draws an address in the form in which libp2p prints it.
func anyAddr(t *rapid.T) string {
	id := func() string {
		return "/p2p/" + PeerText(wire.PeerID{rapid.ByteRange(1, 3).Draw(t, "id")})
	}
	host := rapid.SampledFrom([]string{"/ip4/192.0.2.1", "/ip6/2001:db8::1", "/ip6/::ffff:c000:201", "/dns/example.org", "/ip4/10.0.0.7"}).Draw(t, "host")
	port := rapid.IntRange(0, 65535).Draw(t, "port")
	place := host + fmt.Sprintf(rapid.SampledFrom([]string{"/tcp/%d", "/tcp/%d", "/udp/%d/quic-v1", "/tcp/%d/ws"}).Draw(t, "transport"), port)
	if rapid.Bool().Draw(t, "relayed") {
		place += id() + "/p2p-circuit"
	}
	return place + id()
}

// Addresses come out of the compact form as they went in, and it is short.
func TestCompactRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		addrs := rapid.SliceOfN(rapid.Custom(anyAddr), 0, 8).Draw(t, "addrs")
		for i, a := range addrs {
			p, err := takeApart(a)
			if err != nil {
				t.Fatal(err)
			}
			addrs[i] = p.String() // some have several spellings
		}
		b, err := AppendCompact([]byte("x"), addrs)
		if err != nil {
			t.Fatal(err)
		}
		back, rest, err := Compact(append(b[1:], "rest"...), len(addrs))
		if err != nil || !slices.Equal(back, addrs) || string(rest) != "rest" {
			t.Fatalf("%q came back as %q and %q, %v", addrs, back, rest, err)
		}
	})
	id := "/p2p/" + PeerText(someone())
	one, err := AppendCompact(nil, []string{"/ip4/192.0.2.1/tcp/4001" + id})
	if err != nil || len(one) != 1+6+32 {
		t.Errorf("%d bytes, %v", len(one), err)
	}
	two, err := AppendCompact(nil, []string{"/ip4/192.0.2.1/tcp/4001" + id, "/ip6/2001:db8::1/tcp/4001" + id})
	if err != nil || len(two) != len(one)+1+18 {
		t.Errorf("%d bytes, %v", len(two), err)
	}
	if _, err := AppendCompact(nil, []string{"nowhere"}); err == nil {
		t.Error("no address is taken")
	}
}

func FuzzCompact(f *testing.F) {
	id := "/p2p/" + PeerText(someone())
	b, _ := AppendCompact(nil, []string{"/ip4/192.0.2.1/tcp/4001" + id, "/ip6/2001:db8::1/udp/4001/quic-v1" + id + "/p2p-circuit" + id})
	f.Add(b, uint8(2))
	f.Fuzz(func(t *testing.T, b []byte, n uint8) {
		addrs, _, err := Compact(b, int(n%33))
		if err != nil {
			return
		}
		again, err := AppendCompact(nil, addrs)
		if err != nil {
			t.Fatal(addrs, err)
		}
		if back, _, err := Compact(again, len(addrs)); err != nil || !slices.Equal(back, addrs) {
			t.Errorf("%q came back as %q, %v", addrs, back, err)
		}
	})
}
