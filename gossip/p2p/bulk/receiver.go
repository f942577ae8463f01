package bulk

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"
	"time"

	"atoll/gossip/wire"
)

// Receive reads the response to a request on s, at most so many bytes, and says when its first and its last byte
// came. An error resets the stream. reserve asks for room for more of the response.
func (l *Link) Receive(ctx context.Context, s Stream, limit *Limiter, reserve func(bytes int) error, most int) (response []byte, first, last time.Time, err error) {
	r := &ackReader{s: s, birth: l.pace.birth, ctx: ctx, limit: limit, reserve: reserve}
	response, err = wire.ReadFrame(r, most)
	if err != nil {
		s.Reset()
		r.acks.wait()
		return nil, first, last, err
	}
	first, last = r.first, time.Now()
	if err := r.end(); err != nil {
		return response, first, last, nil // the server has gone, and the response is here
	}
	if rate := r.rate(); rate > 0 {
		l.down.add(rate)
	}
	return response, first, last, nil
}

// ackReader reads a response and acknowledges each segment of it. It does not wait
// for acknowledgements to leave, which share this node's uplink with its own bulk:
// segments that wait here would seem to have come late, and then all at once.
type ackReader struct {
	acks    ackWriter
	s       Stream
	ctx     context.Context       // of the call
	limit   *Limiter              // of what this node receives
	reserve func(bytes int) error // in the books of the stream
	birth   time.Time             // where the clock of stamps begins
	n       int                   // bytes read
	acked   int                   // segments acknowledged
	first   time.Time
	last    time.Time // when the last segment was complete
}

// Read implements io.Reader. Once the response has begun, each segment has a
// deadline of its own, and room in the resource manager's books.
//
// It waits for the download limit before it acknowledges. The server then takes the way
// for one with a thin link at its end, and sends no faster than that carries.
func (r *ackReader) Read(b []byte) (int, error) {
	if r.limit != nil {
		b = b[:min(len(b), Segment)]
	}
	n, err := r.s.Read(b)
	if err := r.limit.Wait(r.ctx, n); err != nil {
		return n, fmt.Errorf("wait for the download limit: %w", err)
	}
	r.n += n
	due := r.n/Segment - r.acked
	if n == 0 || err != nil && err != io.EOF || r.acked > 0 && due == 0 {
		return n, err
	}
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
	}
	if err := r.s.SetDeadline(r.last.Add(StallTimeout)); err != nil {
		return n, err
	}
	if err := r.acknowledge(due); err != nil {
		return n, err
	}
	return n, err
}

func (r *ackReader) acknowledge(segments int) error {
	if segments == 0 {
		return nil
	}
	if err := r.reserve(segments * Segment); err != nil {
		return fmt.Errorf("response of over %d bytes: %w", r.acked*Segment, err)
	}
	r.acked += segments
	now := uint16(stampOf(r.last, r.birth))
	stamps := make([]byte, 0, stampBytes*segments)
	for range segments {
		stamps = binary.BigEndian.AppendUint16(stamps, now)
	}
	if err := r.acks.write(r.s, stamps); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	return nil
}

// end acknowledges what followed the last whole segment, and waits until all has
// left.
func (r *ackReader) end() error {
	defer r.acks.wait()
	if r.acked == 0 || r.n%Segment == 0 {
		return nil
	}
	r.last = time.Now()
	return r.acknowledge(1)
}

// ackWriter writes to a stream on a goroutine of its own, one at a time.
type ackWriter struct {
	mu      sync.Mutex
	waiting []byte
	running bool
	failed  error
	work    sync.WaitGroup
}

// write has b written after what waits, and returns how an earlier one failed.
func (w *ackWriter) write(s io.Writer, b []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, b...)
	if !w.running && w.failed == nil {
		w.running = true
		w.work.Go(func() { w.run(s) })
	}
	return w.failed
}

func (w *ackWriter) run(s io.Writer) {
	for {
		b := w.next()
		if b == nil {
			return
		}
		if _, err := s.Write(b); err != nil {
			w.fail(err)
			return
		}
	}
}

// next is what waits; nil ends the run.
func (w *ackWriter) next() []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.waiting
	w.waiting, w.running = nil, len(b) > 0
	return b
}

func (w *ackWriter) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed, w.running = err, false
}

func (w *ackWriter) wait() { w.work.Wait() }

// rate is what the link carried between the first bytes and the last acknowledged;
// 0 for a response too small to tell.
func (r *ackReader) rate() float64 {
	if r.n < 2*Segment {
		return 0
	}
	return float64(min(r.n, r.acked*Segment)) / max(r.last.Sub(r.first), time.Microsecond).Seconds()
}
