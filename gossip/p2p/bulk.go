package p2p

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"atoll/gossip/wire"
)

// ackReader reads a response and acknowledges each segment of it. It does not wait
// for acknowledgements to leave, which share this node's uplink with its own bulk:
// segments that wait here would seem to have come late, and then all at once.
type ackReader struct {
	acks  ackWriter
	s     network.Stream
	ctx   context.Context // of the call
	limit *limiter        // of what this node receives
	birth time.Time       // where the clock of stamps begins
	n     int             // bytes read
	acked int             // segments acknowledged
	first time.Time
	last  time.Time // when the last segment was complete
}

// Read implements io.Reader. Once the response has begun, each segment has a
// deadline of its own, and room in the resource manager's books.
//
// It waits for the download limit before it acknowledges. The server then takes the way
// for one with a thin link at its end, and sends no faster than that carries.
func (r *ackReader) Read(b []byte) (int, error) {
	if r.limit != nil {
		b = b[:min(len(b), segment)]
	}
	n, err := r.s.Read(b)
	if err := r.limit.wait(r.ctx, n); err != nil {
		return n, fmt.Errorf("wait for the download limit: %w", err)
	}
	r.n += n
	due := r.n/segment - r.acked
	if n == 0 || err != nil && err != io.EOF || r.acked > 0 && due == 0 {
		return n, err
	}
	r.last = time.Now()
	if r.first.IsZero() {
		r.first = r.last
	}
	if err := r.s.SetDeadline(r.last.Add(stallTimeout)); err != nil {
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
	if err := r.s.Scope().ReserveMemory(segments*segment, memoryPriority); err != nil {
		return fmt.Errorf("response of over %d bytes: %w", r.acked*segment, err)
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
	if r.acked == 0 || r.n%segment == 0 {
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
	if r.n < 2*segment {
		return 0
	}
	return float64(min(r.n, r.acked*segment)) / max(r.last.Sub(r.first), time.Microsecond).Seconds()
}

// transfer sends one response on a stream, paced by its acknowledgements.
type transfer struct {
	ctx   context.Context // ends when the asker is gone
	s     network.Stream
	pace  *pacer
	limit *limiter
	done  chan struct{} // closed when the asker has closed, or failed
	left  func()        // called when the last byte was written

	closed bool // by the asker, in order: it has the response; of listen until done

	mu     sync.Mutex
	size   int         // of the response with its head
	bulk   bool        // long enough to be acknowledged, and so to be paced
	sent   int         // bytes that left
	acked  int         // of them, acknowledged
	part   departure   // of the segment that is not whole
	flight []departure // each whole segment that is not acknowledged
}

// newTransfer starts to listen to the asker, whose end calls gone.
func newTransfer(ctx context.Context, s network.Stream, pace *pacer, limit *limiter, gone func()) *transfer {
	t := &transfer{ctx: ctx, s: s, pace: pace, limit: limit, done: make(chan struct{})}
	go t.listen(gone)
	return t
}

// listen reads acknowledgements until the stream ends; end waits for it.
func (t *transfer) listen(gone func()) {
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
func (t *transfer) acknowledged(stamps []byte) bool {
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

// send writes the response as a frame and, if it is bulk, waits until the asker
// has it all.
func (t *transfer) send(response []byte) error {
	t.mu.Lock()
	t.size = wire.FrameHead + len(response)
	t.bulk = t.size >= segment
	t.mu.Unlock()
	start := time.Now()
	if err := wire.WriteFrame(t, response, len(response)); err != nil {
		return err
	}
	t.left()
	if err := t.s.CloseWrite(); err != nil || !t.bulk {
		return err
	}
	timer := time.NewTimer(stallTimeout)
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
func (t *transfer) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		part := b[written:]
		part = part[:min(len(part), segment-t.sent%segment)]
		if err := t.room(len(part)); err != nil {
			return written, err
		}
		if err := t.s.SetWriteDeadline(time.Now().Add(stallTimeout)); err != nil {
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
func (t *transfer) room(n int) error {
	if err := t.limit.wait(t.ctx, n); err != nil {
		return fmt.Errorf("wait for the upload limit: %w", err)
	}
	if !t.bulk {
		t.sent += n
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, stallTimeout)
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
func (t *transfer) leaves(d departure) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent += d.bytes
	if t.part.bytes > 0 {
		d.bytes += t.part.bytes
	}
	t.part = d
	if t.sent%segment == 0 || t.sent == t.size {
		t.flight = append(t.flight, d)
		t.part = departure{}
	}
}

// complete reports whether every segment was acknowledged.
func (t *transfer) complete() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.flight) == 0
}

// end closes the stream, or resets it after an error, waits for listen, and
// gives back what still counts as in flight.
func (t *transfer) end(err error) {
	if err != nil {
		t.s.Reset()
	}
	t.s.Close()
	<-t.done
	if t.bulk {
		t.pace.lost(t.sent - t.acked)
	}
}
