package sim

import (
	"errors"
	"slices"
	"testing"

	"atoll/testnet/fault"
)

func TestTooManyWon(t *testing.T) {
	rounds := func(from, n int, yes bool) (all []won) {
		for i := range n {
			all = append(all, won{uint32(from + i), yes})
		}
		return all
	}
	for name, c := range map[string]struct {
		spoiled []won
		end     uint32
		want    bool
	}{
		"half of them":             {slices.Concat(rounds(1, 4, false), rounds(5, 4, true)), 8, false},
		"most of them":             {slices.Concat(rounds(1, 4, false), rounds(5, 5, true)), 500, true},
		"a row, at the end":        {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow, true)), 40 + lostInARow, true},
		"a shorter row":            {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow-1, true)), 40 + lostInARow - 1, false},
		"a row with a gap":         {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow/2, true), rounds(42+lostInARow/2, lostInARow/2, true)), 60, false},
		"a row that others break":  {slices.Concat(rounds(1, 40, false), rounds(41, 10, true), rounds(51, 1, false), rounds(52, 10, true)), 62, false},
		"a row, not long before":   {slices.Concat(rounds(1, lostInARow, true), rounds(1+lostInARow, 40, false)), lostPart * lostInARow, true},
		"a row, long before":       {slices.Concat(rounds(1, lostInARow, true), rounds(1+lostInARow, 40, false)), lostPart*lostInARow + 1, false},
		"a longer row, some later": {slices.Concat(rounds(1, lostInARow+1, true), rounds(2+lostInARow, 40, false)), lostPart*lostInARow + lostPart, true},
	} {
		if got := tooManyWon(c.spoiled, c.end); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// hopeless is a task that nobody ever learns.
type hopeless struct{ quadraticTask }

func (hopeless) Learned([]float32) error { return errors.New("nothing is learned") }

// doubtful is a world of so many of which the last flips the sign of its progress after a while, and nobody learns anything.
func doubtful(nodes int) Scenario {
	s := Small(nodes, 40, nil, 1)
	s.Founders[nodes-1].Attack = Attack{Kind: SignFlip, Times: 1, From: 8000}
	s.Task = hopeless{quadraticTask{s.Seed}}
	return s
}

// parted is a world of three in which one of the honest is away, with what would show that the liar lies. Then its deltas come
// late, and those of the other one are folded without the lies that they were made against.
func parted(until Time) Scenario {
	s := doubtful(3)
	s.Founders[2].Attack.From = 1000
	s.Faults = []Fault{{At: 1000, Kind: fault.Partition, Node: 0, Others: []int{1, 2}}, {At: until, Kind: fault.Merge}}
	s.CalmMs = until + 1
	return s
}

// A world promises no loss where a liar outweighs the honest in rounds that judge nobody, and promises it in all others.
func TestLossIsPromisedUnlessLiarsOutweigh(t *testing.T) {
	t.Parallel()
	if r := played(t, doubtful(2)); r.Err != nil {
		t.Error("of two nobody knows who lies:", r.Err)
	}
	late := parted(32_000)
	if r := played(t, late); r.Err != nil {
		t.Error("late deltas show who lied, and the run is over:", r.Err)
	}
	late.Task = nil
	if r := played(t, late); r.Err != nil || r.Loss < r.LossStart/2 {
		t.Errorf("after the lies went the loss is %g of %g at the start: %v", r.Loss, r.LossStart, r.Err)
	}
	for name, change := range map[string]func(s *Scenario){
		"rounds of three are judged":         func(s *Scenario) { *s = doubtful(3) },
		"a slow liar has less than half":     func(s *Scenario) { s.Founders[1].Slow = 3 },
		"later rounds make it good":          func(s *Scenario) { *s = parted(8000) },
		"it lies when the run has ended":     func(s *Scenario) { s.Founders[1].Attack.From = s.LimitMs },
		"what it makes is what it publishes": func(s *Scenario) { s.Founders[1].Attack = Attack{Kind: FalseHeartbeats} },
	} {
		t.Run(name, func(t *testing.T) {
			s := doubtful(2)
			change(&s)
			if r := played(t, s); r.Check != "learns" {
				t.Errorf("a loss that does not fall comes to %q: %v", r.Check, r.Err)
			}
		})
	}
}
