package shaping

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// shapedConn is a connection over a shaped link: see Shaper.
type shapedConn struct {
	net.Conn
	link   *Shaper
	kick   chan struct{} // the state has changed: run looks at it
	moved  chan struct{} // a writer may look again
	closed chan struct{} // by Close
	once   sync.Once

	writing sync.Mutex // one Write at a time
	mu      sync.Mutex
	sender  Sender
	way     travel // of what is sent
	back    travel // of acknowledgements
	out     []byte // frames for the socket
	failed  error  // how the socket took them

	reading  sync.Mutex // one Read at a time
	in       *bufio.Reader
	greeted  bool
	came     uint64            // how much of the stream has
	early    map[uint64][]byte // what came before something that was lost
	earlyLen int
	rest     []byte // read from the socket and not by the caller
	ended    bool   // the other end has closed
}

// maxShapeEarly bounds what waits for something that was lost: no window is larger.
const maxShapeEarly = 2 * maxWindowBytes

func newShapedConn(c net.Conn, link *Shaper) *shapedConn {
	return &shapedConn{
		Conn: c, link: link, kick: make(chan struct{}, 1), moved: make(chan struct{}, 1), closed: make(chan struct{}),
		sender: NewSender(), out: []byte(shapeMagic),
		in: bufio.NewReaderSize(c, maxShapeChunk+frameHeader), early: map[uint64][]byte{},
	}
}

// signal wakes one that waits on a channel of one place.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Write implements net.Conn: it returns when all bytes are on their way. There is no send buffer
// beyond the congestion window.
func (c *shapedConn) Write(b []byte) (written int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	for written < len(b) {
		n, wait, err := c.launch(b[written:])
		written += n
		if err == nil && n == 0 {
			err = c.await(wait)
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// launch sends a chunk of b, or says how long to wait: below zero, until something moves.
func (c *shapedConn) launch(b []byte) (n int, wait time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.failed != nil {
		return 0, 0, c.failed
	}
	if c.isClosed() {
		return 0, 0, net.ErrClosed
	}
	c.advance(now)
	if wait := c.link.full(now); wait > 0 {
		return 0, wait, nil
	}
	n = c.sender.Room(len(b), now)
	if n == 0 {
		return 0, -1, nil
	}
	n, lost := c.link.cut(n)
	var kept []byte
	if lost {
		kept = append(kept, b[:n]...)
	}
	c.send(c.sender.Send(n, kept, now), b[:n], lost, now)
	return n, 0, nil
}

// send puts a chunk on its way. What is lost takes its time on the link as well.
func (c *shapedConn) send(at uint64, b []byte, lost bool, now time.Time) {
	left := c.link.leave(len(b), now)
	if !lost {
		c.out = append(frame{frameData, len(b), at, c.way.arrives(c.link, left)}.append(c.out), b...)
	}
	signal(c.kick)
}

// advance takes in what is known by now, and sends again what was lost.
func (c *shapedConn) advance(now time.Time) {
	for _, again := range c.sender.Advance(now) {
		_, lost := c.link.cut(again.size)
		c.send(again.at, again.lost, lost, now)
		if again.again = true; !lost {
			again.lost = nil
		}
	}
}

// await waits until something moves, or for so long.
func (c *shapedConn) await(wait time.Duration) error {
	if wait > 0 {
		return c.sleep(wait)
	}
	select {
	case <-c.moved:
		return nil
	case <-c.closed:
		return net.ErrClosed
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

func (c *shapedConn) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// run writes frames to the socket and looks after the sender until the connection is closed.
func (c *shapedConn) run() {
	defer c.Conn.Close() // its error would tell nobody anything
	timer := time.NewTimer(0)
	defer timer.Stop()
	for c.flush() {
		c.mu.Lock()
		c.advance(time.Now())
		wakes, more := c.sender.Wakes(), len(c.out) > 0
		c.mu.Unlock()
		signal(c.moved)
		if more {
			continue
		}
		timer.Stop()
		if !wakes.IsZero() {
			timer.Reset(time.Until(wakes))
		}
		select {
		case <-timer.C:
		case <-c.kick:
		case <-c.closed:
			c.linger()
			return
		}
	}
	<-c.closed
}

// flush hands frames over. It reports whether the socket took them.
func (c *shapedConn) flush() bool {
	c.mu.Lock()
	out := c.out
	c.out = nil
	c.mu.Unlock()
	if len(out) == 0 {
		return true
	}
	err := c.Conn.SetWriteDeadline(time.Now().Add(stallTimeout))
	if err == nil {
		_, err = c.Conn.Write(out)
	}
	if err != nil {
		c.mu.Lock()
		c.failed = err
		c.mu.Unlock()
		signal(c.moved)
	}
	return err == nil
}

// stallTimeout ends a connection whose socket takes nothing.
const stallTimeout = 30 * time.Second

// shapeLinger is how long the other end may take to close after this one: some round trips, and
// less than a node may take to leave.
const shapeLinger = 2 * time.Second

// linger sends what was lost and the end of the stream, and waits for the other end: a socket
// that closes with something unread in it discards what it has sent.
func (c *shapedConn) linger() {
	c.mu.Lock()
	late := time.Now().Add(c.sender.timeout())
	for _, lost := range c.sender.flight {
		if lost.lost != nil {
			c.out = append(frame{frameData, lost.size, lost.at, late}.append(c.out), lost.lost...)
		}
	}
	c.out = frame{frameClose, 0, c.sender.next, late}.append(c.out)
	c.mu.Unlock()
	if !c.flush() {
		return
	}
	c.reading.Lock() // until a Read that Close has ended returns
	defer c.reading.Unlock()
	if err := c.Conn.SetReadDeadline(time.Now().Add(shapeLinger)); err != nil {
		return
	}
	for !c.ended {
		f, _, err := readShaped(c.in)
		c.ended = err != nil || f.kind == frameClose
	}
}

// Read implements net.Conn. What has been read came as slowly as the link lets it.
func (c *shapedConn) Read(b []byte) (int, error) {
	c.reading.Lock()
	defer c.reading.Unlock()
	for len(c.rest) == 0 {
		if c.isClosed() {
			return 0, net.ErrClosed
		}
		if c.ended {
			return 0, io.EOF
		}
		if err := c.receive(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// receive takes in a frame.
func (c *shapedConn) receive() error {
	if !c.greeted {
		if err := readMagic(c.in); err != nil {
			return err
		}
		c.greeted = true
	}
	f, payload, err := readShaped(c.in)
	switch {
	case err != nil:
		return err
	case f.kind == frameData:
		return c.data(f, payload)
	case f.kind == frameClose:
		c.ended = true
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sender.acks = append(c.sender.acks, ack{f.at, f.due, f.kind == frameFull})
	signal(c.kick)
	return nil
}

// data waits until bytes have come through the downlink, acknowledges them, and hands over what
// is next in the stream.
func (c *shapedConn) data(f frame, payload []byte) error {
	if err := c.sleep(time.Until(f.due)); err != nil {
		return err
	}
	ready, full := c.link.arrive(f.size, f.due)
	if err := c.sleep(time.Until(ready)); err != nil {
		return err
	}
	c.acknowledge(f, ready, full)
	if f.at != c.came {
		return c.keep(f.at, payload)
	}
	for payload != nil {
		c.rest = append(c.rest, payload...)
		c.came += uint64(len(payload))
		payload = c.early[c.came]
		delete(c.early, c.came)
		c.earlyLen -= len(payload)
	}
	return nil
}

var errEarly = errors.New("a shaped link brought more than a window before what was lost")

// keep holds back what came too early.
func (c *shapedConn) keep(at uint64, payload []byte) error {
	if c.earlyLen += len(payload); c.earlyLen > maxShapeEarly || at < c.came {
		return errEarly
	}
	c.early[at] = payload
	return nil
}

// acknowledge tells the sender. What says so has the delay of this end's link and does not wait
// for its rate: it is small.
func (c *shapedConn) acknowledge(f frame, ready time.Time, full bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := byte(frameAck)
	if full {
		kind = frameFull
	}
	c.out = frame{kind, 0, f.at, c.back.arrives(c.link, ready)}.append(c.out)
	signal(c.kick)
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
