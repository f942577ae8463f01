package outer

import "fmt"

// Misfit is the error of a replay: a recorded delta that the fold refuses, or a round that cannot
// be folded.
type Misfit struct {
	Fragment int
	Round    uint32
	ID       ID     // zero if no single delta is to blame
	Author   Author // likewise
	Err      error
}

func (m *Misfit) Error() string {
	if m.ID == (ID{}) {
		return fmt.Sprintf("replay fragment %d round %d: %v", m.Fragment, m.Round, m.Err)
	}
	return fmt.Sprintf("replay fragment %d round %d: delta %x by %x does not fit: %v", m.Fragment, m.Round, m.ID[:8], m.Author[:8], m.Err)
}

func (m *Misfit) Unwrap() error { return m.Err }

// Replay folds recorded rounds of every fragment, one fragment after the other, from the start tips and
// returns the last tip of each. next gives the set that was folded in a round, or false after the last. An
// empty set is a round without deltas. visit, unless nil, is told every tip made, in order, and stops the
// replay with an error.
//
// Recorded sets hold what was folded. So a delta that is refused now is not what its author sent, or not
// what was folded. The error is a *Misfit that names it. Payloads are taken as they are; whether their
// hashes agree with the headers is the caller's to check.
func Replay(p Params, plan Plan, start []*Tip, next func(fragment int, round uint32) ([]Contribution, bool), visit func(fragment int, tip *Tip) error) ([]*Tip, error) {
	if len(start) != len(plan) {
		return nil, fmt.Errorf("replay: %d tips for %d fragments", len(start), len(plan))
	}
	tips := make([]*Tip, len(plan))
	for i, f := range plan {
		tips[i] = start[i]
		for {
			set, ok := next(i, tips[i].Round+1)
			if !ok {
				break
			}
			tip, err := replayRound(p, f, i, tips[i], set)
			if err != nil {
				return nil, err
			}
			tips[i] = tip
			if visit == nil {
				continue
			}
			if err := visit(i, tip); err != nil {
				return nil, &Misfit{Fragment: i, Round: tip.Round, Err: err}
			}
		}
	}
	return tips, nil
}

func replayRound(p Params, f Fragment, fragment int, prev *Tip, set []Contribution) (*Tip, error) {
	round := prev.Round + 1
	tip, r, err := Fold(p, f, prev, round, set)
	if err != nil {
		return nil, &Misfit{Fragment: fragment, Round: round, Err: err}
	}
	for _, c := range set {
		if c.Delta.Fragment != fragment {
			return nil, &Misfit{fragment, round, c.Delta.ID, c.Delta.Author, fmt.Errorf("it is of fragment %d", c.Delta.Fragment)}
		}
		for _, refused := range r.Refused {
			if refused.ID == c.Delta.ID {
				return nil, &Misfit{fragment, round, c.Delta.ID, c.Delta.Author, refused.Err}
			}
		}
	}
	return tip, nil
}
