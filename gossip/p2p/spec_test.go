package p2p

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// One test for each clause of SPEC.md that is about connections. The test is in
// the package for its network in virtual time; what it says on streams follows
// the text.
func TestSpec(t *testing.T) {
	spectest.Run(t, "P", map[string]spectest.Clause{
		"P-1": specIdentity, "P-2": specNames, "P-3": specHandshake, "P-4": specGate, "P-5": specForeignRecord,
		"P-6": specGossip, "P-7": specCall, "P-8": specAcknowledge, "P-9": specBusy,
	})
}

func specIdentity(t *testing.T, s *spectest.Spec) {
	if got := PeerText(wire.PeerID(s.Hex(t, "author"))); got != s.Text(t, "peer") {
		t.Errorf("%s, the text says %s", got, s.Text(t, "peer"))
	}
	a, b := start(t, newPerson(1).config()), start(t, newPerson(2).config())
	join(t, a, b)
	state := a.host.Network().Conns()[0].ConnState()
	if state.Security != "/noise" || state.StreamMultiplexer != "/yamux/1.0.0" || state.Transport != "tcp" {
		t.Errorf("connected with %+v", state)
	}
}

func specNames(t *testing.T, s *spectest.Spec) {
	run := wire.RunID(s.Hex(t, "run"))
	rows := s.Table(t, "names")
	topic := strings.Replace(rows[2][0], "RUN", hex.EncodeToString(run[:]), 1)
	if string(helloProtocol) != rows[0][0] || string(rpcProtocol) != rows[1][0] || topicName(run) != topic {
		t.Errorf("%s, %s, %s", helloProtocol, rpcProtocol, topicName(run))
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
		defer closeHost(t, a)
		defer closeHost(t, b)
		_, _ = b.Dial(t.Context(), a.Addrs()[0])
		then(t, b, <-heard)
	})
}

func specHandshake(t *testing.T, s *spectest.Spec) {
	meet(t, func() []byte { return newPerson(1).sign().Encode() }, func(t *testing.T, h *Host, got answered) {
		if got.err != nil || len(got.verdict) != 0 {
			t.Errorf("verdict %q, %v", got.verdict, got.err)
		}
		signed, err := hello.Parse(got.theirs)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := signed.Open(); err != nil || r.Author != h.ID() {
			t.Errorf("record of %v, %v", r.Author, err)
		}
		next[PeerUp](t, h)
	})
	if maxHello != 4096 || maxVerdict != 512 {
		t.Errorf("frames of up to %d and %d", maxHello, maxVerdict)
	}
}

func specGate(t *testing.T, s *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a := w.stranger(1, func(s network.Stream) { _, _ = io.Copy(io.Discard, s) })
		b := w.host(newPerson(2).config())
		defer closeHost(t, a)
		defer closeHost(t, b)
		b.Handle(echo)
		connect(t, b, a)
		asked := open(t, a, b, rpcProtocol)
		_ = wire.WriteFrame(asked, []byte("request"), wire.MaxRequest)
		if answer, err := wire.ReadFrame(asked, 64); err == nil && answer[0] != byte(wire.Busy) {
			t.Errorf("answered %q", answer)
		}
	})
}

func specForeignRecord(t *testing.T, s *spectest.Spec) {
	other := newPerson(1)
	other.record.Run = wire.RunID{9}
	for name, p := range map[string]*person{"another author": newPerson(3), "another run": other} {
		meet(t, func() []byte { return p.sign().Encode() }, func(t *testing.T, _ *Host, got answered) {
			if got.err == nil && len(got.verdict) == 0 {
				t.Errorf("%s is accepted", name)
			}
		})
	}
}

func specGossip(t *testing.T, s *spectest.Spec) {
	m := &pb.Message{Data: []byte(s.Text(t, "payload")), From: []byte("a"), Seqno: []byte("b")}
	if got := messageID(m); !bytes.Equal([]byte(got), s.Hex(t, "payload digest")) {
		t.Errorf("id %x", got)
	}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts, stop := w.hosts(2)
		defer stop()
		join(t, hosts[0], hosts[1])
		time.Sleep(5 * time.Second) // virtual: the mesh forms
		if err := hosts[0].Publish([]byte("payload")); err != nil {
			t.Fatal(err)
		}
		if m := next[Message](t, hosts[1]); string(m.Data) != "payload" || m.ID != wire.Digest(s.Hex(t, "payload digest")) {
			t.Errorf("received %q with id %v", m.Data, m.ID)
		}
	})
}

func specCall(t *testing.T, s *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts, stop := w.hosts(2)
		defer stop()
		join(t, hosts[0], hosts[1])
		hosts[1].Handle(echo)
		asked := open(t, hosts[0], hosts[1], rpcProtocol)
		if _, err := asked.Write([]byte{0, 0, 0, 2, 1, 2}); err != nil {
			t.Fatal(err)
		}
		asked.CloseWrite()
		if got, err := io.ReadAll(asked); err != nil || !bytes.Equal(got, []byte{0, 0, 0, 3, 1, 1, 2}) {
			t.Errorf("answered %x, %v", got, err)
		}
	})
}

// bulkSize is ten segments less the length of the frame.
const bulkSize = 10*32768 - 4

func answerWith(answer []byte) Handler {
	return func(context.Context, wire.PeerID, []byte) []byte { return answer }
}

func specAcknowledge(t *testing.T, s *spectest.Spec) {
	for name, c := range map[string]struct {
		ahead int // acknowledgements of what was not sent yet
		want  error
	}{"each in turn": {0, nil}, "too many": {32, network.ErrReset}} {
		inWorld(t, rate, delay, func(t *testing.T, w *world) {
			hosts, stop := w.hosts(2)
			defer stop()
			join(t, hosts[0], hosts[1])
			hosts[1].Handle(answerWith(make([]byte, bulkSize)))
			asked := open(t, hosts[0], hosts[1], rpcProtocol)
			_ = wire.WriteFrame(asked, []byte("request"), wire.MaxRequest)
			_, err := asked.Write(make([]byte, c.ahead))
			part, got := make([]byte, 32768), 0
			for err == nil && got < bulkSize+4 {
				if _, err = io.ReadFull(asked, part); err == nil {
					got += len(part)
					_, err = asked.Write([]byte{7})
				}
			}
			if c.want == nil && err != nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("%s: %d bytes, %v", name, got, err)
			}
			asked.Close()
		})
	}
}

func specBusy(t *testing.T, s *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts, stop := w.hosts(2)
		defer stop()
		join(t, hosts[0], hosts[1])
		if got, err := hosts[0].Call(t.Context(), hosts[1].ID(), []byte("request"), 64); err != nil || !bytes.Equal(got, []byte{byte(wire.Busy)}) {
			t.Errorf("answered %x, %v", got, err)
		}
	})
	if servePeer != 64 {
		t.Errorf("%d requests of a peer", servePeer)
	}
}
