package baseline

import (
	"context"
	"fmt"
	"sync"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// Services of a member.
const (
	ringService  = "baseline/ring/1"
	stateService = "baseline/state/1"
)

// Limits on streams of a ring.
const (
	// arrivalWithin is how long the beginning of a stream may take.
	arrivalWithin = 10 * time.Second
	// connectWithin is how long the members of a view may take to connect the ring: some
	// are still ending the view before.
	connectWithin = 20 * time.Second
	// finishWithin is how long a member waits for the next one to have all.
	finishWithin = 5 * time.Second
	// readAhead is how many frames wait for a member that is busy; more wait at the
	// sender.
	readAhead = 16
)

// arrivals are ring streams that other members opened, one for each of them: a newer view's
// replaces an older one's.
type arrivals struct {
	mu      sync.Mutex
	closed  bool
	streams map[wire.PeerID]arrival
	news    chan struct{} // closed, and made anew, when a stream comes
}

type arrival struct {
	view   uint64
	stream p2p.Stream
}

// serve takes a stream.
func (a *arrivals) serve(from wire.PeerID, s p2p.Stream) {
	err := s.SetReadDeadline(time.Now().Add(arrivalWithin))
	var view uint64
	if err == nil {
		view, err = readHello(s)
	}
	if err == nil {
		err = s.SetReadDeadline(time.Time{})
	}
	if err != nil || !a.add(from, arrival{view, s}) {
		s.Reset()
	}
}

func (a *arrivals) add(from wire.PeerID, new arrival) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	old, there := a.streams[from]
	if a.closed || there && old.view >= new.view || !there && len(a.streams) >= MaxMembers {
		return false
	}
	if there {
		old.stream.Reset()
	}
	if a.streams == nil {
		a.streams = map[wire.PeerID]arrival{}
	}
	a.streams[from] = new
	if a.news != nil {
		close(a.news)
		a.news = nil
	}
	return true
}

// await waits for the stream of a member for a view.
func (a *arrivals) await(ctx context.Context, from wire.PeerID, view uint64) (p2p.Stream, error) {
	for {
		s, news := a.look(from, view)
		if s != nil {
			return s, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, fmt.Errorf("no ring stream from %v: %w", from, context.Cause(ctx))
		}
	}
}

func (a *arrivals) look(from wire.PeerID, view uint64) (p2p.Stream, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x, ok := a.streams[from]; ok && x.view == view {
		delete(a.streams, from)
		return x.stream, nil
	}
	if a.news == nil {
		a.news = make(chan struct{})
	}
	return nil, a.news
}

// close resets what nobody took, and takes nothing more.
func (a *arrivals) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for _, x := range a.streams {
		x.stream.Reset()
	}
	a.streams = nil
}

// ringConn is a member's two neighbours in one view.
type ringConn struct {
	bounds       []int // where the buckets of the vector end
	sizes        []int // of all buckets; the last is the tail
	in, out      chan roundFrame
	silenceLimit func() time.Duration
	fail         context.CancelCauseFunc // ends the view
	gone         <-chan struct{}         // closed when it has ended

	sent          chan struct{} // closed when nothing is sent any more
	before, after p2p.Stream    // nil for a member alone
	wg            sync.WaitGroup
}

// connectRing opens a stream to the next member and takes one from the member before.
// The caller ends ctx before it closes what is returned.
func (m *Member) connectRing(ctx context.Context, fail context.CancelCauseFunc, v View) (*ringConn, error) {
	c := &ringConn{bounds: m.learner.Buckets(), fail: fail, gone: ctx.Done(), silenceLimit: func() time.Duration { return m.silenceLimit(v) }}
	begin := 0
	for _, end := range c.bounds {
		c.sizes = append(c.sizes, end-begin)
		begin = end
	}
	c.sizes = append(c.sizes, tailValues)
	n, place := len(v.Members), v.place(m.net.ID())
	if n == 1 {
		return c, nil
	}
	plan := NewRing(place, n, c.sizes)
	c.in, c.sent = make(chan roundFrame, readAhead), make(chan struct{})
	c.out = make(chan roundFrame, 2*len(c.sizes)*plan.Hops()) // a round is ended before all of it has left
	if err := m.openRing(ctx, c, v, place); err != nil {
		c.close()
		return nil, err
	}
	c.wg.Go(func() { c.read(plan) })
	c.wg.Go(c.write)
	return c, nil
}

func (m *Member) openRing(ctx context.Context, c *ringConn, v View, place int) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	n := len(v.Members)
	next, before := v.Members[(place+1)%n], v.Members[(place+n-1)%n]
	if c.after, err = m.net.Open(ctx, next, ringService); err != nil {
		c.after = nil
		return err
	}
	if err = c.after.SetWriteDeadline(time.Now().Add(connectWithin)); err != nil {
		return err
	}
	if err = writeHello(c.after, v.Number); err != nil {
		return fmt.Errorf("ring stream to %v: %w", next, err)
	}
	c.before, err = m.arrived.await(ctx, before, v.Number)
	return err
}

// read passes on what the member before sends.
func (c *ringConn) read(plan *Ring) {
	for {
		f, err := readFrame(c.before, plan.PayloadSize)
		if err != nil {
			c.fail(fmt.Errorf("from the member before in the ring: %w", err))
			return
		}
		select {
		case c.in <- f:
		case <-c.gone:
			return
		}
	}
}

// write sends frames to the next member.
func (c *ringConn) write() {
	defer close(c.sent)
	for {
		select {
		case f, more := <-c.out:
			if !more {
				return
			}
			err := c.after.SetWriteDeadline(time.Now().Add(c.silenceLimit()))
			if err == nil {
				err = f.write(c.after)
			}
			if err != nil {
				c.fail(fmt.Errorf("to the next member in the ring: %w", err))
				return
			}
		case <-c.gone:
			return
		}
	}
}

// send queues frames of the round after a state.
func (c *ringConn) send(from Label, frames []Frame) {
	for _, f := range frames {
		select {
		case c.out <- roundFrame{from.Round + 1, f}:
		case <-c.gone:
			return
		}
	}
}

// finish ends the ring after the last round of the view. What is queued is sent, and
// the end of its stream tells the member before that this one has all. It waits for the
// same from the next member: a process that ended before would take with it what had
// not left.
func (c *ringConn) finish() {
	if c.out == nil {
		return
	}
	close(c.out)
	<-c.sent
	_ = c.before.Close() // it may be gone already, and with it the wish to know
	if c.after.SetReadDeadline(time.Now().Add(finishWithin)) == nil {
		_, _ = c.after.Read(make([]byte, 1)) // it never sends: this is its end, or the deadline
	}
}

// close ends the streams at once and waits for the goroutines. The view's context has
// ended before.
func (c *ringConn) close() {
	for _, s := range []p2p.Stream{c.before, c.after} {
		if s != nil {
			_ = s.Reset() // of a stream that may have ended already
		}
	}
	c.wg.Wait()
}
