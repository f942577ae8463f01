package sweep

import (
	"fmt"
	"strconv"
	"strings"
)

// Entry is one trial to run.
type Entry struct {
	Setting Setting
	Seed    uint64
}

// ParsePlan reads a plan, which has one thing on a line:
//
//	# a comment
//	set model=mini tokens=5e5     what all lines below have in common, until set again
//	seeds 1 2                     of all lines below
//	trial arm=atoll h=4,24 mu=0   every combination of the values, for each seed
//
// The error names the line. Trials that the plan has twice are listed once.
func ParsePlan(text string) ([]Entry, error) {
	p := planner{base: Default(), seeds: []uint64{1}, seen: map[Entry]bool{}}
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := p.line(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("plan line %d: %w", number, err)
		}
	}
	return p.entries, nil
}

// maxEntries bounds a plan: a grid with one list too many would run for weeks.
const maxEntries = 10_000

type planner struct {
	base    Setting
	seeds   []uint64
	entries []Entry
	seen    map[Entry]bool
}

func (p *planner) line(verb string, words []string) error {
	switch verb {
	case "set":
		for _, w := range words {
			if err := assign(&p.base, w); err != nil {
				return err
			}
		}
		return nil
	case "seeds":
		return p.setSeeds(words)
	case "trial":
		return p.grid(p.base, words)
	}
	return fmt.Errorf("it begins with %q; use set, seeds or trial", verb)
}

func assign(s *Setting, word string) error {
	name, value, ok := strings.Cut(word, "=")
	if !ok {
		return fmt.Errorf("%q is no NAME=VALUE", word)
	}
	return s.Set(name, value)
}

func (p *planner) setSeeds(words []string) error {
	p.seeds = nil
	for _, w := range words {
		seed, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is no seed", w)
		}
		p.seeds = append(p.seeds, seed)
	}
	if len(p.seeds) == 0 {
		return fmt.Errorf("seeds names none")
	}
	return nil
}

// grid adds every combination of the values of words, the last changing first.
func (p *planner) grid(s Setting, words []string) error {
	if len(words) == 0 {
		return p.add(s)
	}
	name, values, ok := strings.Cut(words[0], "=")
	if !ok {
		return fmt.Errorf("%q is no NAME=VALUE", words[0])
	}
	for value := range strings.SplitSeq(values, ",") {
		next := s
		if err := next.Set(name, value); err != nil {
			return err
		}
		if err := p.grid(next, words[1:]); err != nil {
			return err
		}
	}
	return nil
}

func (p *planner) add(s Setting) error {
	if s = s.read(); s.Merge != clip && s.Baseline != DiLoCo {
		return fmt.Errorf("merge is %q; there is %s alone", s.Merge, clip)
	}
	if err := s.Validate(); err != nil {
		return err
	}
	for _, seed := range p.seeds {
		e := Entry{s, seed}
		if p.seen[e] {
			continue
		}
		if len(p.entries) == maxEntries {
			return fmt.Errorf("more than %d trials", maxEntries)
		}
		p.seen[e] = true
		p.entries = append(p.entries, e)
	}
	return nil
}
