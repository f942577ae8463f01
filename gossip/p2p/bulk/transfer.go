package bulk

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"atoll/gossip/wire"
)

// Transfer sends one response on a stream, paced by its acknowledgements.
type Transfer struct {
	ctx   context.Context // ends when the asker is gone
	s     Stream
	pace  *pacer
	limit *Limiter
	done  chan struct{} // closed when the asker has closed, or failed

	closed bool // by the asker, in order: it has the response; of listen until done

	mu     sync.Mutex
	size   int         // of the response with its head
	bulk   bool        // long enough to be acknowledged, and so to be paced
	sent   int         // bytes that left
	acked  int         // of them, acknowledged
	part   departure   // of the segment that is not whole
	flight []departure // each whole segment that is not acknowledged
}

// Begin starts to listen to the asker on s, whose end calls gone. End ends it.
func (l *Link) Begin(ctx context.Context, s Stream, limit *Limiter, gone func()) *Transfer {
	t := &Transfer{ctx: ctx, s: s, pace: l.pace, limit: limit, done: make(chan struct{})}
	go t.listen(gone)
	return t
}

// listen reads acknowledgements until the stream ends; End waits for it.
func (t *Transfer) listen(gone func()) {
	defer close(t.done)
	defer gone()
	b := make([]byte, 256)
	have := 0 // the first half of a stamp
	for {
		n, err := t.s.Read(b[have:]) // the last acknowledgements may come with the end
		n += have
		if !t.acknowledged(b[:n-n%stampBytes]) {
			return
		}
		have = copy(b, b[n-n%stampBytes:n])
		if err != nil {
			t.closed = err == io.EOF
			return
		}
	}
}

// acknowledged takes a segment out of flight for each stamp. It reports false if
// there are not as many, which is a fault of the asker.
func (t *Transfer) acknowledged(stamps []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(stamps) / stampBytes
	if n > len(t.flight) {
		return false
	}
	now := time.Now()
	for i, d := range t.flight[:n] {
		t.pace.acked(d, stamp(binary.BigEndian.Uint16(stamps[stampBytes*i:])), now)
		t.acked += d.bytes
	}
	t.flight = t.flight[n:]
	return true
}

// Send writes the response as a frame and, if it is bulk, waits until the asker
// has it all. left is called when the last byte was written.
func (t *Transfer) Send(response []byte, left func()) error {
	t.mu.Lock()
	t.size = wire.FrameHead + len(response)
	t.bulk = t.size >= Segment
	t.mu.Unlock()
	start := time.Now()
	if err := wire.WriteFrame(t, response, len(response)); err != nil {
		return err
	}
	left()
	if err := t.s.CloseWrite(); err != nil || !t.bulk {
		return err
	}
	timer := time.NewTimer(StallTimeout)
	defer timer.Stop()
	select {
	case <-t.done:
	case <-timer.C:
		return fmt.Errorf("%d bytes sent, but the asker does not close", len(response))
	}
	if !t.closed && !t.complete() {
		return errors.New("asker left before the end")
	}
	t.pace.sent(len(response), time.Since(start))
	return nil
}

// Write implements io.Writer: it sends b in parts that end where segments end,
// each when there is room for it.
func (t *Transfer) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		part := b[written:]
		part = part[:min(len(part), Segment-t.sent%Segment)]
		if err := t.room(len(part)); err != nil {
			return written, err
		}
		if err := t.s.SetWriteDeadline(time.Now().Add(StallTimeout)); err != nil {
			return written, err
		}
		n, err := t.s.Write(part)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// room waits until n more bytes may leave, and counts them.
func (t *Transfer) room(n int) error {
	if err := t.limit.Wait(t.ctx, n); err != nil {
		return fmt.Errorf("wait for the upload limit: %w", err)
	}
	if !t.bulk {
		t.sent += n
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, StallTimeout)
	defer cancel()
	d, err := t.pace.acquire(ctx, n)
	if err != nil {
		return fmt.Errorf("wait for acknowledgements: %w", err)
	}
	t.leaves(d)
	return nil
}

// leaves counts bytes that leave now. The last of them makes a segment whole, or
// the response.
func (t *Transfer) leaves(d departure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent += d.bytes
	if t.part.bytes > 0 {
		d.bytes += t.part.bytes
	}
	t.part = d
	if t.sent%Segment == 0 || t.sent == t.size {
		t.flight = append(t.flight, d)
		t.part = departure{}
	}
}

// complete reports whether every segment was acknowledged.
func (t *Transfer) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flight) == 0
}

// End closes the stream, or resets it after an error, waits for listen, and
// gives back what still counts as in flight.
func (t *Transfer) End(err error) {
	if err != nil {
		t.s.Reset()
	}
	t.s.Close()
	<-t.done
	if t.bulk {
		t.pace.lost(t.sent - t.acked)
	}
}
