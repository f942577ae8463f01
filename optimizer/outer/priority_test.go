package outer

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zeebo/blake3"
)

// Priorities follow from the bytes that SPEC.md names, and from ids among equal ones.
func TestPriorityOf(t *testing.T) {
	run := Digest{1, 2, 3}
	hashOf := func(d Delta) []byte {
		b := append(run[:], d.Author[:]...)
		b = append(b, byte(d.Fragment>>8), byte(d.Fragment), byte(d.Round>>24), byte(d.Round>>16), byte(d.Round>>8), byte(d.Round))
		sum := blake3.Sum256(b)
		return sum[:8]
	}
	var ds []Delta
	for i := range 200 {
		ds = append(ds, Delta{ID: ID{byte(i)}, Author: Author{byte(i), 7}, Fragment: i % 3 * 300, Round: 1 + uint32(i%5)*70_000})
	}
	for _, a := range ds {
		for _, b := range ds {
			if got, want := PriorityOf(run, a).Compare(PriorityOf(run, b)), bytes.Compare(hashOf(a), hashOf(b)); got != want {
				t.Fatalf("the priorities of %+v and %+v compare as %d, their hashes as %d", a, b, got, want)
			}
		}
	}
	other := ds[0]
	other.ID = ID{0, 1}
	if PriorityOf(run, ds[0]).Compare(PriorityOf(run, other)) >= 0 || PriorityOf(run, other).Compare(PriorityOf(run, ds[0])) <= 0 {
		t.Error("two deltas of one author do not come in the order of their ids")
	}
	guest := ds[0]
	for _, d := range ds {
		if guest.Guest = true; PriorityOf(run, guest).Compare(PriorityOf(run, d)) <= 0 || PriorityOf(run, d).Compare(PriorityOf(run, guest)) >= 0 {
			t.Fatalf("a guest comes before %+v", d)
		}
	}
	first := func(run Digest) Author {
		return slices.MinFunc(ds, func(a, b Delta) int { return PriorityOf(run, a).Compare(PriorityOf(run, b)) }).Author
	}
	firsts := map[Author]bool{}
	for i := range 8 {
		firsts[first(Digest{byte(i)})] = true
	}
	if len(firsts) == 1 {
		t.Error("one author is first in every run")
	}
}
