package shaping

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipe connects two nodes in memory.
func pipe(near, far *Shaper) (a, b net.Conn) {
	x, y := net.Pipe()
	return running(near.Conn(newPipeConn(x))), running(far.Conn(newPipeConn(y)))
}

func running(c net.Conn, run func()) net.Conn {
	go run()
	return c
}

// pipeConn is one end of a net.Pipe with a buffer as a socket has one: what has been written arrives even after Close.
type pipeConn struct {
	net.Conn
	out  chan []byte
	once *sync.Once
}

func newPipeConn(c net.Conn) pipeConn {
	p := pipeConn{c, make(chan []byte, 1<<14), new(sync.Once)}
	go func() {
		defer c.Close()
		for b := range p.out {
			if _, err := c.Write(b); err != nil {
				return
			}
		}
	}()
	return p
}

func (p pipeConn) Write(b []byte) (int, error) {
	p.out <- append([]byte(nil), b...)
	return len(b), nil
}

func (p pipeConn) Close() error {
	p.once.Do(func() { close(p.out) })
	return nil
}

func (pipeConn) SetWriteDeadline(time.Time) error { return nil }

func node(s Link) *Shaper { return New(&s, "node1") }

// carried sends so many bytes from a to b, and returns how long they took.
func carried(t *testing.T, a, b net.Conn, size int) time.Duration {
	t.Helper()
	sent := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(sent)
	began := time.Now()
	go io.Copy(io.Discard, a)
	go func() {
		for part := sent; len(part) > 0; {
			n, err := a.Write(part[:min(len(part), 50_000)])
			if err != nil {
				t.Error(err)
				break
			}
			part = part[n:]
		}
		if err := a.Close(); err != nil { // what has left still arrives
			t.Error(err)
		}
	}()
	got, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes of %d, %v", len(got), size, err)
	}
	took := time.Since(began)
	b.Close()
	return took
}

const mbit = 125_000

// A link carries what it says, after its delay, whichever end is the narrow one: the limits of
// both do not add up.
func TestShapedLinkCarriesItsRate(t *testing.T) {
	for name, c := range map[string]struct{ near, far Link }{
		"no delay":        {Link{Up: 20 * mbit}, Link{Down: 20 * mbit}},
		"20 mbit both":    {Link{Up: 20 * mbit, Down: 20 * mbit, Delay: 40 * time.Millisecond}, Link{Up: 20 * mbit, Down: 20 * mbit, Delay: 40 * time.Millisecond}},
		"narrow up":       {Link{Up: 20 * mbit, Delay: 40 * time.Millisecond}, Link{Down: 100 * mbit, Delay: 40 * time.Millisecond}},
		"narrow down":     {Link{Up: 100 * mbit, Delay: 40 * time.Millisecond}, Link{Down: 20 * mbit, Delay: 40 * time.Millisecond}},
		"far":             {Link{Up: 20 * mbit, Delay: 150 * time.Millisecond}, Link{Down: 20 * mbit, Delay: 150 * time.Millisecond}},
		"jitter":          {Link{Up: 20 * mbit, Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond}, Link{Down: 20 * mbit, Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond}},
		"answers are far": {Link{Up: 20 * mbit}, Link{Down: 20 * mbit, Delay: 200 * time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := pipe(node(c.near), node(c.far))
				const size = 25_000_000
				least := time.Duration(size/(20*mbit)) * time.Second
				most := least + least/20 + 10*(c.near.Delay+c.far.Delay) // slow start
				took := carried(t, a, b, size)
				if took < least || took > most {
					t.Errorf("took %v, want %v to %v", took, least, most)
				}
			})
		})
	}
}

// A connection that loses segments is as fast as Mathis' formula says, MSS/RTT 1.22/sqrt(p), and
// loses no byte and no order.
func TestLossTakesItsToll(t *testing.T) {
	for _, c := range []struct {
		loss  float64
		delay time.Duration
	}{{0.001, 40 * time.Millisecond}, {0.01, 40 * time.Millisecond}, {0.02, 20 * time.Millisecond}} {
		synctest.Test(t, func(t *testing.T) {
			near := node(Link{Up: 1000 * mbit, Delay: c.delay, Loss: c.loss})
			a, b := pipe(near, node(Link{Delay: c.delay}))
			mathis := Segment / (2 * c.delay).Seconds() * 1.22 / math.Sqrt(c.loss)
			size := int(mathis * 120)
			got := float64(size) / carried(t, a, b, size).Seconds()
			if got < 0.75*mathis || got > 1.25*mathis {
				t.Errorf("loss %v, delay %v: %.0f bytes/s, the formula has %.0f", c.loss, c.delay, got, mathis)
			}
			t.Logf("loss %v, delay %v: %.2f of the formula", c.loss, c.delay, got/mathis)
		})
	}
}

// Two connections of one node share its link, and bytes that come through a narrow downlink do not
// pile up before it: what is sent last of a long stream waits no longer than a router lets it.
func TestShapedConnectionsShareALink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		delay := 40 * time.Millisecond
		reader := node(Link{Down: 5 * mbit, Delay: delay})
		const each = 5_000_000
		took := make(chan time.Duration, 2)
		for range 2 {
			a, b := pipe(node(Link{Up: 100 * mbit, Delay: delay}), reader)
			go func() { took <- carried(t, a, b, each) }()
		}
		first, last := <-took, <-took
		if want := 2 * each / (5 * mbit) * time.Second; last < want || last > want+want/10 || first < want*3/4 {
			t.Errorf("took %v and %v, want %v for both", first, last, want)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		delay := 40 * time.Millisecond
		a, b := pipe(node(Link{Up: 100 * mbit, Delay: delay}), node(Link{Down: 5 * mbit, Delay: delay}))
		go io.Copy(io.Discard, a)
		stamp, worst := make([]byte, 1000), time.Duration(0)
		go func() {
			for began := time.Now(); time.Since(began) < 20*time.Second; {
				binary.BigEndian.PutUint64(stamp, uint64(time.Now().UnixNano()))
				if _, err := a.Write(stamp); err != nil {
					t.Error(err)
				}
			}
			a.Close()
		}()
		began := time.Now()
		for got := make([]byte, len(stamp)); ; {
			if _, err := io.ReadFull(b, got); err != nil {
				break
			}
			if time.Since(began) > 3*time.Second { // slow start went beyond the link and came back
				worst = max(worst, time.Since(time.Unix(0, int64(binary.BigEndian.Uint64(got)))))
			}
		}
		if worst > delay+2*shapeQueue {
			t.Errorf("bytes took %v", worst)
		}
		b.Close()
	})
}

// What arrives keeps its order, spread over all of the jitter.
func TestJitterKeepsOrder(t *testing.T) {
	l := node(Link{Delay: 40 * time.Millisecond, Jitter: 10 * time.Millisecond})
	var way travel
	now, last := time.Unix(1, 0), time.Time{}
	least, most := time.Hour, time.Duration(0)
	for range 100_000 {
		now = now.Add(time.Millisecond)
		at := way.arrives(l, now)
		if at.Before(last) {
			t.Fatalf("%v after %v", at, last)
		}
		last, least, most = at, min(least, at.Sub(now)), max(most, at.Sub(now))
	}
	if least > 31*time.Millisecond || least < 30*time.Millisecond || most < 49*time.Millisecond || most > 50*time.Millisecond {
		t.Errorf("from %v to %v", least, most)
	}
}

// A link that becomes another is so at once, and comes back.
func TestShapedLinkChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near := node(Link{Up: 100 * mbit, Delay: 40 * time.Millisecond})
		a, b := pipe(near, node(Link{Delay: 40 * time.Millisecond}))
		go func() {
			time.Sleep(5 * time.Second)
			near.Become(Link{Up: 5 * mbit, Delay: 40 * time.Millisecond})
			time.Sleep(20 * time.Second)
			near.Become(Link{Up: 100 * mbit, Delay: 40 * time.Millisecond})
		}()
		took := carried(t, a, b, 100*mbit*10+5*mbit*20)
		if took < 30*time.Second || took > 31*time.Second {
			t.Errorf("took %v, want 30 s", took)
		}
	})
}

// Chance follows from the seed.
func TestLossFollowsFromItsSeed(t *testing.T) {
	losses := func(whose string) (lost []int) {
		l := New(&Link{Loss: 0.01}, whose)
		for i := range 10_000 {
			if _, is := l.cut(Segment); is {
				lost = append(lost, i)
			}
		}
		return lost
	}
	one := losses("node1")
	if !slices.Equal(one, losses("node1")) || slices.Equal(one, losses("node2")) {
		t.Error("losses do not follow from the seed")
	}
	if len(one) < 70 || len(one) > 130 {
		t.Errorf("%d of 10,000 lost at 1 %%", len(one))
	}
}

// Close ends a writer that waits for its turn, and a reader that waits for bytes. A peer that is
// gone ends both.
func TestShapedConnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pipe(node(Link{Up: 10}), node(Link{}))
		ended := make(chan error, 2)
		go func() { _, err := a.Write(make([]byte, 100_000)); ended <- err }()
		go func() { _, err := a.Read(make([]byte, 1)); ended <- err }()
		synctest.Wait()
		a.Close()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("no error")
			}
		}
		b.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		a := running(node(Link{Delay: time.Second}).Conn(newPipeConn(x)))
		y.Close()
		if _, err := a.Read(make([]byte, 1)); err == nil {
			t.Error("a read from a peer that is gone gave no error")
		}
		a.Close()
	})
}

// An end without a shape is told of, whichever speaks first.
func TestOtherEndIsNotShaped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, y := net.Pipe()
		a := running(node(Link{}).Conn(newPipeConn(x)))
		go y.Write([]byte("\x13/multistream/1.0.0\n"))
		go io.Copy(io.Discard, y)
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, errUnshaped) {
			t.Errorf("error %v", err)
		}
		a.Close()
		y.Close()
	})
}

// flown is a sender with segments on their way.
func flown(now time.Time, segments int, lost ...int) *Sender {
	s := NewSender()
	for i := range segments {
		var kept []byte
		if slices.Contains(lost, i) {
			kept = make([]byte, Segment)
		}
		s.Send(Segment, kept, now)
	}
	return &s
}

// hear brings acknowledgements after 80 ms.
func (s *Sender) hear(now time.Time, segments ...int) (again []int) {
	for _, i := range segments {
		s.acks = append(s.acks, ack{at: uint64(i * Segment), due: now.Add(80 * time.Millisecond)})
	}
	return s.sentAgain(now.Add(80 * time.Millisecond))
}

func (s *Sender) sentAgain(now time.Time) (again []int) {
	for _, c := range s.Advance(now) {
		c.again = true
		again = append(again, int(c.at)/Segment)
	}
	return again
}

// A segment counts as lost when three that followed it arrived, and the window is cut once for all
// that was on its way.
func TestSenderSendsAgain(t *testing.T) {
	now := time.Unix(1, 0)
	s := flown(now, 10, 0, 5)
	if again := s.hear(now, 1, 2); again != nil || s.window.size < 10 {
		t.Errorf("after two: %v again, window %v", again, s.window.size)
	}
	before := s.window.size
	if again := s.hear(now, 3); !slices.Equal(again, []int{0}) || s.window.size > cubicCut*(before+1) {
		t.Errorf("after three: %v again, window %v", again, s.window.size)
	}
	cut := s.window.threshold
	if again := s.hear(now, 4, 6, 7, 8, 9); !slices.Equal(again, []int{5}) || s.window.threshold != cut {
		t.Errorf("the second: %v again, threshold %v, it was %v", again, s.window.threshold, cut)
	}
}

// The loss of the last one, and of one that was sent again, waits for a timeout, which doubles.
func TestSenderTimesOut(t *testing.T) {
	now := time.Unix(1, 0)
	s := flown(now, 10, 9)
	if again := s.hear(now, 0, 1, 2, 3, 4, 5, 6, 7, 8); again != nil {
		t.Errorf("%v again at once", again)
	}
	now = now.Add(80 * time.Millisecond)
	first := s.Wakes().Sub(now)
	if first < leastTimeout || first > leastTimeout+90*time.Millisecond {
		t.Errorf("a timeout of %v", first)
	}
	if again := s.sentAgain(now.Add(first - 1)); again != nil {
		t.Errorf("%v again too early", again)
	}
	now = now.Add(first)
	if again := s.sentAgain(now); !slices.Equal(again, []int{9}) || s.window.size != 1 {
		t.Errorf("%v again, window %v", again, s.window.size)
	}
	if second := s.Wakes().Sub(now); second != 2*first {
		t.Errorf("then %v, after %v", second, first)
	}
}

// An end that is only slow is not taken for a loss.
func TestSenderWaitsForTheSlow(t *testing.T) {
	now := time.Unix(1, 0)
	s := flown(now, 10)
	for range 5 {
		now = s.Wakes()
		if again := s.sentAgain(now); again != nil || s.window.size != windowAtFirst {
			t.Fatalf("%v again, window %v", again, s.window.size)
		}
	}
}

// A window that rests shrinks by half with every timeout, and never below the first.
func TestWindowRests(t *testing.T) {
	for timeouts, want := range map[float64]float64{0.9: 100, 1: 50, 2.5: 25, 9: windowAtFirst} {
		w := newWindow()
		w.size = 100
		if w.rested(timeouts); w.size != want {
			t.Errorf("after %v timeouts %v, want %v", timeouts, w.size, want)
		}
	}
}
