package p2p

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	manet "github.com/multiformats/go-multiaddr/net"

	"atoll/gossip/shape"
)

// Shape is what a laboratory makes of a node's link: TCP connections on one
// machine as slow and as far apart as those between two places. It is what both
// ends do to the bytes of a socket; packets are not lost, and TCP itself sees the
// loopback.
type Shape = shape.Link

const (
	// shapeQueue is how long bytes may wait for the link before a writer does: the
	// buffer of a home router.
	shapeQueue = 50 * time.Millisecond
	// shapeFlight is how many writes may be on their way: at 64 KiB each, 1 GiB.
	// Beyond it the link has to be slower.
	shapeFlight = 1 << 14
)

// shaper is one node's link.
type shaper struct{ now atomic.Pointer[shaping] }

// shaping is what the link is like until it changes.
type shaping struct {
	Shape
	up, down *limiter
}

// newShaper is nil for a node whose link is as it is.
func newShaper(s *Shape) *shaper {
	if s == nil {
		return nil
	}
	l := &shaper{}
	l.become(*s)
	return l
}

func (l *shaper) become(s Shape) {
	l.now.Store(&shaping{Shape: s, up: newLimiter(s.Up), down: newLimiter(s.Down)})
}

// SetShape makes the node's link another, in the words of package shape. Only a host that
// was started with a Shape can change it: others do nothing to their connections.
func (h *Host) SetShape(words string) error {
	s, err := shape.Parse(words)
	switch {
	case err != nil:
		return err
	case h.shaper == nil:
		return fmt.Errorf("link %s: this node's link is as it is: start it with --shape rate=none to change it", s)
	}
	h.shaper.become(s)
	return nil
}

// shapedConn is a connection over a shaped link. What is written waits for its
// turn on the link, then travels; pump hands it over when it has arrived.
type shapedConn struct {
	manet.Conn
	link   *shaper
	flight chan cargo
	closed chan struct{} // by Close
	once   sync.Once
	mu     sync.Mutex
	failed error // how handing over failed
}

// cargo is bytes on their way.
type cargo struct {
	bytes []byte
	due   time.Time
}

// shape makes a connection pass the host's shaped link, if it has one. One that
// comes while the host closes is left as it is: it is closed at once.
func (h *Host) shape(c manet.Conn) manet.Conn {
	if h.shaper == nil || !h.tasks.enter() {
		return c
	}
	s := newShapedConn(c, h.shaper)
	go func() {
		defer h.tasks.leave()
		s.pump()
	}()
	return s
}

func newShapedConn(c manet.Conn, link *shaper) *shapedConn {
	return &shapedConn{Conn: c, link: link, flight: make(chan cargo, shapeFlight), closed: make(chan struct{})}
}

// Write implements net.Conn: it returns when the bytes are no further from
// leaving than the link's queue is long.
func (c *shapedConn) Write(b []byte) (int, error) {
	if err := c.failure(); err != nil {
		return 0, err
	}
	link := c.link.now.Load()
	leaves := reserve(link.up, len(b))
	due := time.Now().Add(leaves + link.Delay)
	if err := c.sleep(leaves - shapeQueue); err != nil {
		return 0, err
	}
	select {
	case c.flight <- cargo{append([]byte(nil), b...), due}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

// sleep waits, unless the connection is closed.
func (c *shapedConn) sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.closed:
		return net.ErrClosed
	}
}

// Read implements net.Conn. What has been read came as slowly as the link lets it.
func (c *shapedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sleep(reserve(c.link.now.Load().down, n)) != nil && err == nil {
		err = net.ErrClosed
	}
	return n, err
}

// pump hands over what has arrived until the connection is closed, and then what
// had left before.
func (c *shapedConn) pump() {
	defer c.Conn.Close() // ends the peer's wait; its error would tell nobody anything
	for {
		select {
		case p := <-c.flight:
			c.deliver(p)
		case <-c.closed:
			for len(c.flight) > 0 {
				c.deliver(<-c.flight)
			}
			return
		}
	}
}

func (c *shapedConn) deliver(p cargo) {
	if c.failure() != nil {
		return
	}
	time.Sleep(time.Until(p.due)) // at most the queue and the delay
	err := c.Conn.SetWriteDeadline(time.Now().Add(stallTimeout))
	if err == nil {
		_, err = c.Conn.Write(p.bytes)
	}
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = err
	}
}

func (c *shapedConn) failure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// Close implements net.Conn: nothing can be written or read any more, and what has left
// still arrives.
func (c *shapedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.SetReadDeadline(time.Now()) // ends a Read at once
}

// SetDeadline implements net.Conn: see SetWriteDeadline.
func (c *shapedConn) SetDeadline(t time.Time) error { return c.Conn.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn. It does nothing: what is written here is
// handed over later, when the writer's deadline says nothing of the peer.
func (c *shapedConn) SetWriteDeadline(time.Time) error { return nil }
