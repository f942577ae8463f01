package sim

import (
	"slices"
	"testing"

	"atoll/node/core"
)

// A joiner that is killed between two chunks goes on with the same snapshot after its
// restart. Snapshot sources that have gone on fold them again, and it does not fetch chunks
// twice.
func TestJoinGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 4, 80, "")
	s.Link.BytesMs = 20
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(12_000)
	n := w.join(NodeSpec{})
	chunks := func() int { _, chunks, _ := n.disk.Sizes(); return chunks }
	some := func() bool { return chunks() > 0 && n.disk.Fetching != nil }
	for !some() && w.err == nil {
		w.RunFor(1)
	}
	n.disk.Commit()
	at, had := slices.Clone(n.disk.Fetching), chunks()
	if n.Installs > 0 || had >= len(w.plan) {
		t.Fatalf("%d chunks, %d installs: there is nothing to go on with", had, n.Installs)
	}
	w.RunFor(10)
	n.crash()
	closed := w.first().machine.Rounds().Fragment(0).Tip().Round
	w.RunUntil(w.now+10_000, func() bool { return w.first().machine.Rounds().Fragment(0).Tip().Round > closed+2 })
	n.restart()
	if !slices.Equal(n.config().Gossip.Resume, at) {
		t.Fatalf("goes on with %v, it was fetching %v", n.config().Gossip.Resume, at)
	}
	w.RunUntil(w.now+20_000, func() bool { return n.Installs > 0 })
	if !slices.Equal(n.disk.Fetching, at) || n.Installs != 1 {
		t.Errorf("took a snapshot of rounds %v in place of %v, %d times", n.disk.Fetching, at, n.Installs)
	}
	if w.counts.FoldedForOthers == 0 {
		t.Error("no snapshot source had gone on: nothing was folded again")
	}
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	if n.machine.View().Phase() != core.Ready || chunks() > 0 || n.disk.Fetching != nil {
		t.Errorf("phase %v, %d chunks stay, of rounds %v", n.machine.View().Phase(), chunks(), n.disk.Fetching)
	}
}
