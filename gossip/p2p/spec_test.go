package p2p

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/hello"
	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/bulk"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// One test for each clause of gossip/SPEC.md that is about connections, gossip and
// streams. The tests are in the package for its network in virtual time; what they
// say on streams follows the text.
func TestSpec(t *testing.T) {
	spectest.Run(t, "P", map[string]spectest.Clause{
		"P-1": specIdentity, "P-2": specTransports, "P-3": specNames, "P-4": specDiallerOpens, "P-5": specRenewal, "P-6": specRecords,
		"P-7": specVerdicts, "P-8": spectest.All(specForeignRecord, specNegotiated), "P-9": spectest.All(specSession, specGate),
		"P-10": specSilentCloses, "P-10.2": specEarlyStreams, "P-11": spectest.All(specDuplicateKeyAsked, specDuplicateKeyRefused), "P-12": specProtocols,
		"P-13": spectest.All(specSubscriptions, specRPCSize), "P-14": spectest.All(specUnsigned, specMessageID),
		"P-15": spectest.All(specChecks, specForwards, specRejects), "P-15.2": spectest.All(specPassesOn, specPassesOnLater), "P-15.3": specSurplus, "P-16": spectest.All(specCall, specServerEnds),
		"P-17": spectest.All(specAcknowledge, specTooManyAcks), "P-17.2": specStamps, "P-17.3": specStamps,
		"P-18": specWindow, "P-19": spectest.All(specStall, specRequestLimits),
		"P-20": specSlowHandler, "P-21": specBusy, "P-22": specRelayServesMembers, "P-22.2": specRelayCarriesAll,
		"P-22.3": spectest.All(specPlacesOfGuests, specRelayBoundsGuests), "P-23": specNearRecords,
		"P-24": specMDNS, "P-25": specMeeting, "P-25.2": specMeetingServed, "P-25.3": specAnnouncement, "P-26": specClock,
	})
}

// ms is a number of the table of connections.
func ms(t testing.TB, s *spectest.Spec, name string) time.Duration {
	t.Helper()
	return time.Duration(s.Number(t, "connections", name)) * time.Millisecond
}

func specIdentity(t *testing.T, s *spectest.Spec) {
	id := wire.PeerID(s.Hex(t, "author"))
	key, err := crypto.UnmarshalEd25519PublicKey(id[:])
	if err != nil {
		t.Fatal(err)
	}
	pid, err := peer.IDFromPublicKey(key)
	if err != nil || pid != pidOf(id) || pid.String() != s.Text(t, "peer") || address.PeerText(id) != s.Text(t, "peer") {
		t.Errorf("libp2p calls it %s (%v), and this node %s; the text says %s", pid, err, address.PeerText(id), s.Text(t, "peer"))
	}
}

func specTransports(t *testing.T, _ *spectest.Spec) {
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	join(t, a, b)
	state := a.host.Network().Conns()[0].ConnState()
	if state.Security != "/noise" || state.StreamMultiplexer != "/yamux/1.0.0" || state.Transport != "tcp" {
		t.Errorf("connected with %+v", state)
	}
	c := newPerson(3).config()
	c.Listen = []string{"/ip4/127.0.0.1/tcp/0/ws"}
	over := start(t, c)
	dial(t, a, over)
	state = a.host.Network().ConnsToPeer(over.pid)[0].ConnState()
	if state.Security != "/noise" || state.StreamMultiplexer != "/yamux/1.0.0" || state.Transport != "websocket" {
		t.Errorf("connected with %+v", state)
	}
	inPair(t, rate, func(t *testing.T, a, _ *Host) {
		if state := a.host.Network().Conns()[0].ConnState(); state.Transport != "quic-v1" {
			t.Errorf("connected with %+v", state)
		}
	})
}

func specNames(t *testing.T, s *spectest.Spec) {
	run := wire.RunID(s.Hex(t, "run"))
	rows := s.Table(t, "names")
	topic := strings.Replace(rows[2][0], "RUN", hex.EncodeToString(run[:]), 1)
	if string(clockProtocol) != rows[3][0] || string(dhtProtocol) != rows[4][0] {
		t.Errorf("%s, %s", clockProtocol, dhtProtocol)
	}
	if string(helloProtocol) != rows[0][0] || string(rpcProtocol) != rows[1][0] || topicName(run) != topic {
		t.Errorf("%s, %s, %s", helloProtocol, rpcProtocol, topicName(run))
	}
	for name, d := range map[string]time.Duration{
		"hello": helloTimeout, "duplicate key": duplicateKeyTimeout, "request": requestTimeout, "answer": handleTimeout, "stall": bulk.StallTimeout,
	} {
		if ms(t, s, name) != d {
			t.Errorf("%s is %v, the text says %v", name, d, ms(t, s, name))
		}
	}
}

// shakeByText speaks the handshake, and gives the verdict on it.
func shakeByText(s network.Stream, record []byte) (theirs, verdict []byte, err error) {
	if err := wire.WriteFrame(s, record, 4096); err != nil {
		return nil, nil, err
	}
	if theirs, err = wire.ReadFrame(s, 4096); err != nil {
		return nil, nil, err
	}
	if err := wire.WriteFrame(s, nil, 512); err != nil {
		return nil, nil, err
	}
	verdict, err = wire.ReadFrame(s, 512)
	return theirs, verdict, err
}

// answered is what a stranger learned of a handshake.
type answered struct {
	theirs, verdict []byte
	err             error
}

// meet lets a host dial a stranger who presents a record.
func meet(t *testing.T, record func() []byte, then func(t *testing.T, h *Host, got answered)) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		heard := make(chan answered, 1)
		a := w.stranger(1, func(s network.Stream) {
			theirs, verdict, err := shakeByText(s, record())
			heard <- answered{theirs, verdict, err}
			s.Close()
		})
		b := w.host(newPerson(2).config())
		_, _ = b.Dial(t.Context(), a.Addrs()[0])
		then(t, b, <-heard)
	})
}

func ownRecord() []byte { return newPerson(1).sign().Encode() }

func specDiallerOpens(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		opened := make(chan string, 10)
		a := w.stranger(1, func(s network.Stream) { opened <- "the one that dialled"; s.Reset() })
		b := w.host(newPerson(2).config())
		b.host.SetStreamHandler(helloProtocol, func(s network.Stream) { opened <- "the one that was dialled"; s.Reset() })
		connect(t, b, a)
		time.Sleep(5 * time.Second)
		if len(opened) != 1 || <-opened != "the one that dialled" {
			t.Error("another side opens the handshake")
		}
	})
}

func specRenewal(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		join(t, hosts[0], hosts[1])
		for i, from := range []int{0, 1} { // the one that dialled, and the other
			to, p := hosts[1-from], newPerson(byte(from+1))
			p.seq.Store(uint64(7 + i))
			s := open(t, hosts[from], to, helloProtocol)
			if _, verdict, err := shakeByText(s, p.sign().Encode()); err != nil || len(verdict) != 0 {
				t.Fatalf("verdict %q, %v", verdict, err)
			}
			if e := next[RecordChanged](t, to); e.Record.Seq != uint64(7+i) {
				t.Errorf("record %d", e.Record.Seq)
			}
		}
	})
}

func specRecords(t *testing.T, _ *spectest.Spec) {
	meet(t, ownRecord, func(t *testing.T, h *Host, got answered) {
		signed, err := hello.Parse(got.theirs)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := signed.Open(); err != nil || r.Author != h.ID() {
			t.Errorf("record of %v, %v", r.Author, err)
		}
	})
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		join(t, hosts[0], hosts[1])
		s := open(t, hosts[0], hosts[1], helloProtocol) // says nothing itself
		if b, err := wire.ReadFrame(s, 4096); err != nil || len(b) == 0 {
			t.Errorf("waits for the other's record: %v", err)
		}
		s.Reset()
		s = open(t, hosts[0], hosts[1], helloProtocol)
		if _, err := s.Write([]byte{0, 0, 0x10, 1}); err != nil { // 4097 bytes follow
			t.Fatal(err)
		}
		if r := next[Refused](t, hosts[1]); !errors.Is(r.Reason, ErrHandshake) {
			t.Errorf("a longer record: %v", r.Reason)
		}
	})
}

func specVerdicts(t *testing.T, _ *spectest.Spec) {
	meet(t, ownRecord, func(t *testing.T, h *Host, got answered) {
		if got.err != nil || len(got.verdict) != 0 {
			t.Errorf("verdict %q, %v", got.verdict, got.err)
		}
	})
	if maxVerdict != 1024 || len(verdict(errors.New(strings.Repeat("x", 1200)))) != 1024 {
		t.Error("another length of verdicts")
	}
	meet(t, func() []byte { return []byte("garbage") }, func(t *testing.T, _ *Host, got answered) {
		if got.err != nil || len(got.verdict) == 0 || bytes.ContainsAny(got.verdict, "\n\r") {
			t.Errorf("verdict %q, %v", got.verdict, got.err)
		}
	})
}

func specSession(t *testing.T, s *spectest.Spec) {
	for name, verdict := range map[string][]byte{"accepts": nil, "refuses": []byte("no")} {
		inWorld(t, rate, delay, func(t *testing.T, w *world) {
			a := w.stranger(1, func(s network.Stream) {
				_ = wire.WriteFrame(s, ownRecord(), 4096)
				_, _ = wire.ReadFrame(s, 4096)
				time.Sleep(time.Second)
				_ = wire.WriteFrame(s, verdict, 512)
				s.Close()
			})
			b := w.host(newPerson(2).config())
			go func() { _, _ = b.Dial(t.Context(), a.Addrs()[0]) }()
			time.Sleep(900 * time.Millisecond)
			if len(b.Connected()) != 0 {
				t.Error("a session before the other's verdict")
			}
			time.Sleep(2 * time.Second)
			if up := len(b.Connected()) == 1; up != (verdict == nil) {
				t.Errorf("a peer that %s: session %v", name, up)
			}
		})
	}
}

func specGate(t *testing.T, s *spectest.Spec) {
	for _, id := range []string{s.Table(t, "names")[1][0], s.Table(t, "protocols")[0][0]} {
		inWorld(t, rate, delay, func(t *testing.T, w *world) {
			a := w.stranger(1, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) })
			b := w.host(newPerson(2).config())
			b.Handle(echo)
			connect(t, b, a)
			began := time.Now()
			stream := open(t, a, b, rpcProtocol)
			if id != string(rpcProtocol) {
				stream = open(t, a, b, "/meshsub/1.3.0")
			}
			_ = wire.WriteFrame(stream, []byte("request"), wire.MaxRequest)
			if got, err := io.ReadAll(stream); err == nil || len(got) != 0 {
				t.Errorf("%s: %q, %v", id, got, err)
			}
			if took := time.Since(began); took < ms(t, s, "hello")-time.Second || took > ms(t, s, "hello")+time.Second {
				t.Errorf("%s: reset after %v", id, took)
			}
		})
	}
}

func specForeignRecord(t *testing.T, _ *spectest.Spec) {
	meet(t, func() []byte { return newPerson(3).sign().Encode() }, func(t *testing.T, h *Host, got answered) {
		if got.err != nil || len(got.verdict) == 0 {
			t.Errorf("verdict %q, %v", got.verdict, got.err)
		}
		if r := next[Refused](t, h); !errors.Is(r.Reason, ErrHandshake) {
			t.Errorf("refused for %v", r.Reason)
		}
	})
}

func specNegotiated(t *testing.T, _ *spectest.Spec) {
	for field, change := range map[string]func(r *hello.Record){
		hello.FieldRun:      func(r *hello.Record) { r.Run = wire.RunID{9} },
		hello.FieldProtocol: func(r *hello.Record) { r.Protocol++ },
	} {
		p := newPerson(1)
		change(&p.record)
		meet(t, func() []byte { return p.sign().Encode() }, func(t *testing.T, h *Host, got answered) {
			if got.err != nil || !strings.HasPrefix(string(got.verdict), field) {
				t.Errorf("verdict %q, %v", got.verdict, got.err)
			}
			if refusal := (*hello.Refusal)(nil); !errors.As(next[Refused](t, h).Reason, &refusal) || refusal.Field != field {
				t.Errorf("refused for %+v", refusal)
			}
		})
	}
}

// closesAfter is when b has no connection any more to a stranger that does what
// speak says, from the handshake's begin on.
func closesAfter(t *testing.T, speak func(s network.Stream)) (took time.Duration) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a := w.stranger(1, speak)
		b := w.host(newPerson(2).config())
		connect(t, b, a)
		began := time.Now()
		for len(b.host.Network().Conns()) > 0 && time.Since(began) < time.Minute {
			time.Sleep(50 * time.Millisecond)
		}
		took = time.Since(began)
	})
	return took
}

func TestConnectionRefuserCloses(t *testing.T) {
	refused := func(end bool) func(s network.Stream) {
		return func(s network.Stream) {
			_, _, _ = shakeByText(s, newPerson(3).sign().Encode())
			if end {
				s.Close()
				return
			}
			_, _ = s.Read(make([]byte, 1))
		}
	}
	if took := closesAfter(t, refused(true)); took > time.Second {
		t.Errorf("a peer that ends the stream is closed after %v", took)
	}
	limit := verdictTimeout
	if took := closesAfter(t, refused(false)); took < limit/2 || took > limit+time.Second {
		t.Errorf("a peer that does not is closed after %v", took)
	}
}

func specSilentCloses(t *testing.T, s *spectest.Spec) {
	limit := ms(t, s, "hello")
	if took := closesAfter(t, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) }); took < limit-time.Second || took > limit+time.Second {
		t.Errorf("a peer that says nothing is closed after %v", took)
	}
}

func TestConnectionRefusalRemembered(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		other := newPerson(1)
		other.record.Run = wire.RunID{9}
		a, b := w.host(other.config()), w.host(newPerson(2).config())
		tries := func(h, peer *Host) bool {
			began := time.Now()
			_, _ = h.Dial(t.Context(), peer.Addrs()[0])
			return time.Since(began) > 0 // in virtual time only the network takes any
		}
		if !tries(b, a) {
			t.Fatal("does not dial")
		}
		time.Sleep(refusedMemory / 2)
		if tries(b, a) || tries(a, b) {
			t.Error("dials one that was refused")
		}
		if time.Sleep(refusedMemory/2 + time.Second); !tries(b, a) {
			t.Error("does not dial when that is over")
		}
	})
}

func TestConnectionNewerRecord(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		for _, c := range []struct {
			seq   uint64
			taken bool
		}{{5, true}, {4, false}, {5, false}, {6, true}} {
			p := newPerson(1)
			p.seq.Store(c.seq)
			if _, verdict, err := shakeByText(open(t, a, b, helloProtocol), p.sign().Encode()); err != nil || len(verdict) != 0 {
				t.Fatalf("verdict %q, %v", verdict, err)
			}
			time.Sleep(time.Second)
			if taken := count[RecordChanged](drain(b)) == 1; taken != c.taken {
				t.Errorf("record %d: taken %v", c.seq, taken)
			}
		}
	})
	later, earlier := hello.Record{StartedMs: 2, Seq: 1}, hello.Record{StartedMs: 1, Seq: 9}
	if !newer(later, earlier) || newer(earlier, later) {
		t.Error("the number counts for more than the start")
	}
}
