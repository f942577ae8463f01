package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// ledgerWriter makes a node's folder by hand: two learners contribute to every
// round of every fragment.
type ledgerWriter struct {
	t     *testing.T
	dir   string
	g     Genesis
	plan  outer.Plan
	store *store.Store
	keys  []ed25519.PrivateKey
	tips  []*outer.Tip
}

func newLedger(t *testing.T) *ledgerWriter {
	t.Helper()
	return newLedgerOf(t, toyGenesis(1<<40))
}

func newLedgerOf(t *testing.T, g Genesis) *ledgerWriter {
	t.Helper()
	l := &ledgerWriter{t: t, dir: t.TempDir(), g: g}
	l.plan, l.tips = l.g.Plan(), l.g.Tips()
	for seed := range byte(2) {
		l.keys = append(l.keys, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed + 1}, ed25519.SeedSize)))
	}
	l.check(store.SaveGenesis(l.dir, l.g.Encode()))
	var err error
	l.store, err = store.Open(l.dir, l.g.RunID())
	l.check(err)
	return l
}

func (l *ledgerWriter) check(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// round closes a round of a fragment.
func (l *ledgerWriter) round(p int) {
	l.t.Helper()
	tip := l.tips[p]
	var set []outer.Contribution
	for i, key := range l.keys {
		set = append(set, l.delta(p, tip.Round+1, i, key))
	}
	next, res, err := outer.Fold(l.g.Outer, l.plan[p], tip, tip.Round+1, set)
	l.check(err)
	l.check(l.store.PutRound(p, next.Round, roundRecord(next, res)))
	l.tips[p] = next
}

func (l *ledgerWriter) delta(p int, round uint32, i int, key ed25519.PrivateKey) outer.Contribution {
	l.t.Helper()
	values := make([]float32, l.plan[p].Len)
	for k := range values {
		values[k] = float32((k+int(round)+i)%7) * 1e-3
	}
	payload, err := codec.Encode(l.g.Outer.Codec, values)
	l.check(err)
	h := wire.SignHeader(key, l.g.RunID(), wire.Header{
		Fragment: uint16(p), Round: round, Base: round - 1, Steps: 4, Tokens: uint64(100 * (i + 1)), Precision: 1,
		Codec: uint8(l.g.Outer.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
	id := h.Header.ID(l.g.RunID())
	l.check(l.store.PutDelta(id, h, payload))
	return outer.Contribution{Delta: core.DeltaOf(id, h.Header), Payload: payload}
}

func (l *ledgerWriter) base(p int) {
	l.t.Helper()
	l.check(l.store.PutBase(p, l.tips[p].Round, l.tips[p].Encode()))
}

func (l *ledgerWriter) rounds(n int) *ledgerWriter {
	l.t.Helper()
	for range n {
		for p := range l.plan {
			l.round(p)
		}
	}
	return l
}

func (l *ledgerWriter) bases() *ledgerWriter {
	l.t.Helper()
	for p := range l.plan {
		l.base(p)
	}
	return l
}

// close ends writing and returns the folder.
func (l *ledgerWriter) close() string {
	l.t.Helper()
	l.check(l.store.Close())
	return l.dir
}

// firstDelta is the id of a folded delta of a fragment's round.
func (l *ledgerWriter) firstDelta(p int, round uint32) wire.Digest {
	l.t.Helper()
	r, err := l.store.Round(p, round)
	l.check(err)
	return r.Folded[0]
}

func TestVerifyFromGenesis(t *testing.T) {
	l := newLedger(t).rounds(3).bases().rounds(2)
	want, tips := l.tips, len(l.plan)
	dir := l.close()
	v, err := Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if v.Rounds != uint64(5*tips) || v.Deltas != uint64(10*tips) || v.Tokens != 1500 || !v.FromGenesis {
		t.Errorf("result %+v", v)
	}
	chain, state := digests(want)
	if v.Chain != chain || v.State != state {
		t.Errorf("digests %v %v, want %v %v", v.Chain, v.State, chain, state)
	}
}

func TestDigestsAreTheMachines(t *testing.T) {
	g := toyGenesis(1000)
	tips := g.Tips()
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	m := core.New(core.Config{Params: g.Outer, Plan: g.Plan(), Key: key, Run: g.RunID(), Alone: true}, tips)
	chain, state := digests(tips)
	if c, s := m.Digests(); c != chain || s != state {
		t.Errorf("digests %v %v, the machine has %v %v", chain, state, c, s)
	}
}

func TestVerifyFromBase(t *testing.T) {
	l := newLedger(t).rounds(2).bases().rounds(2)
	l.check(l.store.DropPayload(l.firstDelta(1, 2)))
	v, err := Verify(t.Context(), l.close())
	if err != nil {
		t.Fatal(err)
	}
	if v.FromGenesis || fmt.Sprint(v.From) != "[0 2]" || v.Rounds != 4+2 {
		t.Errorf("result %+v", v)
	}
}

func TestVerifyErrors(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(l *ledgerWriter)
		want  string
	}{
		{"flipped byte", func(l *ledgerWriter) { l.flip(l.firstDelta(1, 3)) }, "delta ID"},
		{"payload gone, no base", func(l *ledgerWriter) { l.check(l.store.DropPayload(l.firstDelta(1, 3))) }, "fragment 1: round 3 is not held whole"},
		{"delta left out", func(l *ledgerWriter) {
			r, err := l.store.Round(0, 2)
			l.check(err)
			r.Folded = r.Folded[:1]
			l.check(l.store.PutRound(0, 2, r))
		}, "fragment 0 round 2: chain digest"},
		{"delta of another round", func(l *ledgerWriter) {
			r, err := l.store.Round(0, 2)
			l.check(err)
			r.Folded[0] = l.firstDelta(0, 1)
			l.check(l.store.PutRound(0, 2, r))
		}, "fragment 0 round 2: delta"},
		{"other state", func(l *ledgerWriter) {
			r, err := l.store.Round(0, 2)
			l.check(err)
			r.State[0] ^= 1
			l.check(l.store.PutRound(0, 2, r))
		}, "fragment 0 round 2: state digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLedger(t).rounds(4)
			id := l.firstDelta(1, 3)
			c.spoil(l)
			want := strings.ReplaceAll(c.want, "ID", id.String())
			if _, err := Verify(t.Context(), l.close()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}

// flip changes one byte of a payload on disk.
func (l *ledgerWriter) flip(id wire.Digest) {
	l.t.Helper()
	name, err := id.MarshalText()
	l.check(err)
	path := filepath.Join(l.dir, "deltas", string(name))
	b, err := os.ReadFile(path)
	l.check(err)
	b[len(b)/2] ^= 1
	l.check(os.WriteFile(path, b, 0o600))
}

func TestLoadModel(t *testing.T) {
	l := newLedger(t).rounds(3).bases().rounds(1)
	want := l.g.Anchor(l.tips)
	g, slab, tokens, err := LoadModel(context.Background(), l.close())
	if err != nil {
		t.Fatal(err)
	}
	if g != l.g || tokens != 1200 {
		t.Errorf("genesis %+v, %d tokens", g, tokens)
	}
	for i, x := range want.Data {
		if slab.Data[i] != x {
			t.Fatalf("value %d is %v, want %v", i, slab.Data[i], x)
		}
	}
}

// A crash may leave a base of a fold that was not recorded any more.
func TestLoadModelPassesOverUnrecordedBase(t *testing.T) {
	l := newLedger(t).rounds(2).bases().rounds(1)
	good := l.g.Anchor(l.tips)
	stale := *l.tips[0]
	stale.Chain[0] ^= 1
	l.check(l.store.PutBase(0, stale.Round, stale.Encode()))
	_, slab, _, err := LoadModel(context.Background(), l.close())
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range good.Data {
		if slab.Data[i] != x {
			t.Fatalf("value %d is %v, want %v", i, slab.Data[i], x)
		}
	}
}

func TestInspectErrors(t *testing.T) {
	empty := t.TempDir()
	if _, _, _, err := LoadModel(t.Context(), empty); !errors.Is(err, ErrNoNodeFolder) || !strings.Contains(err.Error(), "atoll join --dir") {
		t.Errorf("LoadModel: %v", err)
	}
	if _, err := Verify(t.Context(), empty); !errors.Is(err, ErrNoNodeFolder) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := Ledger(empty); !errors.Is(err, ErrNoNodeFolder) {
		t.Errorf("Ledger: %v", err)
	}
	l := newLedger(t)
	if _, err := Ledger(l.dir); !errors.Is(err, store.ErrLocked) || !strings.Contains(err.Error(), "atoll leave") {
		t.Errorf("Ledger of a folder in use: %v", err)
	}
	l.close()
}

func TestLedger(t *testing.T) {
	l := newLedger(t).rounds(2)
	l.delta(0, 3, 0, l.keys[0]) // known, not folded
	view, err := Ledger(l.close())
	if err != nil {
		t.Fatal(err)
	}
	if view.TokensFolded != 600 || len(view.Fragments) != 2 || len(view.Deltas) != 9 || len(view.Authors) != 2 {
		t.Fatalf("view %+v", view)
	}
	first, second := view.Authors[0], view.Authors[1]
	if first.Tokens != 400 || second.Tokens != 200 || second.Open != 1 || first.Deltas != 4 || first.Bytes == 0 {
		t.Errorf("authors %+v", view.Authors)
	}
	if f := view.Fragments[0]; f.Closed != 2 || f.Deltas != 4 || f.Open != 1 || f.Unknown != 0 || f.Tokens != 600 {
		t.Errorf("fragment %+v", f)
	}
	if d := view.Deltas[len(view.Deltas)-1]; !d.Folded || !d.Held || d.Steps != 4 || d.Fragment != 1 {
		t.Errorf("delta %+v", d)
	}
}
