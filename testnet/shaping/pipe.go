package shaping

import (
	"net"
	"sync"
	"time"
)

// Pipe connects two nodes in memory, for tests.
func Pipe(near, far *Shaper) (a, b net.Conn) {
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

// Write implements net.Conn.
func (p pipeConn) Write(b []byte) (int, error) {
	p.out <- append([]byte(nil), b...)
	return len(b), nil
}

// Close implements net.Conn.
func (p pipeConn) Close() error {
	p.once.Do(func() { close(p.out) })
	return nil
}

// SetWriteDeadline implements net.Conn: a buffer takes all at once.
func (pipeConn) SetWriteDeadline(time.Time) error { return nil }
