package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/status"
	"atoll/optimizer/trainer/external"
)

// Times of an ordered leave, from the request on. People wait five seconds.
const (
	// stepWithin is what the step under way gets to end by itself. Then it is
	// cut: what was stepped before it can only be published between two steps.
	stepWithin = time.Second
	// leaveWithin is when the loop gives up on peers that do not take what this
	// node made: it is on the disk, and goes out after the next start.
	leaveWithin = 3 * time.Second
	// goneWithin is when the process ends whatever hangs. The rest of the five
	// seconds is the process's own end.
	goneWithin = 4500 * time.Millisecond
)

// leaves is one of the last two of these times. A program that trains has steps that cannot be cut.
func (c Config) leaves(d time.Duration) time.Duration {
	if c.Learner != "" {
		d += external.LeaveWithin
	}
	return c.within(d)
}

// within is one of these times, or what a test gives instead.
func (c Config) within(d time.Duration) time.Duration { return d * time.Duration(1+c.calm) }

// ErrHung says that an ordered leave did not come to its end in time. What the
// folder holds is as good as after a power cut.
var ErrHung = errors.New("the node did not end in order")

// takePart is live and close, and does not wait for what hangs. After the end of
// ctx it returns in time; goroutines that hang are left to the end of the process.
func (n *node) takePart(ctx context.Context) (status.Snapshot, error) {
	ctx, n.quit = context.WithCancel(ctx)
	defer n.quit()
	n.work.goRun(n.clock.Look)
	ended := make(chan error, 1)
	go func() {
		err := n.live(ctx)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = nil // told to leave before there was anything to hand over
		}
		if err != nil && n.cfg.Link.Invite != nil && n.record != nil && n.record.get().Visits && !errors.Is(err, p2p.ErrNotAdmitted) {
			err = fmt.Errorf("%w. This try took no use of the link", err)
		}
		ended <- errors.Join(err, n.close())
	}()
	if inTime, err := n.await(ctx, ended); inTime {
		return n.lastStatus(), err
	}
	return n.abandoned()
}

// await returns what comes from ended, unless that takes longer than goneWithin
// after the end of ctx.
func (n *node) await(ctx context.Context, ended <-chan error) (inTime bool, err error) {
	select {
	case err := <-ended:
		return true, err
	case <-ctx.Done():
	}
	defer time.AfterFunc(n.cfg.leaves(leaveWithin), n.work.cutFolds).Stop()
	begun, gone := n.clock.Awake(), n.cfg.leaves(goneWithin)
	for left := gone; left > 0; left = gone - (n.clock.Awake() - begun) {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(left): // or the process slept meanwhile
		}
	}
	return false, nil
}

// abandoned is what Run returns when the end of the node hangs. Before it was in
// there was nothing to lose, and at the very end only what saves a restart work.
func (n *node) abandoned() (status.Snapshot, error) {
	s := n.latest.Load()
	if s == nil {
		return n.lastStatus(), nil
	}
	if n.safe.Load() {
		return *s, nil
	}
	return *s, fmt.Errorf("%w within %v: its disk or its learner hangs, or this machine is overloaded; what was not published is lost, the folder %s is safe, and the same command goes on from it", ErrHung, status.Duration(n.cfg.leaves(goneWithin)), n.cfg.Dir)
}

// leave begins an ordered leave.
func (n *node) leave() {
	if !n.leaving.IsZero() {
		return
	}
	n.quit()
	n.leaving, n.leftAt = time.Now(), n.clock.Awake()
	n.replica.Leave(n.clock.Now())
}

// mayExit says whether the loop is done. Either the run is over and nobody in
// sight needs this node any more, or an ordered leave has handed over what it had
// to.
func (n *node) mayExit() bool {
	if !n.leaving.IsZero() {
		return n.allTold() && n.machine.View().MayLeave() || n.replica.LeftTooLong()
	}
	return !n.cfg.Stay && n.machine.View().MayEnd(n.clock.Now())
}

// allTold says that the machine knows of every step that was taken.
func (n *node) allTold() bool {
	return (n.train == nil || n.train.AtRest()) && n.inbox.Empty()
}

// endStep cuts a step that keeps a leaver from publishing what came before it.
func (n *node) endStep() {
	if n.leaving.IsZero() || n.cut || n.train == nil || n.clock.Awake()-n.leftAt < n.cfg.within(stepWithin) {
		return
	}
	n.cut = true
	n.train.CutStep()
}
