package outer

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// recorded is a run of two fragments: what was folded, and the tips that came of it.
type recorded struct {
	p    Params
	plan Plan
	sets [2][][]Contribution
	tips [2][]*Tip
}

func record(t *testing.T) *recorded {
	r := &recorded{p: toyParams(), plan: NewPlan(toyViews(), 2)}
	r.p.Fragments = 2
	for i, f := range r.plan {
		tip := Genesis(f, vector(uint64(i), f.Len), r.p)
		r.tips[i] = []*Tip{tip}
		for round := uint32(1); round <= 4; round++ {
			var set []Contribution
			for author := byte(0); author < byte(round)%3; author++ {
				c := contribution(t, r.p, author, round, vector(uint64(author), f.Len))
				c.Delta.Fragment = i
				set = append(set, c)
			}
			tip = mustFold(t, r.p, f, tip, set...)
			r.sets[i], r.tips[i] = append(r.sets[i], set), append(r.tips[i], tip)
		}
	}
	return r
}

func (r *recorded) start(round int) []*Tip { return []*Tip{r.tips[0][round], r.tips[1][round]} }

func (r *recorded) next(fragment int, round uint32) ([]Contribution, bool) {
	if int(round) > len(r.sets[fragment]) {
		return nil, false
	}
	return r.sets[fragment][round-1], true
}

func TestReplayReproducesTheRun(t *testing.T) {
	r := record(t)
	for from := range 4 {
		seen := 0
		tips, err := Replay(r.p, r.plan, r.start(from), r.next, func(fragment int, tip *Tip) error {
			seen++
			if tip.State != r.tips[fragment][tip.Round].State {
				return errors.New("another state")
			}
			return nil
		})
		if err != nil || seen != 2*(4-from) {
			t.Fatalf("from round %d: %v after %d tips", from, err, seen)
		}
		for i, tip := range tips {
			if tip.State != r.tips[i][4].State {
				t.Errorf("from round %d: fragment %d ends elsewhere", from, i)
			}
		}
	}
}

func TestReplayNamesTheDeltaThatDoesNotFit(t *testing.T) {
	r := record(t)
	c := &r.sets[1][1][0]
	c.Payload = bytes.Clone(c.Payload)
	c.Payload[1] ^= 0x40
	_, err := Replay(r.p, r.plan, r.start(0), r.next, nil)
	var misfit *Misfit
	if !errors.As(err, &misfit) || misfit.ID != c.Delta.ID || misfit.Fragment != 1 || misfit.Round != 2 || misfit.Unwrap() == nil {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "does not fit") {
		t.Error(err)
	}
}

func TestReplayRefusesADeltaOfAnotherFragment(t *testing.T) {
	r := record(t)
	r.sets[0][0][0].Delta.Fragment = 1
	var misfit *Misfit
	if _, err := Replay(r.p, r.plan, r.start(0), r.next, nil); !errors.As(err, &misfit) || misfit.ID != r.sets[0][0][0].Delta.ID {
		t.Fatal(err)
	}
}

func TestReplayStopsWhereTheVisitorSays(t *testing.T) {
	r := record(t)
	stop := errors.New("digest differs")
	_, err := Replay(r.p, r.plan, r.start(0), r.next, func(fragment int, tip *Tip) error {
		if tip.Round == 3 {
			return stop
		}
		return nil
	})
	var misfit *Misfit
	if !errors.As(err, &misfit) || !errors.Is(err, stop) || misfit.Round != 3 || misfit.ID != (ID{}) {
		t.Fatal(err)
	}
	if !strings.Contains(err.Error(), "fragment 0 round 3") {
		t.Error(err)
	}
	if _, err := Replay(r.p, r.plan, nil, r.next, nil); err == nil {
		t.Error("no tips for two fragments")
	}
}
