package outer

import "errors"

// Contribution is a delta and its payload: the progress of a learner on a fragment,
// encoded by codec.
type Contribution struct {
	Delta   Delta
	Payload []byte
}

// Refusal says why a delta of the set was left out of a fold.
type Refusal struct {
	ID  ID
	Err error
}

// Result tells what a fold did with its set.
type Result struct {
	Folded  []ID      // by author
	Weights []float64 // of Folded, after the share cap; divide by their sum for shares
	Refused []Refusal // by author; the same for every node that holds the set
}

// Reasons for a Refusal that callers decide on.
var (
	// ErrEnded: the delta is for a round after the fragment's last.
	ErrEnded = errors.New("outer: fragment has ended")
	// ErrEquivocation: its author made two deltas for one round.
	ErrEquivocation = errors.New("outer: author made two deltas for one round")
)
