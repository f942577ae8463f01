package baseline

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// A state travels on a stream of its own: the member that lacks it sends the number of
// the view, the source answers with the length and the bytes. The state rests meanwhile: no
// member gets further than the first round of the view before all of them have it.

// Limits on the way of a state.
const (
	// snapshotPart is what has a deadline of its own: even at 1 Mbit/s it takes a third of it.
	snapshotPart = 1 << 20
	// snapshotStall is how long a part may take.
	snapshotStall = 30 * time.Second
)

// snapshots is the state that a member gives away in a view.
type snapshots struct {
	mu     sync.Mutex
	view   uint64
	state  []byte
	closed bool
	news   chan struct{} // closed, and made anew, when there is another, or never will be
}

// offer lets others take the state with which a view begins.
func (g *snapshots) offer(view uint64, state []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view, g.state = view, state
	g.notify()
}

// notify wakes those that wait. The caller holds mu.
func (g *snapshots) notify() {
	if g.news != nil {
		close(g.news)
		g.news = nil
	}
}

// close lets nobody wait any more.
func (g *snapshots) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed, g.state = true, nil
	g.notify()
}

// withdraw forgets the state of a view.
func (g *snapshots) withdraw(view uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.view == view {
		g.state = nil
	}
}

// await waits for the state of a view. The asker may have heard of the view first.
func (g *snapshots) await(view uint64, within time.Duration) []byte {
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	for {
		state, news := g.look(view)
		if state != nil || news == nil {
			return state
		}
		select {
		case <-news:
		case <-timeout.C:
			return nil
		}
	}
}

// look returns the state of a view, or what to wait for, or neither.
func (g *snapshots) look(view uint64) ([]byte, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.view == view && g.state != nil || g.closed {
		return g.state, nil
	}
	if g.news == nil {
		g.news = make(chan struct{})
	}
	return nil, g.news
}

// serve gives a state away.
func (g *snapshots) serve(_ wire.PeerID, s p2p.Stream) {
	if err := g.give(s); err != nil {
		s.Reset()
		return
	}
	s.Close()
}

func (g *snapshots) give(s p2p.Stream) error {
	if err := s.SetReadDeadline(time.Now().Add(arrivalWithin)); err != nil {
		return err
	}
	var view [8]byte
	if _, err := io.ReadFull(s, view[:]); err != nil {
		return err
	}
	state := g.await(binary.LittleEndian.Uint64(view[:]), connectWithin)
	if state == nil {
		return fmt.Errorf("there is no state of this view to give")
	}
	if err := s.SetWriteDeadline(time.Now().Add(snapshotStall)); err != nil {
		return err
	}
	if _, err := s.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(state)))); err != nil {
		return err
	}
	for len(state) > 0 {
		n := min(len(state), snapshotPart)
		if err := s.SetWriteDeadline(time.Now().Add(snapshotStall)); err != nil {
			return err
		}
		if _, err := s.Write(state[:n]); err != nil {
			return err
		}
		state = state[n:]
	}
	return nil
}

// fetchSnapshot takes the state of a view, at most limit bytes, from its source.
func fetchSnapshot(ctx context.Context, n Network, source wire.PeerID, view uint64, limit int) ([]byte, error) {
	s, err := n.Open(ctx, source, stateService)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	defer context.AfterFunc(ctx, func() { s.Reset() })()
	if err := s.SetWriteDeadline(time.Now().Add(arrivalWithin)); err != nil {
		return nil, err
	}
	if _, err := s.Write(binary.LittleEndian.AppendUint64(nil, view)); err != nil {
		return nil, err
	}
	return readSnapshot(s, limit)
}

// readSnapshot reads the length and the bytes of a state. What it allocates grows with what
// comes.
func readSnapshot(s p2p.Stream, limit int) ([]byte, error) {
	var head [8]byte
	if err := s.SetReadDeadline(time.Now().Add(connectWithin + snapshotStall)); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(s, head[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(head[:])
	if size > uint64(limit) {
		return nil, fmt.Errorf("it announces %d bytes: at most %d", size, limit)
	}
	var state []byte
	for uint64(len(state)) < size {
		part := make([]byte, min(size-uint64(len(state)), snapshotPart))
		if err := s.SetReadDeadline(time.Now().Add(snapshotStall)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(s, part); err != nil {
			return nil, fmt.Errorf("after %d of %d bytes: %w", len(state), size, err)
		}
		state = append(state, part...)
	}
	return state, nil
}

// encodeState puts an inner optimizer's state and vectors into one text of bytes.
func encodeState(inner []byte, vectors ...[]float32) []byte {
	size := 8 + len(inner)
	for _, v := range vectors {
		size += 4 * len(v)
	}
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, size), uint64(len(inner)))
	b = append(b, inner...)
	for _, v := range vectors {
		b = appendFloats(b, v)
	}
	return b
}

// appendFloats writes values little-endian, readFloats reads as many as it has room for.
func appendFloats(b []byte, values []float32) []byte {
	b = slices.Grow(b, 4*len(values))
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

func readFloats(values []float32, b []byte) {
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// decodeState returns the inner optimizer's state and vectors of these lengths.
func decodeState(b []byte, lengths ...int) (inner []byte, vectors [][]float32, err error) {
	rest := 0
	for _, n := range lengths {
		rest += 4 * n
	}
	if len(b) < 8 || uint64(len(b)-8) != binary.LittleEndian.Uint64(b)+uint64(rest) || len(b)-8 < rest {
		return nil, nil, fmt.Errorf("state of %d bytes: it is of another model, or cut", len(b))
	}
	inner, b = b[8:len(b)-rest], b[len(b)-rest:]
	for _, n := range lengths {
		v := make([]float32, n)
		readFloats(v, b)
		for i := range v {
			if x := float64(v[i]); math.IsNaN(x) || math.IsInf(x, 0) {
				return nil, nil, fmt.Errorf("state: value %d is %v", i, x)
			}
		}
		vectors, b = append(vectors, v), b[4*n:]
	}
	return inner, vectors, nil
}
