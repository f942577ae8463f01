package sim

import "testing"

// A large world keeps its promises by remembering folds, not by skipping them,
// and what one node costs in bytes is told.
func TestLarge(t *testing.T) {
	t.Parallel()
	const nodes, rounds = 40, 6
	r := play(t, Large(nodes, rounds, 1))
	if r.Rounds < rounds || r.Nodes != nodes {
		t.Errorf("%d nodes closed %d rounds", r.Nodes, r.Rounds)
	}
	if folds := r.Counts.Folds; folds == 0 || folds > r.Counts.Deltas*nodes/4 {
		t.Errorf("%d folds were computed for %d deltas and %d nodes", folds, r.Counts.Deltas, nodes)
	}
	t.Logf("%d bytes a node and round, %d events", r.BytesIn/nodes/int64(r.Rounds), r.Counts.Events)
}

// A fold that was remembered is computed again now and then; one that differs is
// a broken promise.
func TestRememberedFoldsAreHeldAgainstNewOnes(t *testing.T) {
	t.Parallel()
	w, err := New(Large(3, 2, 1))
	if err != nil {
		t.Fatal(err)
	}
	tip := *w.genesis[0]
	tip.State[0]++
	for range recomputeEvery + 1 {
		if _, _, err := w.folder.fold(w, 0, w.genesis[0], nil); err != nil {
			t.Fatal(err)
		}
	}
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	for key := range w.folder.made {
		w.folder.made[key] = folded{tip: &tip}
	}
	for range recomputeEvery {
		w.folder.fold(w, 0, w.genesis[0], nil)
	}
	if w.Err() == nil {
		t.Error("a remembered fold that is wrong was not found")
	}
}
