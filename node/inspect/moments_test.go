package inspect

import (
	"testing"

	"atoll/node/inspect/ledgertest"
)

// The moments of a ledger grow to what the ledger says at its end.
func TestMoments(t *testing.T) {
	dir := ledgertest.New(t).Rounds(5).Close()
	moments, err := Moments(dir)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := 5 * len(l.Fragments); len(moments) != want {
		t.Fatalf("%d moments, want %d: one a round", len(moments), want)
	}
	for i := 1; i < len(moments); i++ {
		if moments[i].Tokens <= moments[i-1].Tokens {
			t.Errorf("moment %d has %v tokens, the one before %v", i, moments[i].Tokens, moments[i-1].Tokens)
		}
	}
	end := moments[len(moments)-1]
	if end.Tokens != l.TokensFolded || len(end.By) != 2 {
		t.Errorf("at the end %v tokens of %d authors, the ledger has %v of 2", end.Tokens, len(end.By), l.TokensFolded)
	}
	for _, a := range l.Authors {
		if got := end.By[a.Author]; got < 0.999*a.Tokens || got > 1.001*a.Tokens {
			t.Errorf("author %.8s has %v tokens, the ledger %v", a.Author, got, a.Tokens)
		}
	}
	for p, f := range l.Fragments {
		if end.Closed[p] != f.Closed || end.Contributors[p] != 2 {
			t.Errorf("fragment %d: round %d of %d, want %d of 2", p, end.Closed[p], end.Contributors[p], f.Closed)
		}
	}
	if len(moments[0].By) == 0 || moments[0].Closed[0]+moments[0].Closed[1] != 1 {
		t.Errorf("the first moment is %+v, want that of one round", moments[0])
	}
}

func TestMomentsAreBounded(t *testing.T) {
	dir := ledgertest.New(t).Rounds(maxMoments).Close()
	moments, err := Moments(dir)
	if err != nil || len(moments) != maxMoments || moments[maxMoments-1].Closed[0] != maxMoments {
		t.Errorf("%d moments, %v; want %d, of which the last is the end", len(moments), err, maxMoments)
	}
	if _, err := Moments(t.TempDir()); err == nil {
		t.Error("a folder without a node has moments")
	}
}
