package relay

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

var document = []byte("a genesis document")

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// node is a host that is a learner of the run, on this machine.
func node(t *testing.T, run wire.RunID, seed byte) *p2p.Host { return invitedNode(t, run, seed, nil) }

// invitedNode is one that an invite admits.
func invitedNode(t *testing.T, run wire.RunID, seed byte, pass *member.Pass) *p2p.Host {
	t.Helper()
	r := hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin, Precision: "f32",
		StartedMs: 1000, Addrs: []string{"/ip4/10.0.0.1/tcp/1"},
	}
	if pass != nil {
		c, err := pass.Admit(run, key(seed))
		if err != nil {
			t.Fatal(err)
		}
		r.Certificate = c.Encode()
	}
	signed, err := hello.Sign(key(seed), r)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Config{
		Key: key(seed), Run: run, Profile: p2p.Local, Record: func() hello.Signed { return signed },
		Check: func(wire.PeerID, []byte) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range h.Events() {
		}
	}()
	t.Cleanup(func() { h.Close() })
	return h
}

// start runs a relay for the length of the test.
func start(t *testing.T, runs ...wire.RunID) (links []joinlink.Link) {
	t.Helper()
	var asked []joinlink.Link
	for _, run := range runs {
		asked = append(asked, joinlink.Link{Run: run})
	}
	return startWith(t, asked...)
}

// startWith does so by links.
func startWith(t *testing.T, asked ...joinlink.Link) (links []joinlink.Link) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, ready := make(chan error, 1), make(chan joinlink.Link, len(asked))
	go func() {
		ended <- Run(ctx, Config{Key: key(9), Runs: asked, Profile: p2p.Local}, func(l joinlink.Link) { ready <- l })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	for range asked {
		links = append(links, <-ready)
	}
	return links
}

func ask(t *testing.T, h *p2p.Host, to wire.PeerID, r wire.Request) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	raw, err := h.Call(ctx, to, r.Encode(), r.Kind.MaxResponse())
	if err != nil {
		t.Fatal(err)
	}
	return wire.OpenResponse(raw, r.Kind.MaxResponse())
}

// A newcomer who knows a relay alone gets the genesis there, and hears of the others.
func TestIntroduces(t *testing.T) {
	run := wire.RunID(wire.Sum(document))
	link := start(t, run)[0]
	first, second := node(t, run, 1), node(t, run, 2)
	first.Handle(func(context.Context, wire.PeerID, []byte) []byte { return wire.Found(document) })
	id, err := first.Dial(t.Context(), link.Peers[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Dial(t.Context(), link.Peers[0]); err != nil {
		t.Fatal(err)
	}
	genesis := wire.Request{Kind: wire.GetGenesis, Run: run}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if got, err := ask(t, second, id, genesis); err == nil && bytes.Equal(got, document) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("genesis %q, %v", got, err)
		}
	}
	body, err := ask(t, second, id, wire.Request{Kind: wire.GetPeerList})
	if err != nil {
		t.Fatal(err)
	}
	list, err := wire.DecodePeerList(body)
	records := list.Records
	if err != nil || len(records) != 2 {
		t.Fatalf("%d records, %v: want the relay and the first node", len(records), err)
	}
	for i, want := range []wire.PeerID{id, first.ID()} {
		s, err := hello.Parse(records[i])
		if err != nil {
			t.Fatal(err)
		}
		if r, err := s.Open(); err != nil || r.Author != want {
			t.Errorf("record %d is of %v, %v", i, r.Author, err)
		}
	}
	if own, err := ask(t, second, id, wire.Request{Kind: wire.GetOwn}); err != nil {
		t.Errorf("own deltas: %v", err)
	} else if headers, err := wire.DecodeHeaders(own); err != nil || len(headers) != 0 {
		t.Errorf("own deltas: %v, %v", headers, err)
	}
	if _, err := ask(t, second, id, wire.Request{Kind: wire.GetManifest}); !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("a relay gives a manifest: %v", err)
	}
}

// A document that is not the run's is not passed on, and no run is served that was not named.
func TestRefuses(t *testing.T) {
	run := wire.RunID(wire.Sum(document))
	links := start(t, run, wire.RunID{7})
	if links[0].Run != run || links[1].Run != (wire.RunID{7}) || links[0].Peers[0] == links[1].Peers[0] {
		t.Errorf("links %v", links)
	}
	liar := node(t, run, 1)
	asked := make(chan struct{}, 1)
	liar.Handle(func(context.Context, wire.PeerID, []byte) []byte {
		defer func() { asked <- struct{}{} }()
		return wire.Found([]byte("another document"))
	})
	id, err := liar.Dial(t.Context(), links[0].Peers[0])
	if err != nil {
		t.Fatal(err)
	}
	<-asked
	for range 3 {
		if got, err := ask(t, liar, id, wire.Request{Kind: wire.GetGenesis, Run: run}); err == nil {
			t.Fatalf("passes on %q", got)
		}
	}
	if _, err := node(t, wire.RunID{8}, 3).Dial(t.Context(), links[0].Peers[0]); err == nil {
		t.Error("a node of another run gets in")
	}
	if err := Run(t.Context(), Config{Key: key(9)}, nil); err == nil || !strings.Contains(err.Error(), "no run is named") {
		t.Errorf("without a run: %v", err)
	}
}
