package node

import (
	"bytes"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// another is a folder of another chain of the same run: its rounds lack a delta.
func another(t *testing.T, rounds int) *ledgerWriter {
	l := newLedger(t)
	l.keys = l.keys[:1]
	return l.rounds(rounds)
}

// tipsAndLinks are what a snapshot of a folder's chain brings.
func (l *ledgerWriter) tipsAndLinks(first uint32) (tips []*outer.Tip, links [][]outer.Link) {
	l.t.Helper()
	for p, tip := range l.tips {
		var to []outer.Link
		l.check(l.store.Rounds(p, first, tip.Round, func(round uint32, r store.Round) error {
			to = append(to, linkOf(round, r))
			return nil
		}))
		tips, links = append(tips, tip), append(links, to)
	}
	return tips, links
}

func second[T any](_ T, err error) error { return err }

func (l *ledgerWriter) recorded(fragment int) (rounds []uint32) {
	l.t.Helper()
	l.check(l.store.Rounds(fragment, 1, maxRound, func(round uint32, _ store.Round) error {
		rounds = append(rounds, round)
		return nil
	}))
	return rounds
}

// lastRounds are those of the records on disk.
func (n *node) lastRounds() []uint32 {
	last := make([]uint32, len(n.plan))
	for p := range last {
		var err error
		if last[p], err = n.store.LastRound(p); err != nil {
			panic(err)
		}
	}
	return last
}

// Tips of another chain replace bases and records of all fragments; a restart
// begins with them.
func TestKeepInstalled(t *testing.T) {
	l, other := newLedger(t).rounds(2).bases().rounds(4).bases(), another(t, 5)
	defer l.close()
	defer other.close()
	n := l.loader()
	tips, links := other.tipsAndLinks(4)
	l.check(second(n.keepInstalled(tips, links, n.common(), n.lastRounds())))
	if n.tips.epoch != 1 {
		t.Errorf("epoch %d", n.tips.epoch)
	}
	got, saved, _ := l.load()
	for p := range tips {
		if got[p].State != tips[p].State || saved[p].Closed != 5 || !slices.Equal(l.recorded(p), []uint32{4, 5}) || !slices.Equal(l.diskBases(p), []uint32{5}) {
			t.Errorf("fragment %d: tip %d, closed %d, records %v, bases %v", p, got[p].Round, saved[p].Closed, l.recorded(p), l.diskBases(p))
		}
	}
}

// Records below tips of the own chain stay.
func TestKeepInstalledOfTheOwnChain(t *testing.T) {
	l := newLedger(t).rounds(6)
	defer l.close()
	n := l.loader()
	tips, links := l.tipsAndLinks(3)
	l.check(second(n.keepInstalled(tips, links, n.common(), n.lastRounds())))
	for p := range tips {
		if got := l.recorded(p); !slices.Equal(got, []uint32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("fragment %d: records %v", p, got)
		}
	}
	genesis := make([][]outer.Link, len(tips))
	for p, tip := range l.g.Tips() {
		tips[p], genesis[p] = tip, []outer.Link{{Chain: tip.Chain, State: tip.State}}
	}
	l.check(second(n.keepInstalled(tips, genesis, n.common(), n.lastRounds())))
	if got := l.recorded(0); len(got) != 0 {
		t.Errorf("records at genesis: %v", got)
	}
}

// An error in the middle leaves the chain that was, on disk and in memory, in
// all fragments.
func TestKeepInstalledIsAllOrNothing(t *testing.T) {
	l, other := newLedger(t).rounds(2).bases().rounds(2).bases(), another(t, 5)
	defer l.close()
	defer other.close()
	n := l.loader()
	tips, links := other.tipsAndLinks(4)
	old := l.tips
	l.check(os.RemoveAll(filepath.Join(l.dir, "tmp"))) // no file can be written
	if second(n.keepInstalled(tips, links, n.common(), n.lastRounds())) == nil {
		t.Fatal("installed without writing")
	}
	l.check(os.Mkdir(filepath.Join(l.dir, "tmp"), 0o700))
	if n.tips.epoch != 0 {
		t.Error("folds of the chain that stays were ended")
	}
	got, saved, _ := l.load()
	for p := range old {
		if got[p].State != old[p].State || saved[p].Closed != 4 || !slices.Equal(saved[p].Bases, []uint32{0, 2, 4}) {
			t.Errorf("fragment %d: tip %d, closed %d, bases %v", p, got[p].Round, saved[p].Closed, saved[p].Bases)
		}
		if _, err := n.tips.get(p, 2); err != nil {
			t.Error(err)
		}
	}
}

// A delta of its own that the chain which is left folded, and the new one does
// not, is no longer in flight after a restart: its progress left the parameters
// when it was folded. One that waits for its round still is.
func TestInstallForgetsWhatTheOtherChainLeavesOut(t *testing.T) {
	l, other := newLedger(t).rounds(3), another(t, 5)
	defer l.close()
	defer other.close()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	put := func(p int, round uint32, seq uint64) wire.Digest {
		values, err := codec.Encode(l.g.Outer.Codec, make([]float32, l.plan[p].Len))
		l.check(err)
		h := wire.SignHeader(key, l.g.RunID(), wire.Header{
			Fragment: uint16(p), Round: round, Base: round - 1, Steps: 4, Tokens: 400, Precision: 1,
			Codec: uint8(l.g.Outer.Codec), Size: uint32(len(values)), Payload: wire.Sum(values),
		})
		id := h.Header.ID(l.g.RunID())
		l.check(l.store.PutOwn(id, h, values, store.OwnMeta{Seq: seq}))
		return id
	}
	mine, late := put(0, 4, 1), put(1, 4, 2)
	l.check(l.store.PutRound(0, 4, store.Round{Folded: []wire.Digest{mine}}))
	l.check(l.store.PutRound(1, 4, store.Round{}))
	n := l.loader()
	n.self = wire.PeerIDOf(key)
	left, err := n.keepOf(other, 3)
	l.check(err)
	if !slices.Equal(left.Own[0], []wire.Digest{mine}) || left.Tokens[0] != 400 || len(left.Own[1]) != 0 {
		t.Errorf("left behind: %+v", left)
	}
	own, err := l.store.Own()
	l.check(err)
	if len(own) != 1 || own[0].ID != late {
		t.Errorf("own deltas in flight: %+v, want only that of fragment 1", own)
	}
}

// Where the history that comes with the tips begins after the fork, what is lost
// is what was folded since others last showed the same.
func TestLeftBehindBeforeTheHistory(t *testing.T) {
	l, other := newLedger(t).rounds(5), another(t, 5)
	defer l.close()
	defer other.close()
	n := l.loader()
	n.self = wire.PeerIDOf(l.keys[1]) // whose deltas the other chain lacks
	tips, links := other.tipsAndLinks(4)
	l.check(l.store.Put(commonKey, wire.Marshal([]uint32{2, 0})))
	left, err := n.keepInstalled(tips, links, n.common(), n.lastRounds())
	l.check(err)
	if got := []int{len(left.Own[0]), len(left.Own[1])}; !slices.Equal(got, []int{3, 5}) {
		t.Errorf("%v own deltas left behind, want those of rounds 3 to 5, and of all five", got)
	}
	n.view.left(n, wire.PeerID{1}, left)
	if e := n.lastEvent(); e.Kind != "left a chain" || !strings.Contains(e.Text, "8 own deltas") {
		t.Errorf("event %+v", e)
	}
}

// Own deltas that both chains fold, older than the history that came with the
// tips: their records go, and a restart must not take them for in flight.
func TestInstallForgetsWhatWasFoldedBeforeTheHistory(t *testing.T) {
	l, other := newLedger(t).rounds(1), another(t, 5)
	defer l.close()
	defer other.close()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize))
	values, err := codec.Encode(l.g.Outer.Codec, make([]float32, l.plan[0].Len))
	l.check(err)
	h := wire.SignHeader(key, l.g.RunID(), wire.Header{
		Round: 2, Base: 1, Steps: 4, Tokens: 400, Precision: 1,
		Codec: uint8(l.g.Outer.Codec), Size: uint32(len(values)), Payload: wire.Sum(values),
	})
	id := h.Header.ID(l.g.RunID())
	l.check(l.store.PutOwn(id, h, values, store.OwnMeta{Seq: 1}))
	l.check(l.store.PutRound(0, 2, store.Round{Folded: []wire.Digest{id}}))
	l.check(l.store.Put(commonKey, wire.Marshal([]uint32{2, 2})))
	n := l.loader()
	n.self = wire.PeerIDOf(key)
	left, err := n.keepOf(other, 4)
	l.check(err)
	if len(left.Own[0]) != 0 {
		t.Errorf("left behind: %v, though others had folded it", left.Own[0])
	}
	if own, err := l.store.Own(); err != nil || len(own) != 0 {
		t.Errorf("in flight after a restart: %+v, %v", own, err)
	}
}

// keepOf installs the tips of another ledger, with links from a round on.
func (n *node) keepOf(other *ledgerWriter, first uint32) (core.Left, error) {
	tips, history := other.tipsAndLinks(first)
	return n.keepInstalled(tips, history, n.common(), n.lastRounds())
}
