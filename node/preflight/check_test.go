package preflight

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

// peer is a node of a run on this machine that serves nothing.
func peer(t *testing.T, run wire.RunID, change func(*hello.Record)) *p2p.Host {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	r := hello.Record{Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin, Precision: "f32", StartedMs: 1}
	change(&r)
	signed, err := hello.Sign(key, r)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2p.New(p2p.Config{Key: key, Run: run, Profile: p2p.Local, Record: func() hello.Signed { return signed }, Check: func(wire.PeerID, []byte) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for range h.Events() {
		}
	}()
	h.Handle(func(context.Context, wire.PeerID, []byte) []byte {
		return wire.Response{Status: wire.NotFound}.Encode()
	})
	t.Cleanup(func() { h.Close() })
	return h
}

// finding is what a check of a link on this machine says of one thing.
func finding(t *testing.T, link joinlink.Link, name string) string {
	t.Helper()
	facts, err := Check(t.Context(), Config{Link: link, Profile: p2p.Local, Agent: "atoll/test"})
	if err != nil {
		t.Fatal(err)
	}
	facts.Networks = append(facts.Networks, home) // the machine of the test may have none
	for _, x := range facts.Findings() {
		if x.Name == name {
			return x.Text + "; " + x.Remedy
		}
	}
	return ""
}

// Links to what is there on this machine: the run, another one, a newer version, and nobody.
func TestCheck(t *testing.T) {
	run := wire.RunID{1}
	same := func(*hello.Record) {}
	for _, c := range []struct {
		what   string
		run    wire.RunID
		change func(*hello.Record)
		closed bool
		name   string
		want   string
	}{
		{"the run", run, same, false, "link", "a member of the run answers at 127.0.0.1:"},
		{"its clock", run, same, false, "clock", "within 1s"},
		{"large packets", run, same, false, "packets", "large packets pass"},
		{"another run", wire.RunID{2}, same, false, "link", "is in another run than the link names"},
		{"a newer version", run, func(r *hello.Record) { r.Protocol++ }, false, "link", "this atoll is too old for the run"},
		{"nobody", run, same, true, "link", "the link leads to nobody: no node runs at 127.0.0.1:"},
	} {
		t.Run(c.what, func(t *testing.T) {
			h := peer(t, c.run, c.change)
			link := joinlink.Link{Run: run, Peers: h.Addrs()}
			if c.closed {
				if err := h.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got := finding(t, link, c.name); !strings.Contains(got, c.want) {
				t.Errorf("says %q, want %q", got, c.want)
			}
		})
	}
}

// A port that is taken is said as such where it was asked for.
func TestCheckPortTaken(t *testing.T) {
	h := peer(t, wire.RunID{1}, func(*hello.Record) {})
	_, err := Check(t.Context(), Config{Link: joinlink.Link{Run: wire.RunID{1}, Peers: h.Addrs()}, Profile: p2p.Local, Listen: h.Listening()})
	if err == nil || !strings.Contains(err.Error(), "port in use") {
		t.Errorf("%v", err)
	}
}

// Whatever passes, the largest of those that are tried is found by few visits, and size is blamed only where it is the reason.
func TestLargestThatPasses(t *testing.T) {
	for at := range narrower {
		tries := 0
		got := largest(func(bytes int) bool { tries++; return bytes <= narrower[at] })
		if want := (Packets{Lost: p2p.SegmentBytes + headers, Passes: narrower[at] + headers}); got != want || tries > 5 {
			t.Errorf("where %d pass: %+v after %d tries", narrower[at], got, tries)
		}
	}
	tries := 0
	if got := largest(func(int) bool { tries++; return false }); got != (Packets{Slow: true}) || tries != 1 {
		t.Errorf("where nothing passes: %+v after %d tries", got, tries)
	}
	if got := largest(func(int) bool { return true }); got != (Packets{}) {
		t.Errorf("where all pass: %+v", got)
	}
}
