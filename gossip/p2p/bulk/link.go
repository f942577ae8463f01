package bulk

import (
	"io"
	"time"
)

// Stream is what a transfer asks of a stream.
type Stream interface {
	io.ReadWriteCloser
	CloseWrite() error
	Reset() error
	SetDeadline(t time.Time) error
	SetWriteDeadline(t time.Time) error
}

// Link is the way to one peer.
type Link struct {
	pace *pacer
	down average // bytes/s at which bulk arrives
}

// NewLink returns the way to a peer, over the node's own uplink.
func NewLink(up *Uplink) *Link { return &Link{pace: newPacer(up)} }

// Rates are the averages of what bulk reached each way, in bytes/s; 0 before the first.
func (l *Link) Rates() (up, down float64) { return l.pace.rate(), l.down.value() }

// InFlight is the number of bytes that are on their way to the peer.
func (l *Link) InFlight() int {
	l.pace.mu.Lock()
	defer l.pace.mu.Unlock()
	return l.pace.inflight
}
