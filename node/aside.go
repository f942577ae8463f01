package node

import (
	"context"
	"sync/atomic"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// aside does what the loop asks of the learner on a goroutine of its own, while a trainer in another
// process steps: it encodes and decodes beside the steps, and keeps the trainer at rest only while it
// moves values to or from it. What the loop asks for is done in order.
type aside struct {
	// turn holds a token. Who has it may ask the trainer for something, and touch what its
	// steps count. It goes to the one that has waited longest.
	turn     chan struct{}
	commands *mailbox[func()]
	most     uint64        // commands that may wait behind the one that is being done, when a step begins
	done     atomic.Uint64 // commands
	did      chan struct{} // holds a token after a command
	has      bool          // the goroutine of the commands has the token of the turn
	over     chan struct{}
}

// newAside lets one command wait for each fragment of a run when a step begins.
func newAside(commands *mailbox[func()], fragments int) *aside {
	a := &aside{turn: make(chan struct{}, 1), commands: commands, most: uint64(fragments), did: make(chan struct{}, 1), over: make(chan struct{})}
	a.turn <- struct{}{}
	return a
}

// left is how many commands wait or are being done.
func (a *aside) left() uint64 {
	done := a.done.Load() // first: else one that comes and is done in between would count as less than none
	return a.commands.count() - done
}

// catchUp waits while too many commands wait. A command gets one turn between two steps. Where steps take long and rounds close
// fast more come than that: without this they would pile up, each with the tips that it brings, and the learner would step a model
// of long ago.
func (a *aside) catchUp() {
	for a != nil && a.left() > a.most+1 {
		select {
		case <-a.did:
		case <-a.over:
			return
		}
	}
}

// run does commands until ctx ends, and then those that are left. before runs before each.
func (a *aside) run(ctx context.Context, before func()) {
	defer close(a.over)
	for more := true; more; {
		select {
		case <-a.commands.ready:
		case <-ctx.Done():
			more = false
		}
		a.commands.each(func(do func()) {
			before()
			do()
			a.GoOn()
			a.done.Add(1)
			select {
			case a.did <- struct{}{}:
			default:
			}
		})
	}
}

// Rest implements outer.Device for a command. Without an aside the trainer rests anyway: commands run between its steps.
func (a *aside) Rest() {
	if a != nil && !a.has {
		<-a.turn
		a.has = true
	}
}

// GoOn implements outer.Device for a command.
func (a *aside) GoOn() {
	if a != nil && a.has {
		a.has = false
		a.turn <- struct{}{}
	}
}

// device is what a learner knows of the trainer: its values, and when it rests.
type device struct {
	trainer.Trainer
	*aside
}

var _ outer.Device = device{}
