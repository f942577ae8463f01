package headline

import (
	"fmt"
	"slices"
	"time"
)

// This file adds turns to a row that is stored: a row of an hour is played in three evenings, or on three machines.

// Part is some turns of a row that were played together.
type Part struct {
	Turns   int       `json:"turns"`
	Seed    uint64    `json:"seed"` // of its first turn
	At      time.Time `json:"at"`
	Machine Machine   `json:"machine"`
}

// turns is how many turns there are in all.
func (r Result) turns() int {
	n := r.Turns
	for _, p := range r.More {
		n += p.Turns
	}
	return n
}

// after has the next turns of a row follow those that are stored: with their pace and their tokens, and with seeds that none of
// them had. Without --runs they are as many as lack of the usual number.
func (s Settings) after(row Row, stored Result) (Settings, error) {
	s.Seed, s.From, s.Scale, s.Quick = stored.Seed, stored.turns(), stored.Scale, stored.Quick
	if row.Pace == 0 {
		s.Pace = time.Duration(stored.PaceMs * float64(time.Millisecond))
	}
	if s.Runs == 0 {
		s.Runs = usualRuns - s.From
	}
	if s.Runs < 1 {
		return s, fmt.Errorf("row %s has %d turns already: say with --runs how many to add: %w", row.Name, s.From, errUsage)
	}
	if !slices.Equal(s.commands(row), stored.Worlds) {
		return s, fmt.Errorf("the worlds of row %s are others than those that are stored: leave out --more, and all turns are played anew: %w", row.Name, errUsage)
	}
	return s, stored.addable()
}

// addable refuses a result that does not know the figures of its turns.
func (r Result) addable() error {
	for _, l := range r.Lines {
		for _, s := range []*Spread{l.Atoll, l.Beside, l.Value} {
			if s != nil && s.values(l.Turns) == nil {
				return fmt.Errorf("the result of row %s was stored without the figures of its turns: leave out --more, and all turns are played anew: %w", r.Row, errUsage)
			}
		}
	}
	return nil
}

// with adds turns that were played later.
func (r Result) with(later Result) Result {
	r.More = append(slices.Clone(r.More), later.Part)
	r.Failed = slices.Concat(r.Failed, later.Failed)
	lines := slices.Clone(r.Lines)
	for _, l := range later.Lines {
		i := slices.IndexFunc(lines, func(have Summary) bool { return have.What == l.What })
		if i < 0 {
			lines = append(lines, l)
			continue
		}
		lines[i] = lines[i].with(l)
	}
	r.Lines = lines
	return r
}

// with adds what later turns came to in the same respect.
func (s Summary) with(later Summary) Summary {
	both := func(a, b *Spread) *Spread { return spread(slices.Concat(a.values(s.Turns), b.values(later.Turns))) }
	s.Atoll, s.Beside, s.Value = both(s.Atoll, later.Atoll), both(s.Beside, later.Beside), both(s.Value, later.Value)
	s.Turns += later.Turns
	s.judge()
	return s
}

// values are the figures of so many turns; nil if they are not known. One turn's is the median.
func (s *Spread) values(turns int) []float64 {
	switch {
	case s == nil:
		return nil
	case s.Values == nil && turns == 1:
		return []float64{s.Median}
	}
	return s.Values
}
