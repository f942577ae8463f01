package finality

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// chainAt is the chain digest of a round of a fragment of some chain.
func chainAt(fragment int, round uint32, name byte) wire.Digest {
	return wire.Sum([]byte{byte(fragment), byte(round), byte(round >> 8), name})
}

func feed(t testing.TB, h *History, fragment int, round uint32, name byte, ended bool, authors ...wire.PeerID) {
	t.Helper()
	var folded []Candidate
	for _, a := range authors {
		folded = append(folded, Candidate{Author: a})
	}
	if err := h.Final(fragment, round, chainAt(fragment, round, name), folded, ended); err != nil {
		t.Fatal(err)
	}
}

// Values are the same in whatever order the fragments' rounds come, and come when all are there.
func TestHistoryOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const fragments, rounds = 3, 4*every + 1
		ends := rapid.SliceOfN(rapid.Uint32Range(1, 2*rounds), fragments, fragments).Draw(t, "ends")
		of := func(f int, r uint32) []Candidate {
			return []Candidate{{Author: wire.PeerID{byte(f + 1)}}, {Author: wire.PeerID{byte(r%5 + 1)}, Invite: wire.PeerID{7}, Uses: 2}}
		}
		straight, mixed := NewHistory(every, fragments), NewHistory(every, fragments)
		final := func(h *History, f int, r uint32) {
			if r > ends[f] {
				return
			}
			if err := h.Final(f, r, chainAt(f, r, 0), of(f, r), r == ends[f]); err != nil {
				t.Fatal(err)
			}
		}
		for r := uint32(1); r <= rounds; r++ {
			for f := range fragments {
				final(straight, f, r)
			}
		}
		next := []uint32{1, 1, 1}
		for slices.Min(next) <= rounds {
			f := rapid.IntRange(0, fragments-1).Draw(t, "fragment")
			if next[f] <= rounds {
				final(mixed, f, next[f])
				next[f]++
			}
		}
		found := uint32(0)
		for r := uint32(0); r <= rounds+every; r++ {
			a, knownA := straight.At(r)
			b, knownB := mixed.At(r)
			if knownA != knownB || knownA && a.Digest(testRun) != b.Digest(testRun) {
				t.Fatalf("round %d: %+v %v, in another order %+v %v", r, a, knownA, b, knownB)
			}
			if !knownA {
				continue
			}
			found = r
			if err := a.Validate(); err != nil {
				t.Fatal(err)
			}
			for f, p := range a.Points {
				if want := min(r, ends[f]); p.Round != want || p.Chain != chainAt(f, want, 0) {
					t.Fatalf("round %d, fragment %d: %+v, want that of round %d", r, f, p, want)
				}
			}
			if yes, known := mixed.Holds(a.Points); !yes || !known {
				t.Fatalf("its own chain does not go through %+v", a.Points)
			}
		}
		if mixed.Newest() != found {
			t.Fatalf("newest %d, want %d", mixed.Newest(), found)
		}
		if least := slices.Max(ends); least >= 4*every && found < 4*every {
			t.Fatalf("the newest value is of round %d", found)
		}
	})
}

// A node that took tips knows the values of rounds whose deltas it saw, and whether its chain goes through what is
// certified where it kept a digest.
func TestHistoryReplace(t *testing.T) {
	h := NewHistory(every, 1)
	me := wire.PeerID{1}
	for r := uint32(1); r <= 2*every; r++ {
		feed(t, h, 0, r, 0, false, me)
	}
	// The other chain is the same up to the first value, and its tips are of a later round.
	tip := Tip{Point: Point{Round: 3*every + 1, Chain: chainAt(0, 3*every+1, 1)}}
	h.Replace([]uint32{every}, []Tip{tip})
	for r := uint32(3*every + 2); r <= 5*every; r++ {
		feed(t, h, 0, r, 1, false, me)
	}
	for round, want := range map[uint32]bool{every: true, 2 * every: false, 3 * every: false, 4 * every: false, 5 * every: true} {
		if _, known := h.At(round); known != want {
			t.Errorf("value of round %d: %v, want %v", round, known, want)
		}
	}
	for _, c := range []struct {
		round      uint32
		name       byte
		yes, known bool
	}{
		{every, 0, true, true}, {every, 1, false, true}, {2 * every, 1, false, false},
		{4 * every, 1, true, true}, {4 * every, 0, false, true}, {5 * every, 1, true, true}, {6 * every, 1, false, false},
	} {
		yes, known := h.Holds([]Point{{Round: c.round, Chain: chainAt(0, c.round, c.name)}})
		if yes != c.yes || known != c.known {
			t.Errorf("chain %d at round %d: %v, known %v", c.name, c.round, yes, known)
		}
	}
	if yes, known := h.Holds(nil); yes || !known {
		t.Error("a chain of no fragments is held")
	}
	if err := h.Final(0, 9*every, wire.Digest{}, nil, false); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("a gap: %v", err)
	}
	// Tips of its own chain change nothing.
	before := h.Newest()
	h.Replace([]uint32{5 * every}, []Tip{{Point: Point{Round: 5 * every, Chain: chainAt(0, 5*every, 1)}}})
	if h.Newest() != before {
		t.Errorf("newest %d, and it was %d", h.Newest(), before)
	}
}

// A fragment that ended before the tips that a node took has ended there too: later values have its last round.
func TestHistoryReplaceAtTheEnd(t *testing.T) {
	for _, end := range []uint32{every + 1, 2 * every} {
		h := NewHistory(every, 2)
		h.Replace(make([]uint32, 2), []Tip{
			{Point: Point{Round: end, Chain: chainAt(0, end, 0)}, Ended: true}, {Point: Point{Round: 2 * every, Chain: chainAt(1, 2*every, 0)}},
		})
		for r := uint32(2*every + 1); r <= 3*every; r++ {
			feed(t, h, 1, r, 0, r == 3*every, wire.PeerID{1})
		}
		want := []Point{{Round: end, Chain: chainAt(0, end, 0)}, {Round: 3 * every, Chain: chainAt(1, 3*every, 0)}}
		if v, known := h.At(3 * every); !known || !slices.Equal(v.Points, want) {
			t.Errorf("ended at %d: points %v, known %v, want %v", end, v.Points, known, want)
		}
		if yes, known := h.Holds(want); !yes || !known {
			t.Errorf("ended at %d: holds %v, known %v", end, yes, known)
		}
		if err := h.Final(0, end+1, wire.Digest{}, nil, false); err == nil {
			t.Errorf("ended at %d: a round after it is taken", end)
		}
	}
}

// A node that took tips of another chain, and hears of what led to them in whatever order, knows the values of that chain:
// all that it has all rounds of, and never another one.
func TestHistoryRecalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const fragments, rounds = 2, 6 * every
		ends := rapid.SliceOfN(rapid.Uint32Range(1, 2*rounds), fragments, fragments).Draw(t, "ends")
		common := rapid.SliceOfN(rapid.Uint32Range(0, 4*every), fragments, fragments).Draw(t, "common")
		author := func(f int, r uint32, name byte) []Candidate {
			return []Candidate{{Author: wire.PeerID{byte(f + 1)}}, {Author: wire.PeerID{byte(r%7+1) + 10*name}}}
		}
		// name of the chain that a round is of: both are one up to what they have in common.
		final := func(h *History, f int, r uint32, name byte) {
			if r <= common[f] {
				name = 0
			}
			if r > ends[f] || h.Last(f) >= r {
				return
			}
			if err := h.Final(f, r, chainAt(f, r, name), author(f, r, name), r == ends[f]); err != nil {
				t.Fatal(err)
			}
		}
		straight, other := NewHistory(every, fragments), NewHistory(every, fragments)
		for r := uint32(1); r <= rounds; r++ {
			for f := range fragments {
				final(straight, f, r, 0)
			}
		}
		tips := make([]Tip, fragments)
		for f := range tips {
			had := rapid.Uint32Range(0, 4*every).Draw(t, "had")
			for r := uint32(1); r <= had; r++ {
				final(other, f, r, 1)
			}
			at := min(ends[f], rapid.Uint32Range(other.Last(f), 5*every).Draw(t, "tip"))
			tips[f] = Tip{Point: Point{Round: at, Chain: chainAt(f, at, 0)}, Ended: at == ends[f]}
			if at == 0 {
				tips[f].Chain = wire.Digest{}
			}
		}
		other.Replace(common, tips)
		recalls := rapid.SliceOfN(rapid.Uint32Range(0, 3*every), fragments, fragments).Draw(t, "recalls")
		for range 4 * rounds {
			f := rapid.IntRange(0, fragments-1).Draw(t, "fragment")
			if r := other.First(f) - 1; rapid.Bool().Draw(t, "earlier") && r > 0 && r+recalls[f] > tips[f].Round {
				if err := other.Earlier(f, r, chainAt(f, r, 0), author(f, r, 0)); err != nil {
					t.Fatal(err)
				}
			} else if r := other.Last(f) + 1; r <= rounds {
				final(other, f, r, 0)
			}
		}
		for f := range fragments {
			for r := other.Last(f) + 1; r <= rounds; r++ {
				final(other, f, r, 0)
			}
			for r := other.First(f) - 1; r > 0 && r+recalls[f] > tips[f].Round; r-- {
				if err := other.Earlier(f, r, chainAt(f, r, 0), author(f, r, 0)); err != nil {
					t.Fatal(err)
				}
			}
		}
		for round := uint32(every); round <= rounds; round += every {
			want, has := straight.At(round)
			got, known := other.At(round)
			all := true
			for f := range fragments {
				all = all && (other.First(f) <= round-every+1 || tips[f].Ended && tips[f].Round <= round-every)
			}
			if known && (!has || got.Digest(testRun) != want.Digest(testRun)) {
				t.Fatalf("round %d: %+v, want %+v", round, got, want)
			}
			if has && all && !known {
				t.Fatalf("round %d: unknown", round)
			}
			if yes, known := other.Holds(want.Points); has && known && !yes {
				t.Fatalf("round %d: its chain does not go through %+v", round, want.Points)
			}
		}
	})
}

// What is kept is bounded, and the newest certificate's value stays.
func TestHistoryIsBounded(t *testing.T) {
	h := NewHistory(1, 1)
	for r := uint32(1); r <= 2*maxMarks; r++ {
		feed(t, h, 0, r, 0, false, wire.PeerID{1})
	}
	if _, known := h.At(1); !known {
		t.Error("the first value is given up before it is certified")
	}
	h = NewHistory(1, 1)
	h.Keep(7)
	for r := uint32(1); r <= 3*maxMarks; r++ {
		feed(t, h, 0, r, 0, false, wire.PeerID{1})
	}
	if len(h.marks) > maxMarks {
		t.Errorf("%d values", len(h.marks))
	}
	for round, want := range map[uint32]bool{7: true, 8: false, 3 * maxMarks: true, 2*maxMarks + 2: true} {
		if _, known := h.At(round); known != want {
			t.Errorf("value of round %d: %v", round, known)
		}
	}
}

// Rounds in which nothing was folded have no value.
func TestHistoryOfNobody(t *testing.T) {
	h := NewHistory(every, 1)
	for r := uint32(1); r <= 2*every; r++ {
		if r <= every {
			feed(t, h, 0, r, 0, false)
		} else {
			feed(t, h, 0, r, 0, false, wire.PeerID{1})
		}
	}
	if v, known := h.At(every); known {
		t.Errorf("%+v", v)
	}
	if h.Newest() != 2*every {
		t.Errorf("newest %d", h.Newest())
	}
}
