package node

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/inspect"
	"atoll/node/store"
)

// Whatever a disk takes and whatever it refuses, once it takes something again the
// ledger has what the newest folds made.
func TestRoundsOfAFullDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sick := &sickDisk{}
		n := recorder(t, sick)
		var want []store.Round
		for i := range rapid.IntRange(1, 12).Draw(t, "folds") {
			start := rapid.IntRange(max(0, len(want)-4), len(want)).Draw(t, "start")
			want = slices.Clone(want[:start])
			for range rapid.IntRange(1, 4).Draw(t, "rounds") {
				want = append(want, store.Round{Tokens: uint64(100*i + len(want))})
			}
			sick.errno.Store(0)
			full := rapid.Bool().Draw(t, "full")
			if full {
				sick.errno.Store(int32(syscall.ENOSPC))
			}
			n.keepRounds(1, span{first: uint32(start) + 1, rounds: want[start:]})
			if !full {
				expectRounds(t, n, want)
			}
		}
	})
}

// expectRounds fails unless the ledger has these rounds of fragment 1, from the first.
func expectRounds(t *rapid.T, n *node, want []store.Round) {
	t.Helper()
	for i, w := range want {
		if r, err := n.store.Round(1, uint32(i)+1); err != nil || r.Tokens != w.Tokens {
			t.Fatalf("round %d: tokens %d, %v; want %d", i+1, r.Tokens, err, w.Tokens)
		}
	}
	if _, err := n.store.Round(1, uint32(len(want))+1); !errors.Is(err, store.ErrNotFound) {
		t.Fatalf("a round after the last: %v", err)
	}
	if len(n.unrecorded) != 0 {
		t.Fatalf("%d fragments wait", len(n.unrecorded))
	}
}

// Of more rounds than a node keeps waiting the newest wait, until all are folded anew.
func TestRoundsThatWaitAreBounded(t *testing.T) {
	u, gaps := unrecorded{}, 0
	for i := range uint32(maxUnrecorded + 5) {
		if u.keep(0, u.join(0, span{first: 3 + i, rounds: []store.Round{{Tokens: uint64(i)}}})) {
			gaps++
		}
	}
	if s := u[0]; s.first != 8 || s.givenUp != 3 || len(s.rounds) != maxUnrecorded || s.rounds[0].Tokens != 5 || gaps != 1 {
		t.Errorf("from round %d on %d rounds wait, the first with %d tokens, given up from %d on, told %d times",
			s.first, len(s.rounds), s.rounds[0].Tokens, s.givenUp, gaps)
	}
	if s := u.join(0, span{first: 5, rounds: []store.Round{{Tokens: 9}}}); s.first != 5 || len(s.rounds) != 1 || s.givenUp != 3 {
		t.Errorf("a fold from among those given up: %+v", s)
	}
	if s := u.join(0, span{first: 3, rounds: []store.Round{{Tokens: 9}}}); s.first != 3 || len(s.rounds) != 1 || s.givenUp != 0 {
		t.Errorf("a fold from before them: %+v", s)
	}
}

// Rounds that were given up leave a gap, and nothing of what they were before.
func TestRoundsGivenUpLeaveAGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := recorder(t, &sickDisk{})
		n.keepRounds(1, span{first: 1, rounds: make([]store.Round, 5)})
		given := rapid.Uint32Range(1, 6).Draw(t, "the first round that a late delta changes")
		more := rapid.Uint32Range(1, 9).Draw(t, "rounds too many")
		for r := given; r < given+maxUnrecorded+more; r++ {
			n.unrecorded.keep(1, n.unrecorded.join(1, span{first: r, rounds: []store.Round{{Tokens: uint64(r)}}}))
		}
		last := given + maxUnrecorded + more
		n.keepRounds(1, span{first: last, rounds: []store.Round{{Tokens: uint64(last)}}})
		for r := uint32(1); r <= last; r++ {
			got, err := n.store.Round(1, r)
			switch has := err == nil; {
			case r < given && (!has || got.Tokens != 0):
				t.Fatalf("round %d, before all that changed: %+v, %v", r, got, err)
			case r >= given && r < given+more && !errors.Is(err, store.ErrNotFound):
				t.Fatalf("round %d was given up and has a record: %+v, %v", r, got, err)
			case r >= given+more && (!has || got.Tokens != uint64(r)):
				t.Fatalf("round %d, of those that waited: %+v, %v", r, got, err)
			}
		}
		if len(n.unrecorded) != 0 {
			t.Fatalf("%d fragments wait", len(n.unrecorded))
		}
	})
}

// recorder is a node as far as records of rounds need it.
func recorder(t *rapid.T, sick *sickDisk) *node {
	dir, err := os.MkdirTemp("", "rounds")
	if err != nil {
		t.Fatal(err)
	}
	s, err := sick.disk().Open(dir, wire.RunID{1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		sick.errno.Store(0)
		_ = s.Close()
		_ = os.RemoveAll(dir)
	})
	return &node{store: s, log: slog.New(slog.DiscardHandler), inbox: newMailbox[func(core.Time)](), unrecorded: unrecorded{}}
}

// What the ledger lacks it says, and a replay begins after it.
func TestLedgerTellsOfRoundsWithoutARecord(t *testing.T) {
	l := newLedger(t).rounds(6).bases()
	last, err := l.store.Round(0, 6)
	l.check(err)
	l.check(l.store.TruncateRounds(0, 3))
	l.check(l.store.PutRound(0, 6, last))
	dir := l.close()
	view, err := inspect.Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, whole := view.Fragments[0], view.Fragments[1]
	if f.Missing != 2 || f.Closed != 6 || f.Deltas != 4*2 || f.Open != 0 || f.HeldFrom != 6 {
		t.Errorf("rounds 4 and 5 have no record: %+v", f)
	}
	if whole.Missing != 0 || whole.Deltas != 6*2 || whole.HeldFrom != 1 {
		t.Errorf("all rounds have one: %+v", whole)
	}
	if v, err := inspect.Verify(t.Context(), dir); err != nil || v.From[0] != 6 || v.From[1] != 0 {
		t.Errorf("replay: %+v, %v", v, err)
	}
}
