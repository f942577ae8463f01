package node

import (
	"errors"
	"log/slog"
	"os"
	"slices"
	"syscall"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"

	"pgregory.net/rapid"
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
			n.keepRounds(1, span{uint32(start) + 1, want[start:]})
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

// Of more rounds than a node keeps waiting the newest wait.
func TestRoundsThatWaitAreBounded(t *testing.T) {
	u := unrecorded{}
	for i := range uint32(maxUnrecorded + 5) {
		u.keep(0, u.join(0, span{i + 1, []store.Round{{Tokens: uint64(i)}}}))
	}
	if s := u[0]; s.first != 6 || len(s.rounds) != maxUnrecorded || s.rounds[0].Tokens != 5 {
		t.Errorf("from round %d on %d rounds wait, the first with %d tokens", s.first, len(s.rounds), s.rounds[0].Tokens)
	}
	if s := u.join(0, span{3, []store.Round{{Tokens: 9}}}); s.first != 3 || len(s.rounds) != 1 {
		t.Errorf("a fold from before them: %+v", s)
	}
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
