package testnet

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
	"atoll/testnet/controls"
)

// instruct tells every process what it has not been told. One that does not
// answer, because it starts or hangs, is told when it does.
func (w *world) instruct(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	var wg sync.WaitGroup
	failed := make([]error, len(w.members))
	for i, m := range w.members {
		l, want := m.current(), w.orders(m)
		if l == nil || !l.seen || l.paused || l.asked || l.killed || reflect.DeepEqual(l.told, want) {
			continue
		}
		wg.Go(func() { failed[i] = m.order(ctx, l, want) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// orders are what a node is to be told now. They follow from what chaos does, and stand until they change.
func (w *world) orders(m *member) controls.Orders {
	want := controls.Orders{Pace: w.paceOf(m), Link: m.link, InvertedGradient: m.inverted}
	for _, other := range w.members {
		var id wire.PeerID
		if known := id.UnmarshalText([]byte(other.id())) == nil; known && w.parted(m.index, other.index) {
			want.Block = append(want.Block, id)
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

// order passes orders on. A process that has gone or does not answer in
// time is no error: it is told again.
func (m *member) order(ctx context.Context, l *life, want controls.Orders) error {
	err := controls.Order(ctx, m.dir, want)
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
	if err := controls.Corrupt(ctx, m.dir, flip); err != nil {
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
