package external

import (
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// MostRows bounds the rows of an evaluation: their places fill half a frame at most.
const MostRows = 1 << 14

// Evaluation is what values are worth on text that is held out.
type Evaluation struct {
	Loss   float64 // mean, in nats a token
	Tokens int     // targets; 0 where the learner does not say
	Bytes  int     // of text that they stand for; 0 where tokens are no bytes
}

// BitsPerByte is the mean number of bits for a byte of text, 0 where nobody knows the bytes.
func (e Evaluation) BitsPerByte() float64 {
	if e.Bytes == 0 {
		return 0
	}
	return e.BitsPerToken() * float64(e.Tokens) / float64(e.Bytes)
}

// BitsPerToken is the mean number of bits for a token.
func (e Evaluation) BitsPerToken() float64 { return e.Loss / math.Ln2 }

// ErrNoEvaluation says that the learner cannot evaluate, or has no text to do it with.
var ErrNoEvaluation = errors.New("the learner does not evaluate")

// ErrSlowEvaluation says that the learner takes too long to evaluate.
var ErrSlowEvaluation = errors.New("the learner evaluates too slowly")

// evaluateWithin is how long the answer to one evaluation may take: its node's outer work waits for it. A framework may
// compile for a minute the first time.
const evaluateWithin = 2 * time.Minute

// Evaluate has the learner say what given values are worth: fill writes them, and starts are the
// places in Config.HeldOut at which rows begin. They pass through the slab, so that a learner needs no
// second copy of its model: what it has is flushed and put aside before, and loaded again after. Params must
// not be read meanwhile. A learner that is lost by it has nothing unflushed, unless the disk was what failed.
func (l *Learner) Evaluate(fill func(values []float32) error, starts []uint64) (e Evaluation, err error) {
	if l.lost != nil {
		return e, l.lost
	}
	if !l.session.hello.Evaluates {
		return e, ErrNoEvaluation
	}
	if err := l.Flush(l.slab.whole()); err != nil {
		return e, err
	}
	if err := l.putAside(); err != nil {
		return e, fmt.Errorf("put the learner's values aside for an evaluation: %w: free some disk space, or use a folder on a larger disk", err)
	}
	l.current = false
	if err = fill(l.slab.values); err == nil {
		e, err = l.evaluate(starts)
	}
	if lost := l.aside.read(l.slab.values); lost != nil {
		return e, l.spoiled(lost)
	}
	if l.lost == nil && l.move("load", l.slab.whole()) == nil { // an error is what lost says
		l.current = true
	}
	return e, err
}

// putAside writes the values of the slab to the disk.
func (l *Learner) putAside() (err error) {
	if l.aside.File == nil {
		if l.aside, err = newAside(l.cfg.Dir); err != nil {
			return err
		}
	}
	return l.aside.put(l.slab.values)
}

// spoiled lets go of a learner whose values the slab has no more: Params have to be set anew, as after a loss.
func (l *Learner) spoiled(err error) error {
	if l.lost == nil {
		err = l.end(err)
	}
	l.accounted = false
	return err
}

// evaluate has the learner load what the slab has, and say what that is worth.
func (l *Learner) evaluate(starts []uint64) (e Evaluation, err error) {
	if err := l.move("load", l.slab.whole()); err != nil {
		return e, err
	}
	a, err := l.askWithin(l.leaving(), evaluateWithin, evaluate{"evaluate", starts}, "evaluated")
	if errors.Is(err, os.ErrDeadlineExceeded) && l.leaving().Err() == nil {
		return e, l.end(fmt.Errorf("%w: no answer for %d rows within %v: let it measure on less text", ErrSlowEvaluation, len(starts), evaluateWithin))
	}
	if refused := (*refusal)(nil); errors.As(err, &refused) {
		return e, fmt.Errorf("%w: %w", ErrNoEvaluation, err)
	}
	if err == nil && (a.Tokens < 0 || a.Bytes < 0 || !(math.Abs(a.Loss) <= math.MaxFloat64)) {
		err = fmt.Errorf("the learner says that the loss of %d tokens, %d bytes, is %v", a.Tokens, a.Bytes, a.Loss)
	}
	if err != nil {
		return e, l.end(err)
	}
	return Evaluation{Loss: a.Loss, Tokens: a.Tokens, Bytes: a.Bytes}, nil
}
