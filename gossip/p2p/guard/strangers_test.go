package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
)

// patience is what a handshake may take.
const patience = 10 * time.Second

// room has bounds on strangers without a network. A peer's first byte names its address.
type room struct {
	*Strangers
	t        *testing.T
	dropped  []peer.ID
	accepted map[peer.ID]bool
}

func newRoom(t *testing.T) *room {
	inner, err := rcmgr.NewResourceManager(rcmgr.NewFixedLimiter(rcmgr.InfiniteLimits), rcmgr.WithMetricsDisabled())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	r := &room{t: t, accepted: map[peer.ID]bool{}}
	r.Strangers = NewStrangers(inner, Peers{
		Accepted: func(p peer.ID) bool { return r.accepted[p] },
		Origin:   func(p peer.ID) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, p[0], p[1]}), 32) },
		Drop:     func(p peer.ID) { r.dropped = append(r.dropped, p) },
	}, "free", patience)
	return r
}

// at is a peer of an address.
func at(address, n int) peer.ID {
	return peer.ID([]byte{byte(address >> 8), byte(address), byte(n >> 8), byte(n)})
}

// names are peers as at was told of them.
func names(peers []peer.ID) (names []string) {
	for _, p := range peers {
		names = append(names, fmt.Sprintf("%d/%d", int(p[0])<<8|int(p[1]), int(p[2])<<8|int(p[3])))
	}
	return names
}

// open opens a stream, and reports whether it fits.
func (r *room) open(p peer.ID) (network.StreamManagementScope, bool) {
	r.t.Helper()
	s, err := r.OpenStream(p, network.DirInbound)
	if err != nil && !errors.Is(err, network.ErrResourceLimitExceeded) {
		r.t.Fatal(err)
	}
	return s, err == nil
}

// opens opens n streams that fit.
func (r *room) opens(p peer.ID, n int) (scopes []network.StreamManagementScope) {
	r.t.Helper()
	for i := range n {
		s, fits := r.open(p)
		if !fits {
			r.t.Fatalf("stream %d of %v does not fit", i, names([]peer.ID{p}))
		}
		scopes = append(scopes, s)
	}
	return scopes
}

// drops checks who lost its connections since it was called last.
func (r *room) drops(want ...peer.ID) {
	r.t.Helper()
	if !slices.Equal(r.dropped, want) {
		r.t.Errorf("dropped %v, want %v", names(r.dropped), names(want))
	}
	r.dropped = nil
}

// A stranger has few streams. Who tries more again and again loses its connections, and who does
// so now and then does not.
func TestStreamsOfOneStranger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		p := at(1, 1)
		ends := r.opens(p, StrangerStreams)
		for range 10 {
			for range strangerRefused / 2 {
				if _, fits := r.open(p); fits {
					t.Fatal("one too many fits")
				}
			}
			time.Sleep(patience)
		}
		r.drops()
		for range strangerRefused {
			r.open(p)
		}
		r.drops()
		r.open(p)
		r.drops(p)
		for _, s := range ends { // when its connections end
			s.Done()
			s.Done()
		}
		if r.count != 0 || len(r.known) != 0 || len(r.from) != 0 {
			t.Errorf("%d streams, %d strangers of %d addresses are left", r.count, len(r.known), len(r.from))
		}
	})
}

// An address has a bound. Within it the greediest makes room for who has less, and who is modest for nobody; other addresses
// have nothing to do with it.
func TestStreamsOfOneAddress(t *testing.T) {
	r := newRoom(t)
	r.opens(at(2, 1), StrangerStreams)
	for left := StrangersAddress; left > 0; left -= StrangerStreams {
		r.opens(at(1, left), min(left, StrangerStreams))
	}
	if _, fits := r.open(at(1, StrangersAddress)); fits {
		t.Error("one too many fits")
	}
	r.drops()
	r.opens(at(1, 1000), greedyStreams-1)
	r.drops(at(1, StrangersAddress)) // of those that have as much the one that came first
	for n := range StrangersAddress - greedyStreams + 1 {
		r.opens(at(1, 2000+n), 1)
	}
	if want := StrangersAddress/StrangerStreams - 1; len(r.dropped) != want {
		t.Errorf("%d greedy ones are dropped, want %d", len(r.dropped), want)
	}
	r.dropped = nil
	if _, fits := r.open(at(1, 9000)); fits {
		t.Error("fits where nobody is greedy")
	}
	r.drops()
	r.opens(at(2, 2), 1)
}

// A herd of joiners from everywhere finds room for all connections that there may be. Greedy ones make room, first those of
// the address that has the most, and not for an address that has more.
func TestRoomForAHerd(t *testing.T) {
	r := newRoom(t)
	for n := range ConnsSystem {
		r.opens(at(n, 0), greedyStreams-1)
	}
	r.drops()
	if _, fits := r.open(at(1000, 0)); fits {
		t.Error("one too many fits")
	}
	r.accepted[at(7, 0)] = true
	r.Admit(at(7, 0))
	r.opens(at(1000, 0), greedyStreams-1)
	r.opens(at(7, 0), 2*StrangerStreams) // those of who is accepted do not count
	r.drops()

	r = newRoom(t)
	for n := range StrangersStreams / greedyStreams {
		r.opens(at(n/10, n%10), greedyStreams) // forty of each address
	}
	r.opens(at(900, 0), greedyStreams)
	r.drops(at(0, 0))
	r.opens(at(901, 0), 1)
	r.drops(at(1, 0)) // the address of the one before has fewer by now
	r.opens(at(901, 0), StrangerStreams-1)
	r.drops(at(2, 0), at(3, 0), at(4, 0))
	r.opens(at(902, 0), 1)
	r.drops(at(5, 0)) // not who has the most itself, at an address of few
	for n := 0; r.count < StrangersStreams; n++ {
		r.opens(at(910+n, 0), 1)
	}
	if _, fits := r.open(at(30, 5)); fits {
		t.Error("others make room for an address that has as much")
	}
	r.drops()
	r.opens(at(30, 100), 1)
	r.drops(at(30, 0))
}

// Askers of the DHT never shake hands, and take no slot of joiners. Streams of other protocols do.
func TestAskersTakeNoSlot(t *testing.T) {
	r := newRoom(t)
	for id, want := range map[protocol.ID]int{"free": 0, "another": 1} {
		for _, s := range r.opens(at(1, 1), 1) {
			if err := s.SetProtocol(id); err != nil {
				t.Fatal(err)
			}
			if r.count != want {
				t.Errorf("%s: %d slots are taken, want %d", id, r.count, want)
			}
			s.Done()
		}
		if r.count != 0 || len(r.known) != 0 {
			t.Errorf("%s: %d slots are taken at the end", id, r.count)
		}
	}
}

// Who is accepted while its stream is counted is no stranger.
func TestAcceptedMeanwhile(t *testing.T) {
	r := newRoom(t)
	asked := 0
	r.Accepted = func(p peer.ID) bool {
		if asked++; asked == 1 {
			r.Admit(p) // right after this
			return false
		}
		return true
	}
	if r.opens(at(1, 1), 1); r.count != 0 || len(r.known) != 0 {
		t.Errorf("%d streams of strangers", r.count)
	}
}

// Who was refused and is gone is forgotten.
func TestStrangersAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(t)
		for n := range ConnsAddress {
			r.opens(at(1, n), greedyStreams-1)
		}
		for range 3 {
			for n := range 100 {
				if _, fits := r.open(at(1, 1000+n)); fits {
					t.Fatal("one too many fits")
				}
			}
			time.Sleep(patience)
		}
		r.open(at(1, 2000))
		if n := len(r.known); n != ConnsAddress+1 {
			t.Errorf("%d strangers are known, want %d", n, ConnsAddress+1)
		}
	})
}
