package p2p

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/limit"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// field is one of protobuf, of bytes.
func field(n uint64, b []byte) []byte {
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, n<<3|2), uint64(len(b))), b...)
}

func subscription(topic string) []byte {
	return field(1, slices.Concat([]byte{0x08, 1}, field(2, []byte(topic))))
}

// message is one that is published on a topic, with further fields.
func message(topic string, data []byte, more ...[]byte) []byte {
	return field(2, slices.Concat(field(2, data), field(4, []byte(topic)), slices.Concat(more...)))
}

// rpc is an RPC of gossipsub with its length in front.
func rpc(parts ...[]byte) []byte {
	body := slices.Concat(parts...)
	return append(binary.AppendUvarint(nil, uint64(len(body))), body...)
}

// speaker is a stranger with a session, who has no gossip but what the test says
// on the stream.
type speaker struct {
	*Host
	said   network.Stream
	topic  string
	heard  chan []byte         // what the host says on its streams of gossip
	opened chan network.Stream // those streams
}

// speaks makes a speaker with a session with h.
func (w *world) speaks(seed byte, h *Host) *speaker {
	s := &speaker{topic: topicName(testRun), heard: make(chan []byte, 1000), opened: make(chan network.Stream, 10)}
	s.Host = w.stranger(seed, func(st network.Stream) {
		_, _, _ = shakeByText(st, newPerson(seed).sign().Encode())
		st.Close()
	})
	for _, id := range pubsub.GossipSubDefaultProtocols {
		s.host.SetStreamHandler(id, func(st network.Stream) {
			s.opened <- st
			b := make([]byte, 1<<14)
			for {
				n, err := st.Read(b)
				if err != nil {
					return
				}
				s.heard <- bytes.Clone(b[:n])
			}
		})
	}
	dial(w.t, h, s.Host)
	s.peers.mu.Lock()
	for _, l := range s.peers.links {
		l.passed = true // so that it keeps the connection, and yet begins no gossip of its own
	}
	s.peers.mu.Unlock()
	s.reopen()
	return s
}

// reopen begins a stream of gossip to the host.
func (s *speaker) reopen(ids ...protocol.ID) {
	to := s.host.Network().Conns()[0].RemotePeer()
	if len(ids) == 0 {
		ids = []protocol.ID{"/meshsub/1.1.0"}
	}
	var err error
	if s.said, err = s.host.NewStream(network.WithNoDial(s.ctx, "test"), to, ids...); err != nil {
		panic(err)
	}
}

func (s *speaker) say(parts ...[]byte) {
	if _, err := s.said.Write(rpc(parts...)); err != nil {
		panic(err)
	}
}

func (s *speaker) publish(data string, more ...[]byte) {
	s.say(message(s.topic, []byte(data), more...))
}

// spoken runs f with a host, whose peer the test plays.
func spoken(t *testing.T, f func(t *testing.T, h *Host, s *speaker)) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		h := w.host(newPerson(2).config())
		s := w.speaks(1, h)
		f(t, h, s)
	})
}

// gets are the messages that reach a host within a second.
func gets(h *Host) (data []string) {
	time.Sleep(time.Second)
	for _, e := range drain(h) {
		if m, ok := e.(Message); ok {
			data = append(data, string(m.Data))
		}
	}
	return data
}

func sameTexts(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func specProtocols(t *testing.T, s *spectest.Spec) {
	var ids []protocol.ID
	for _, row := range s.Table(t, "protocols") {
		ids = append(ids, protocol.ID(row[0]))
	}
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		if got := (<-s.opened).Protocol(); got != ids[0] {
			t.Errorf("the host opens %s", got)
		}
		for i, id := range ids {
			s.reopen(append([]protocol.ID{"/meshsub/9.0.0"}, ids[i:]...)...)
			if got := s.said.Protocol(); got != id {
				t.Errorf("agrees on %s, want %s", got, id)
			}
			s.publish("by " + string(id))
			sameTexts(t, string(id), gets(h), "by "+string(id))
		}
	})
	if !slices.Equal(pubsub.GossipSubDefaultProtocols, ids) {
		t.Errorf("speaks %v", pubsub.GossipSubDefaultProtocols)
	}
}

func TestGossipTopic(t *testing.T) {
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		if first := <-s.heard; !bytes.Contains(first, []byte(s.topic)) || bytes.Count(first, []byte("/atoll/")) != 1 {
			t.Errorf("subscribes with %q", first)
		}
		s.say(subscription("/atoll/other/1"), message("/atoll/other/1", []byte("other")), message(s.topic, []byte("this one")))
		sameTexts(t, "after another topic", gets(h), "this one")
		if peers := h.topic.ListPeers(); len(peers) != 0 {
			t.Errorf("subscribed: %v", peers)
		}
		s.say(subscription(s.topic))
		time.Sleep(time.Second)
		if peers := h.topic.ListPeers(); len(peers) != 1 {
			t.Errorf("subscribed: %v", peers)
		}
	})
}

func specSubscriptions(t *testing.T, _ *spectest.Spec) {
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		s.say(subscription(s.topic), subscription("/atoll/other/1"), message(s.topic, []byte("with two")))
		s.say(subscription(s.topic), message(s.topic, []byte("with one")))
		sameTexts(t, "messages", gets(h), "with one")
	})
}

func specUnsigned(t *testing.T, _ *spectest.Spec) {
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		for n, name := range map[uint64]string{1: "author", 3: "sequence number", 5: "signature", 6: "key"} {
			s.publish("with a "+name, field(n, []byte("12345678")))
		}
		s.publish("plain")
		sameTexts(t, "messages", gets(h), "plain")
		if n := h.Stats().Gossip.Rejected; n != 4 {
			t.Errorf("%d rejected", n)
		}
	})
}

func specMessageID(t *testing.T, s *spectest.Spec) {
	m := &pb.Message{Data: []byte(s.Text(t, "payload")), From: []byte("a"), Seqno: []byte("b")}
	if got := messageID(m); !bytes.Equal([]byte(got), s.Hex(t, "payload digest")) {
		t.Errorf("id %x", got)
	}
	digest := s.Hex(t, "payload digest")
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		s.publish("payload")
		if m := next[Message](t, h); m.ID != wire.Digest(digest) {
			t.Errorf("id %v", m.ID)
		}
		// It does not ask for what it has, and for what it has not by that id.
		ihave := func(id []byte) []byte {
			return field(3, field(1, slices.Concat(field(1, []byte(s.topic)), field(2, id))))
		}
		other := wire.Sum([]byte("other"))
		s.say(subscription(s.topic), ihave(digest), ihave(other[:]))
		time.Sleep(time.Second)
		var heard []byte
		for len(s.heard) > 0 {
			heard = append(heard, <-s.heard...)
		}
		if bytes.Contains(heard, digest) || !bytes.Contains(heard, other[:]) {
			t.Errorf("asks with %x", heard)
		}
	})
}

func specRPCSize(t *testing.T, _ *spectest.Spec) {
	const most = 5120
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		filled := func(size int, data string) []byte {
			m := message(s.topic, []byte(data))
			return append(m, field(99, make([]byte, size-len(m)-4))...) // a field that nobody knows
		}
		if n := len(filled(most, "fits")); n != most {
			t.Fatalf("%d bytes", n)
		}
		s.say(filled(most, "fits"))
		sameTexts(t, "one that fits", gets(h), "fits")
		s.say(filled(most+1, "too long"))
		sameTexts(t, "one byte more", gets(h))
		_ = s.said.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := s.said.Read(make([]byte, 1)); !errors.Is(err, network.ErrReset) {
			t.Errorf("its stream goes on: %v", err)
		}
	})
}

// checked is a host that checks messages as a node does.
func (w *world) checked(seed byte, run wire.RunID) *Host {
	c := newPerson(seed).config()
	c.Check = func(_ wire.PeerID, raw []byte) error { _, err := wire.Open(run, raw); return err }
	return w.host(c)
}

func specChecks(t *testing.T, s *spectest.Spec) {
	run := wire.RunID(s.Hex(t, "run"))
	good := s.Hex(t, "message header")
	with := func(at int, b byte) []byte { m := bytes.Clone(good); m[at] = b; return m }
	order := [][]byte{make([]byte, 4097), with(0, wire.Version+1), with(1, 9), append(bytes.Clone(good), 1), with(len(good)-1, good[len(good)-1]^1)}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		var checks atomic.Int32 // validators run beside each other
		c := newPerson(2).config()
		c.Check = func(_ wire.PeerID, raw []byte) error { checks.Add(1); _, err := wire.Open(run, raw); return err }
		h := w.host(c)
		sp := w.speaks(1, h)
		time.Sleep(5 * time.Second)
		for _, m := range append(order, good, good, good) {
			sp.publish(string(m))
		}
		if got := gets(h); len(got) != 1 || got[0] != string(good) {
			t.Errorf("takes %d", len(got))
		}
		if n := h.Stats().Gossip.Rejected; int(n) != len(order) || int(checks.Load()) != len(order)+1 {
			t.Errorf("%d rejected, %d checked", n, checks.Load())
		}
		time.Sleep(2*time.Minute - 4*time.Second) // the library forgets once a minute what is older
		if sp.publish(string(good)); len(gets(h)) != 0 {
			t.Error("taken again before the time")
		}
		time.Sleep(3 * time.Minute)
		if sp.publish(string(good)); len(gets(h)) != 1 {
			t.Error("not taken again after it")
		}
	})
	// What is wrong in several ways is refused for the first.
	both := [][]byte{append(with(0, wire.Version+1), make([]byte, 4096)...), func() []byte { m := with(0, wire.Version+1); m[1] = 9; return m }(), append(with(1, 9), 1),
		append(with(len(good)-1, good[len(good)-1]^1), 1)}
	for i, want := range []error{wire.ErrSize, wire.ErrVersion, wire.ErrKind, wire.ErrSize} {
		if _, err := wire.Open(run, both[i]); err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("case %d: %v, want %v", i, err, want)
		}
	}
}

func specForwards(t *testing.T, s *spectest.Spec) {
	run := wire.RunID(s.Hex(t, "run"))
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, b, c := w.checked(1, run), w.checked(2, run), w.checked(3, run)
		dial(t, a, b)
		dial(t, b, c)
		time.Sleep(5 * time.Second)
		drain(c)
		// From an author that nobody knows: a header far ahead, a heartbeat, an equivocation proof.
		var want []string
		for _, name := range []string{"message header", "message heartbeat", "message equivocation proof"} {
			m := string(s.Hex(t, name))
			want = append(want, m)
			if err := a.Publish([]byte(m)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		sameTexts(t, "messages at the third", gets(c), want...)
	})
}

// Where all are connected each message comes once, and all the same each node knows who has it.
func specPassesOn(t *testing.T, s *spectest.Spec) {
	held := ms(t, s, "pass on")
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(4)
		for i, h := range hosts {
			for _, other := range hosts[:i] {
				dial(t, h, other)
			}
		}
		time.Sleep(5 * time.Second) // the mesh forms
		for _, h := range hosts {
			drain(h)
		}
		for _, h := range hosts {
			if err := h.Publish(append([]byte("message of "), h.ID().String()...)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(held)
		for i, h := range hosts {
			events := drain(h)
			if n := count[Message](events); n != 3 {
				t.Errorf("node %d got %d messages of 3 at once", i, n)
			}
			if n := count[Has](events); n != 3*3 {
				t.Errorf("node %d was told %d times that another has one, want 9", i, n)
			}
		}
		time.Sleep(time.Second)
		for i, h := range hosts {
			if g := h.Stats().Gossip; g.Duplicates != 0 {
				t.Errorf("node %d got %d copies", i, g.Duplicates)
			}
		}
	})
}

// What passes through another node comes that much later.
func specPassesOnLater(t *testing.T, s *spectest.Spec) {
	held := ms(t, s, "pass on")
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(3)
		dial(t, hosts[0], hosts[1])
		dial(t, hosts[1], hosts[2])
		time.Sleep(5 * time.Second)
		drain(hosts[2])
		began := time.Now()
		if err := hosts[0].Publish([]byte("message")); err != nil {
			t.Fatal(err)
		}
		next[Message](t, hosts[2])
		if took := time.Since(began); took < held || took > held+4*delay {
			t.Errorf("it took %v, with %v for each way", took, delay)
		}
	})
}

// A peer that brings too much which goes no further does not make a node say IDONTWANT to others, and the rest of what it
// brings is taken.
func specSurplus(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "connections", "surplus"))
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		cfg := newPerson(2).config()
		cfg.Check = func(_ wire.PeerID, raw []byte) error {
			if bytes.HasPrefix(raw, []byte("surplus")) {
				return limit.ErrHeldBack
			}
			return nil
		}
		cfg.Spares = cfg.Check
		b, c := w.host(cfg), w.host(newPerson(3).config())
		dial(t, b, c)
		peer := w.speaks(1, b)
		time.Sleep(5 * time.Second)
		drain(c)
		for i := range 2 * most {
			peer.publish(fmt.Sprint("surplus ", i))
			time.Sleep(time.Millisecond)
		}
		peer.publish("another")
		sameTexts(t, "messages that are taken", gets(b), "another")
		if n := count[Has](drain(c)); n != most+1 {
			t.Errorf("a neighbour was told of %d messages, want %d", n, most+1)
		}
	})
}

func specRejects(t *testing.T, _ *spectest.Spec) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		b, c := w.host(newPerson(2).config()), w.host(newPerson(3).config())
		dial(t, b, c)
		s := w.speaks(1, b)
		time.Sleep(5 * time.Second)
		drain(c)
		s.publish("bad")
		s.publish("good")
		sameTexts(t, "messages at the next", gets(c), "good")
		if n := c.Stats().Gossip.Rejected; n != 0 {
			t.Errorf("%d came there to be rejected", n)
		}
	})
}

func TestGossipScores(t *testing.T) {
	for bad, heard := range map[int]bool{9: true, 11: false} {
		spoken(t, func(t *testing.T, h *Host, s *speaker) {
			s.say(subscription(s.topic))
			for i := range bad {
				s.publish(fmt.Sprint("bad ", i))
			}
			time.Sleep(2 * time.Second) // scores are computed every second
			s.publish("good")
			if got := len(gets(h)) == 1; got != heard {
				t.Errorf("after %d bad messages heard %v", bad, got)
			}
			time.Sleep(5 * time.Minute)
			if s.publish("later"); len(gets(h)) != 1 {
				t.Error("not heard after five minutes")
			}
		})
	}
	// One with a score between publish and graylist does not get what the host says.
	spoken(t, func(t *testing.T, h *Host, s *speaker) {
		s.say(subscription(s.topic))
		got := func(text string) bool {
			if err := h.Publish([]byte(text)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			var heard []byte
			for len(s.heard) > 0 {
				heard = append(heard, <-s.heard...)
			}
			return bytes.Contains(heard, []byte(text))
		}
		time.Sleep(time.Second)
		if !got("before") {
			t.Error("does not get a message")
		}
		for i := range 8 {
			s.publish(fmt.Sprint("bad ", i))
		}
		time.Sleep(2 * time.Second)
		if got("after") {
			t.Error("gets a message though its score is too low")
		}
	})
}

func TestGossipFloods(t *testing.T) {
	// A mesh would have 12 of 15 peers at most.
	inWorld(t, 10*rate, delay, func(t *testing.T, w *world) {
		h := w.host(newPerson(100).config())
		var others []*Host
		for i := range byte(15) {
			o := w.host(newPerson(i + 1).config())
			dial(t, o, h)
			others = append(others, o)
		}
		time.Sleep(5 * time.Second)
		for _, o := range others {
			drain(o)
		}
		if err := h.Publish([]byte("to all")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*delay + 10*time.Millisecond)
		got := 0
		for _, o := range others {
			got += count[Message](drain(o))
		}
		if got != len(others) {
			t.Errorf("%d of %d have it after one hop", got, len(others))
		}
	})
}
