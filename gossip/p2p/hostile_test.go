package p2p

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/hello"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire"
)

// connect makes a connection from a to b without a handshake: a's own is
// disabled by the caller.
func connect(t *testing.T, a, b *Host) {
	t.Helper()
	if err := a.host.Connect(t.Context(), peer.AddrInfo{ID: b.host.ID(), Addrs: b.host.Addrs()}); err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, a, b *Host, id protocol.ID) network.Stream {
	t.Helper()
	s, err := a.host.NewStream(t.Context(), b.host.ID(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stranger is a host whose handshake the test speaks by hand.
func (w *world) stranger(seed byte, speak func(s network.Stream)) *Host {
	p := newPerson(seed)
	h := w.host(p.config())
	h.host.SetStreamHandler(helloProtocol, speak)
	return h
}

func TestGarbageInHandshake(t *testing.T) {
	other := newPerson(9).sign().Encode()
	flipped := newPerson(1).sign().Encode()
	flipped[10] ^= 1
	for name, say := range map[string]func(s network.Stream){
		"noise":           func(s network.Stream) { wire.WriteFrame(s, []byte("noise"), 100) },
		"empty":           func(s network.Stream) { wire.WriteFrame(s, nil, 100) },
		"oversize":        func(s network.Stream) { s.Write([]byte{255, 255, 255, 255}) },
		"another's":       func(s network.Stream) { wire.WriteFrame(s, other, maxHello) },
		"flipped bit":     func(s network.Stream) { wire.WriteFrame(s, flipped, maxHello) },
		"long verdict":    func(s network.Stream) { sayWell(s); s.Write([]byte{0, 1, 0, 0}) },
		"refusing":        func(s network.Stream) { sayWell(s); wire.WriteFrame(s, []byte("no\x1b[31m\n"), 100) },
		"half a frame":    func(s network.Stream) { s.Write([]byte{0, 0, 0, 9, 1}); s.CloseWrite() },
		"nothing, closed": func(s network.Stream) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, rate, delay, func(t *testing.T, w *world) { testGarbageInHandshake(t, w, say) })
		})
	}
}

func sayWell(s network.Stream) { wire.WriteFrame(s, newPerson(1).sign().Encode(), maxHello) }

func testGarbageInHandshake(t *testing.T, w *world, say func(s network.Stream)) {
	a := w.stranger(1, func(s network.Stream) {
		say(s)
		io.Copy(io.Discard, s)
		s.Close()
	})
	b := w.host(newPerson(2).config())
	_, err := b.Dial(t.Context(), a.Addrs()[0])
	if err == nil {
		t.Fatal("dial succeeded")
	}
	if bytes.ContainsAny([]byte(err.Error()), "\x1b\n") {
		t.Errorf("control characters in %q", err)
	}
	time.Sleep(time.Second)
	if n := len(b.host.Network().Conns()); n != 0 {
		t.Errorf("%d connections left", n)
	}
	if events := drain(b); count[PeerUp](events) != 0 || isRefusal(err) != (count[Refused](events) == 1) {
		t.Errorf("dial: %v, events %v", err, events)
	}
}

// A peer that passed the handshake and then sends garbage loses the stream; the
// host goes on to serve others.
func TestGarbageOnOtherProtocols(t *testing.T) {
	for id, garbage := range map[protocol.ID][]byte{
		rpcProtocol:      {255, 255, 255, 255, 1, 2, 3},
		"/meshsub/1.2.0": bytes.Repeat([]byte{255, 3, 7}, 100),
	} {
		t.Run(string(id), func(t *testing.T) {
			inWorld(t, rate, delay, func(t *testing.T, w *world) {
				hosts := w.hosts(3)
				bad, b, c := hosts[0], hosts[1], hosts[2]
				b.Handle(echo)
				join(t, bad, b)
				join(t, c, b)
				s := open(t, bad, b, id)
				s.Write(garbage)
				if got, err := io.ReadAll(s); err == nil {
					t.Errorf("read %q, want a reset", got)
				}
				if _, err := c.Call(t.Context(), b.ID(), []byte("hi"), 10); err != nil {
					t.Error(err)
				}
				if err := c.Publish([]byte("still here")); err != nil {
					t.Error(err)
				}
				next[Message](t, b)
			})
		})
	}
}

func TestRenewalWithGarbageDisconnects(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		join(t, hosts[0], hosts[1])
		s := open(t, hosts[0], hosts[1], helloProtocol)
		wire.WriteFrame(s, []byte("noise"), 100)
		if r := next[Refused](t, hosts[1]); !errors.Is(r.Reason, ErrHandshake) {
			t.Errorf("refused: %v", r.Reason)
		}
		next[PeerDown](t, hosts[1])
		s.Reset()
	})
}

func FuzzJudge(f *testing.F) {
	me, them := newPerson(1), newPerson(2)
	pid := pidOf(wire.PeerIDOf(them.key))
	h := &Host{refusals: guard.NewRefusals()}
	f.Add(them.sign().Encode())
	f.Add(newPerson(3).sign().Encode())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, frame []byte) {
		signed, record, err := h.judge(pid, me.sign(), frame)
		if err != nil {
			if !isRefusal(err) {
				t.Errorf("%v is not a refusal", err)
			}
			return
		}
		if record.Author != wire.PeerIDOf(them.key) || record.Run != testRun {
			t.Errorf("accepted %+v", record)
		}
		if _, err := hello.Parse(signed.Encode()); err != nil {
			t.Error(err)
		}
	})
}

// As many keys as would take all the streams of a host open theirs with requests that never end.
// They hold few, and others are answered.
func TestHalfOpenStreamsKeepNobodyOut(t *testing.T) {
	inWorld(t, 10*rate, delay, func(t *testing.T, w *world) {
		h, friend := w.host(newPersonN(1000).config()), w.host(newPersonN(1001).config())
		h.Handle(echo)
		keepDrained(t, h)
		dial(t, friend, h)
		if _, err := friend.Call(t.Context(), h.ID(), []byte("hi"), 10); err != nil {
			t.Fatal(err)
		}
		const keys = streamsSystem/streamsPeer + 1 // a few of each peer are for gossip and the handshake
		var others []*Host
		for i := range keys {
			others = append(others, w.host(newPersonN(i+1).config()))
			dial(t, others[i], h)
		}
		for _, o := range others {
			holdStreams(t, o, h)
		}
		time.Sleep(time.Second)
		held := 0
		for _, c := range h.host.Network().Conns() {
			held += len(c.GetStreams())
		}
		_, err := friend.Call(t.Context(), h.ID(), []byte("hi"), 10)
		t.Logf("%d keys hold %d streams of %d", keys, held, streamsSystem)
		if err != nil {
			t.Errorf("another peer gets no answer: %v", err)
		}
		if most := maxReading + 8*(keys+1); held > most {
			t.Errorf("%d streams are held, want at most %d", held, most)
		}
	})
}

// holdStreams opens as many streams to a host as it may, with the beginning of a request each.
func holdStreams(t *testing.T, o, h *Host) {
	t.Helper()
	for range streamsPeer {
		s, err := o.host.NewStream(t.Context(), h.host.ID(), rpcProtocol)
		if err != nil {
			break
		}
		s.Write([]byte{0, 0, 0}) // it may be reset by now
	}
}
