package training

import (
	"context"
	"sync/atomic"

	"atoll/node/mailbox"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// background does what the loop asks of the learner on a goroutine of its own, while a trainer in another
// process steps: it encodes and decodes beside the steps, and keeps the trainer at rest only while it
// moves values to or from it. What the loop asks for is done in order.
type background struct {
	// turn holds a token. Its holder may ask the trainer for something, and touch what its
	// steps count. It goes to the goroutine that has waited longest.
	turn     chan struct{}
	commands *mailbox.Mailbox[func()]
	most     uint64        // commands that may wait behind the one that is being done, when a step begins
	done     atomic.Uint64 // commands
	did      chan struct{} // holds a token after a command
	has      bool          // the goroutine of the commands has the token of the turn
	over     chan struct{}
}

// newBackground lets one command wait for each fragment of a run when a step begins.
func newBackground(commands *mailbox.Mailbox[func()], fragments int) *background {
	b := &background{turn: make(chan struct{}, 1), commands: commands, most: uint64(fragments), did: make(chan struct{}, 1), over: make(chan struct{})}
	b.turn <- struct{}{}
	return b
}

// left is how many commands wait or are being done.
func (b *background) left() uint64 {
	done := b.done.Load() // first: else one that comes and is done in between would count as less than none
	return b.commands.Count() - done
}

// catchUp waits while too many commands wait. A command gets one turn between two steps. Where steps take long and rounds close
// fast more come than that: without this they would pile up, each with the tips that it brings, and the learner would step a model
// of long ago.
func (b *background) catchUp() {
	for b != nil && b.left() > b.most+1 {
		select {
		case <-b.did:
		case <-b.over:
			return
		}
	}
}

// run does commands until ctx ends, and then those that are left. before runs before each.
func (b *background) run(ctx context.Context, before func()) {
	defer close(b.over)
	for more := true; more; {
		select {
		case <-b.commands.Ready():
		case <-ctx.Done():
			more = false
		}
		b.commands.Each(func(do func()) {
			before()
			do()
			b.Resume()
			b.done.Add(1)
			select {
			case b.did <- struct{}{}:
			default:
			}
		})
	}
}

// Pause implements outer.Device for a command. Without a background worker the trainer rests anyway: commands run between its
// steps.
func (b *background) Pause() {
	if b != nil && !b.has {
		<-b.turn
		b.has = true
	}
}

// Resume implements outer.Device for a command.
func (b *background) Resume() {
	if b != nil && b.has {
		b.has = false
		b.turn <- struct{}{}
	}
}

// device is what a learner knows of the trainer: its values, and when it rests.
type device struct {
	trainer.Trainer
	*background
}

var _ outer.Device = device{}
