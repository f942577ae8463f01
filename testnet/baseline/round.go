package baseline

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// round makes one round: it trains, passes the contribution around the ring as it comes,
// and applies the sum. It reports whether the view ends with it.
func (m *Member) round(ctx context.Context, v View, c *ringConn) (stop bool, err error) {
	from, n := m.Label(), len(v.Members)
	r := reduction{member: m, conn: c, from: from, ring: NewRing(v.place(m.net.ID()), n, c.sizes), trained: make(chan struct{})}
	if err := r.run(ctx, m.silenceLimit(v)); err != nil {
		return false, err
	}
	began := time.Now()
	if err := m.learner.Apply(from, n); err != nil {
		return false, &learnerError{err}
	}
	m.account.spend(applying, began)
	tokens := m.learner.Tokens(from, n)
	next := Label{View: v.Number, Round: from.Round + 1, Tokens: from.Tokens + tokens}
	m.reach(next)
	m.account.contributed(tokens/uint64(n), time.Now())
	return r.tail[0] > 0 || next.Tokens >= m.budget, nil
}

// tailValues is the size of the last bucket, which does not belong to the vector: how
// many members want the view to end.
const tailValues = 1

// reduction is the all-reduce of one round while the learner trains for it.
type reduction struct {
	member  *Member
	conn    *ringConn
	from    Label
	ring    *Ring
	tail    [tailValues]float32
	given   int           // buckets of the vector that were contributed, from its end on
	trained chan struct{} // closed when the learner is done
	own     error         // of the learner, once it is
}

// run trains and reduces at the same time. It returns when the sum is complete, or when
// nothing came for so long that it never will be; the learner is at rest then.
func (r *reduction) run(ctx context.Context, silenceLimit time.Duration) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	final := make(chan int) // offsets from which on the vector is final
	go func() {
		defer close(r.trained)
		r.own = r.train(ctx, final)
	}()
	err := r.exchange(ctx, silenceLimit, final)
	cancel()
	<-r.trained
	if r.own != nil && !errors.Is(r.own, context.Canceled) {
		return &learnerError{r.own}
	}
	return err
}

// train runs the learner, and with overlap says which offsets are final as they come.
func (r *reduction) train(ctx context.Context, final chan<- int) error {
	return r.member.learner.Round(ctx, r.from, r.ring.n, func(lo int) {
		if !r.member.overlap || lo == 0 { // all of it: the learner says so by its return
			return
		}
		select {
		case final <- lo:
		case <-ctx.Done():
		}
	})
}

// exchange passes frames on until the ring is done and the learner as well.
func (r *reduction) exchange(ctx context.Context, silenceLimit time.Duration, final <-chan int) error {
	idle := time.NewTimer(silenceLimit)
	defer idle.Stop()
	trained, in := r.trained, r.conn.in
	var waits time.Time // since when the learner is done
	for trained != nil || !r.ring.Done() {
		if r.ring.Done() {
			in = nil // what comes now is of the next round
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case lo := <-final:
			r.contribute(lo)
		case <-trained:
			if r.own != nil {
				return r.own
			}
			trained, waits = nil, time.Now()
			r.finishTraining()
			idle.Reset(silenceLimit)
		case f := <-in:
			if err := r.receive(f); err != nil {
				return err
			}
			idle.Reset(silenceLimit)
		case <-idle.C:
			if trained == nil {
				return fmt.Errorf("nothing came from the member before in the ring for %v", silenceLimit)
			}
			idle.Reset(silenceLimit) // this member is slow itself
		}
	}
	r.member.account.spend(waiting, waits)
	return nil
}

// finishTraining contributes what is left, and whether this member wants the view to end.
func (r *reduction) finishTraining() {
	r.contribute(0)
	if r.member.stop.Load() || r.member.leaving.Load() {
		r.tail[0] = 1
	}
	r.conn.send(r.from, r.ring.Contribute(len(r.conn.sizes)-1, r.tail[:]))
}

// contribute gives the ring all buckets at an offset and beyond.
func (r *reduction) contribute(lo int) {
	vector, bounds := r.member.learner.Vector(), r.conn.bounds
	for r.given < len(bounds) {
		b, begin := len(bounds)-1-r.given, 0
		if b > 0 {
			begin = bounds[b-1]
		}
		if begin < lo {
			return
		}
		r.given++
		r.conn.send(r.from, r.ring.Contribute(b, vector[begin:bounds[b]]))
	}
}

func (r *reduction) receive(f roundFrame) error {
	if f.round != r.from.Round+1 {
		return fmt.Errorf("a frame of round %d came in round %d", f.round, r.from.Round+1)
	}
	out, err := r.ring.Receive(f.Frame)
	r.conn.send(r.from, out)
	return err
}
