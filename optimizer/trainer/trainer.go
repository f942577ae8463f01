// Package trainer makes the inner steps of one learner. It knows no peers: the
// Trainer interface has what the outer step wants of it. The built-in CPU trainer
// implements it here. Another process with its own accelerators may do so
// elsewhere.
//
// The package also measures: how good parameters are, in bits per byte of text
// that was held out, and how fast this machine makes steps.
package trainer

import (
	"context"
	"errors"
	"io"

	"atoll/optimizer"
)

// Trainer takes inner steps on parameters that it shares with its caller. One
// goroutine uses it at a time.
type Trainer interface {
	// Params returns the parameters, always the same slice. Between steps the
	// caller may change them in place, and the next step starts from there.
	Params() []float32

	// Flush brings what the trainer has of these pieces to Params, and Load has it take them
	// from there. Params are up to date only after Flush, and the next step sees a change only
	// after Load. Both do nothing where the trainer steps Params themselves. Flush wraps ErrLost
	// where nothing is left to bring, and then Params are as they were. Where it wraps ErrDiverged
	// too, it has brought values that are no numbers: the caller sets Params of these pieces anew. A
	// trainer that cannot Load is lost, which its next Flush or Step says.
	Flush(pieces []optimizer.Span) error
	Load(pieces []optimizer.Span)

	// Step takes one optimizer step at learning rate lr on the next batch and
	// returns what it cost and showed. After an error the parameters and the
	// optimizer are as they were before, and the same batch comes next. ErrLost says that what
	// was stepped since the last Flush is gone too; then Restart begins again from Params.
	Step(ctx context.Context, lr float64) (StepResult, error)

	// SaveState gives the inner optimizer's state and the number of steps taken, without the
	// parameters. It is read between steps, and a large one may be read in parts between several: its moments then
	// are of the steps at which they were read, and its number of steps is that of the call.
	SaveState() (io.Reader, error)
	// LoadState takes the trainer back, or forward, to a state of a trainer of the same model. After an
	// error the optimizer is as before, or as before the first step.
	LoadState(io.Reader) error

	// Steps returns how many steps the state has seen.
	Steps() int64

	// Restart begins again after ErrLost, with the last state that SaveState gave.
	Restart(ctx context.Context) error
}

// ErrLost is wrapped by the error of a trainer whose own copy of the parameters is gone.
var ErrLost = errors.New("the learner is gone")

// ErrNoBatch is wrapped by the error of a step whose tokens are not there yet. The same step
// may be tried again later.
var ErrNoBatch = errors.New("waiting for data")

// StepResult tells what one step did.
type StepResult struct {
	Tokens int     // targets in the batch: batch x context
	Loss   float64 // mean loss over them before the step, in nats per token
}

// Source is where a trainer's batches come from. A corpus.Corpus is one.
type Source interface {
	// Fits returns an error if there is less text than one window of so many tokens.
	Fits(context int) error
	// Batch fills dst with rows x (context+1) tokens, row-major: of each row the
	// first context are inputs and the last context their targets. It is a pure
	// function of its arguments, or an error where the tokens are not there yet. It
	// returns soon after ctx ends.
	Batch(ctx context.Context, seed uint64, author [32]byte, step int64, rows, context int, dst []int32) error
}
