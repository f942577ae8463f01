package inspect

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/store"
)

func TestVerifyFromGenesis(t *testing.T) {
	l := ledgertest.New(t).Rounds(3).Bases().Rounds(2)
	want, tips := l.Tips, len(l.Plan)
	dir := l.Close()
	v, err := Verify(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if v.Rounds != uint64(5*tips) || v.Deltas != uint64(10*tips) || v.Tokens != 1500 || !v.FromGenesis {
		t.Errorf("result %+v", v)
	}
	chain, state := core.Digests(want)
	if v.Chain != chain || v.State != state {
		t.Errorf("digests %v %v, want %v %v", v.Chain, v.State, chain, state)
	}
}

func TestVerifyFromBase(t *testing.T) {
	l := ledgertest.New(t).Rounds(2).Bases().Rounds(2)
	l.Check(l.Store.DropPayload(l.FirstDelta(1, 2)))
	v, err := Verify(t.Context(), l.Close())
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
		spoil func(l *ledgertest.Writer)
		want  string
	}{
		{"flipped byte", func(l *ledgertest.Writer) { l.Flip(l.FirstDelta(1, 3)) }, "delta ID"},
		{"payload gone, no base", func(l *ledgertest.Writer) { l.Check(l.Store.DropPayload(l.FirstDelta(1, 3))) }, "fragment 1: round 3 is not held whole"},
		{"delta left out", func(l *ledgertest.Writer) {
			r, err := l.Store.Round(0, 2)
			l.Check(err)
			r.Folded = r.Folded[:1]
			l.Check(l.Store.PutRound(0, 2, r))
		}, "fragment 0 round 2: chain digest"},
		{"delta of another round", func(l *ledgertest.Writer) {
			r, err := l.Store.Round(0, 2)
			l.Check(err)
			r.Folded[0] = l.FirstDelta(0, 1)
			l.Check(l.Store.PutRound(0, 2, r))
		}, "fragment 0 round 2: delta"},
		{"other state", func(l *ledgertest.Writer) {
			r, err := l.Store.Round(0, 2)
			l.Check(err)
			r.State[0] ^= 1
			l.Check(l.Store.PutRound(0, 2, r))
		}, "fragment 0 round 2: state digest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := ledgertest.New(t).Rounds(4)
			id := l.FirstDelta(1, 3)
			c.spoil(l)
			want := strings.ReplaceAll(c.want, "ID", id.String())
			if _, err := Verify(t.Context(), l.Close()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one with %q", err, want)
			}
		})
	}
}

func TestLoadModel(t *testing.T) {
	l := ledgertest.New(t).Rounds(3).Bases().Rounds(1)
	want := l.Genesis.Global(l.Tips)
	g, slab, tokens, err := LoadModel(context.Background(), l.Close())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, l.Genesis) || tokens != 1200 {
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
	l := ledgertest.New(t).Rounds(2).Bases().Rounds(1)
	good := l.Genesis.Global(l.Tips)
	stale := *l.Tips[0]
	stale.Chain[0] ^= 1
	l.Check(l.Store.PutBase(0, stale.Round, &stale))
	_, slab, _, err := LoadModel(context.Background(), l.Close())
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
	if _, _, _, err := LoadModel(t.Context(), empty); !errors.Is(err, ErrNoNodeFolder) || !strings.Contains(err.Error(), "atoll join") {
		t.Errorf("LoadModel: %v", err)
	}
	if _, err := Verify(t.Context(), empty); !errors.Is(err, ErrNoNodeFolder) {
		t.Errorf("Verify: %v", err)
	}
	if _, err := Ledger(empty); !errors.Is(err, ErrNoNodeFolder) {
		t.Errorf("Ledger: %v", err)
	}
	l := ledgertest.New(t)
	if _, err := Ledger(l.Dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("Ledger of a folder in use: %v", err)
	}
	l.Close()
}

func TestLedger(t *testing.T) {
	l := ledgertest.New(t).Rounds(2)
	l.Delta(0, 3, 0, l.Keys[0]) // known, not folded
	view, err := Ledger(l.Close())
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

// What a guest made has no share of the budget, and is in the account of who made it all the same.
func TestLedgerOfGuests(t *testing.T) {
	g, owner := ledgertest.Guests(1 << 40)
	l := ledgertest.NewOf(t, g)
	l.Admit(owner, 0, false)
	l.Admit(owner, 1, true)
	dir := l.Rounds(2).Close()
	view, err := Ledger(dir)
	if err != nil || len(view.Authors) != 2 {
		t.Fatalf("view %+v, %v", view, err)
	}
	host, guest := view.Authors[0], view.Authors[1]
	if view.TokensFolded != 200 || host.Tokens != 200 || host.Share != 1 || host.Beyond != 0 || guest.Tokens != 0 || guest.Share != 0 || guest.Beyond != 400 || guest.Deltas != 4 {
		t.Errorf("%v tokens folded, authors %+v", view.TokensFolded, view.Authors)
	}
	moments, err := Moments(dir)
	if err != nil || len(moments) == 0 || moments[len(moments)-1].By[guest.Author] != 0 || moments[len(moments)-1].By[host.Author] != 200 {
		t.Errorf("moments %+v, %v", moments, err)
	}
}

// What the ledger lacks it says, and a replay begins after it.
func TestRoundsWithoutARecord(t *testing.T) {
	l := ledgertest.New(t).Rounds(6).Bases()
	last, err := l.Store.Round(0, 6)
	l.Check(err)
	l.Check(l.Store.TruncateRounds(0, 3))
	l.Check(l.Store.PutRound(0, 6, last))
	dir := l.Close()
	view, err := Ledger(dir)
	l.Check(err)
	f, whole := view.Fragments[0], view.Fragments[1]
	if f.Missing != 2 || f.Closed != 6 || f.Deltas != 4*2 || f.Open != 0 || f.HeldFrom != 6 {
		t.Errorf("rounds 4 and 5 have no record: %+v", f)
	}
	if whole.Missing != 0 || whole.Deltas != 6*2 || whole.HeldFrom != 1 {
		t.Errorf("all rounds have one: %+v", whole)
	}
	if v, err := Verify(t.Context(), dir); err != nil || v.From[0] != 6 || v.From[1] != 0 {
		t.Errorf("replay: %+v, %v", v, err)
	}
}

// A ledger whose old payloads are gone says from which round on it is whole, and a replay
// begins there.
func TestDroppedPayloads(t *testing.T) {
	l := ledgertest.New(t).Rounds(4).Bases().Rounds(8).Bases()
	kept, err := l.Store.Retain(1, []uint32{4, 4}, nil)
	if err != nil || kept.Dropped != 4*2*2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	dir := l.Close()
	view, err := Ledger(dir)
	if err != nil || view.Fragments[0].HeldFrom != 5 || view.Fragments[1].HeldFrom != 5 || len(view.Deltas) != 2*2*12 {
		t.Errorf("ledger: %+v, %v", view.Fragments, err)
	}
	if v, err := Verify(t.Context(), dir); err != nil || v.From[0] != 4 || v.From[1] != 4 || v.FromGenesis {
		t.Errorf("replay: %+v, %v", v, err)
	}
}
