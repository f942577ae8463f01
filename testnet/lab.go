package testnet

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/testnet/controls"
	"atoll/testnet/shaping"
)

// instructions are what a process is to be told at its controls: they
// follow from what chaos does now, and stand until they change.
type instructions struct {
	pace   time.Duration
	block  []wire.PeerID
	link   shaping.Link
	uphill bool // step away from where it should
}

func (i instructions) equal(other instructions) bool {
	return i.pace == other.pace && i.link == other.link && i.uphill == other.uphill && slices.Equal(i.block, other.block)
}

// instruct tells every process what it has not been told. One that does not
// answer, because it starts or hangs, is told when it does.
func (w *world) instruct(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var wg sync.WaitGroup
	failed := make([]error, len(w.members))
	for i, m := range w.members {
		l, want := m.current(), w.instructions(m)
		if l == nil || !l.seen || l.paused || l.asked || l.killed || l.told.equal(want) {
			continue
		}
		wg.Go(func() { failed[i] = l.tell(ctx, want) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// instructions are what a node is to be told now.
func (w *world) instructions(m *member) instructions {
	want := instructions{pace: w.paceOf(m), link: m.link, uphill: m.uphill}
	for _, other := range w.members {
		var id wire.PeerID
		if known := id.UnmarshalText([]byte(other.id())) == nil; known && w.parted(m.index, other.index) {
			want.block = append(want.block, id)
		}
	}
	return want
}

// paceOf is the least time of a step of a node as it is now.
func (w *world) paceOf(m *member) time.Duration {
	return w.calibration.pace(m.divisor * m.slow)
}

// id is the node's peer id, "" before any process of it said so.
func (m *member) id() string {
	for _, l := range m.lives {
		if l.seen {
			return l.last.Self
		}
	}
	return ""
}

// tell passes instructions on. A process that has gone or does not answer in
// time is no error: it is told again.
func (l *life) tell(ctx context.Context, want instructions) error {
	err := l.steer.Pace(ctx, want.pace)
	if err == nil {
		err = l.steer.Block(ctx, want.block)
	}
	if err == nil && want.link != l.told.link {
		err = l.steer.Link(ctx, want.link)
	}
	if err == nil && want.uphill != l.told.uphill {
		err = l.steer.Uphill(ctx, want.uphill)
	}
	switch {
	case err == nil:
		l.told = want
	case ctx.Err() != nil || errors.Is(err, status.ErrNotRunning):
		return nil
	}
	return err
}

// corrupt flips a bit in a node's memory: one of the upper bits of a mantissa, so
// that no rounding hides it.
func (w *world) corrupt(ctx context.Context, s *scheduled, m *member, now time.Time) error {
	l := m.current()
	p := w.rng.IntN(len(l.last.Fragments))
	flip := controls.BitFlip{Fragment: p, Value: w.rng.IntN(l.last.Fragments[p].Params), Bit: controls.MantissaBits - 1}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	if err := l.steer.Corrupt(ctx, flip); err != nil {
		if ctx.Err() != nil || errors.Is(err, status.ErrNotRunning) {
			return nil // it comes up again
		}
		return err
	}
	s.done = true
	w.corrupted = append(w.corrupted, corruption{member: m, at: now})
	w.screen.say("%s: a bit of the model in %s's memory flips (fragment %d)", clock(now.Sub(w.began)), m.name(), p)
	return nil
}

// corruption is a bit that was flipped.
type corruption struct {
	member *member
	at     time.Time
}
