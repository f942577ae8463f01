package votes

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"atoll/gossip/wire"
)

// bounded is a search and how many states of the world it has: what changes that number changes behaviour.
type bounded struct {
	Bounds
	states int
}

// mostStates bounds the memory of a search: less than a KiB for each.
const mostStates = 4_000_000

// TestSafety searches each of some bounds to the end. ATOLL_LONG=1 adds those that take longer.
func TestSafety(t *testing.T) {
	all := []bounded{
		{Bounds{Views: 1, Liars: 0b1}, 355},
		{Bounds{Views: 2, Liars: 0b11, Ordered: true, Together: true}, 12954},
		{Bounds{Views: 2, Liars: 0b01, Ordered: true, Together: true, Restarts: 1}, 37920},
		{Bounds{Views: 2, Liars: 0b10, Ordered: true, Together: true}, 16528},
	}
	if os.Getenv("ATOLL_LONG") != "" {
		all = append(all, []bounded{
			{Bounds{Views: 2, Liars: 0b11}, 924022},
			{Bounds{Views: 2, Liars: 0b01}, 689920},
			{Bounds{Views: 2, Liars: 0b11, Ordered: true}, 335319},
			{Bounds{Views: 2, Liars: 0b01, Ordered: true}, 208373},
			{Bounds{Views: 2, Liars: 0b10, Ordered: true}, 377686},
			{Bounds{Views: 3, Liars: 0b111, Ordered: true, Together: true}, 603793},
			{Bounds{Views: 3, Liars: 0b101, Ordered: true, Together: true}, 952918},
		}...)
	}
	for _, b := range all {
		began := time.Now()
		r, err := Search(b.Bounds, mostStates)
		t.Logf("%+v: %v in %.1f s", b.Bounds, r, time.Since(began).Seconds())
		switch {
		case err != nil:
			t.Error(err)
		case !r.Whole:
			t.Errorf("%+v: more than %d states", b.Bounds, mostStates)
		case !r.A || !r.B:
			t.Errorf("%+v: nothing to disagree about: A can be certified %v, B %v", b.Bounds, r.A, r.B)
		case b.states != 0 && r.States != b.states:
			t.Errorf("%+v: %d states, and they were %d", b.Bounds, r.States, b.states)
		}
	}
}

// However many of the honest voters took tips of another chain, it is not certified: they would need the vote of one that
// knows the newest certificate. One that did so among three that know it keeps nobody from certifying.
func TestNothingBesideWhatIsCertified(t *testing.T) {
	for _, b := range []Bounds{
		{Views: 1, Liars: 0b1, Astray: 0b011},
		{Views: 1, Liars: 0b0, Astray: 0b011},
		{Views: 2, Liars: 0b11, Together: true, Astray: 0b001},
		{Views: 2, Liars: 0b11, Together: true, Astray: 0b011},
		{Views: 2, Liars: 0b01, Together: true, Astray: 0b011},
		{Views: 2, Liars: 0b10, Together: true, Astray: 0b101},
	} {
		began := time.Now()
		r, err := Search(b, mostStates)
		t.Logf("%+v: %v in %.1f s", b, r, time.Since(began).Seconds())
		if err != nil {
			t.Error(err)
		}
		if one := b.Astray == 0b001; !r.Whole || r.B || r.A != one {
			t.Errorf("%+v: A can be certified %v, B %v, whole %v", b, r.A, r.B, r.Whole)
		}
	}
}

// Histories told in order come to the same sets of precommits as all.
func TestOrderLeavesNothingOut(t *testing.T) {
	all := []Bounds{{Views: 1, Liars: 0b1}, {Views: 1}, {Views: 1, Liars: 0b1, Restarts: 1}}
	if os.Getenv("ATOLL_LONG") != "" {
		all = append(all, Bounds{Views: 2, Liars: 0b11}, Bounds{Views: 2, Liars: 0b01})
	}
	for _, b := range all {
		whole, err := Search(b, mostStates)
		if err != nil {
			t.Fatal(err)
		}
		b.Ordered = true
		ordered, err := Search(b, mostStates)
		if err != nil {
			t.Fatal(err)
		}
		if !whole.Whole || !ordered.Whole || whole.Sealed != ordered.Sealed || whole.A != ordered.A || whole.B != ordered.B {
			t.Errorf("%+v: %v\nand in order: %v", b, whole, ordered)
		}
	}
}

// A search that is cut short says so.
func TestSearchSaysThatItWasCutShort(t *testing.T) {
	r, err := Search(Bounds{Views: 2, Liars: 0b11}, 50)
	if err != nil || r.Whole || r.States != 50 {
		t.Errorf("%v, %v", r, err)
	}
}

// Two certificates are found where votes for two are made that no voter would make, and told with the way there.
func TestFindsTwoCertificates(t *testing.T) {
	s := newSearch(Bounds{Views: 2, Liars: 0b11})
	w := s.begin()
	if text := s.wrong(w); text != "" {
		t.Fatal(text)
	}
	for i := range w.at {
		l := *w.at[i]
		for view, round := range []uint32{roundA, roundB} {
			l.signed = append(l.signed, s.note(wire.SignVote(s.keys[i], s.run, wire.Vote{
				Phase: wire.Precommit, Height: height, View: uint32(view), Round: round, Value: s.digests[round],
			})))
		}
		w.at[i] = &l
	}
	text := s.wrong(w)
	if !strings.Contains(text, "two certificates") {
		t.Errorf("%q", text)
	}
	next := &world{at: w.at, before: w, choice: step{1, inputOf(s.lie(wire.Prevote, 1, roundA, 0))}}
	var broken *Broken
	if err := error(s.broken(next, text)); !errors.As(err, &broken) || !strings.Contains(err.Error(), "voter 1 gets prevote of 3 in view 1 for A") {
		t.Errorf("%v", err)
	}
}
