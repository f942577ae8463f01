package link

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/testnet/shaping"
)

const (
	mostNodes   = 8
	mostPayload = 64 << 20
	// streams are requests that a node has open with each other one: as one ends
	// another has begun, as where deltas of several fragments come at a time.
	streams = 4
	// warm is how long bulk runs before it is measured: slow start is over, and
	// uplinks were measured.
	warm            = 5 * time.Second
	heartbeatBytes  = 400
	heartbeatPeriod = 500 * time.Millisecond
)

// world is hosts that know each other.
type world struct {
	hosts   []*p2p.Host
	began   time.Time
	payload int
	work    sync.WaitGroup // ends with the hosts, or with the context of the load
	bulk    atomic.Int64   // bytes that arrived
	mu      sync.Mutex
	delays  []time.Duration // of heartbeats
	watched bool
}

// measure loads a world of n nodes with this link.
func measure(ctx context.Context, words string, n int, p plan) (r result, err error) {
	link, err := shaping.Parse(words)
	if err != nil {
		return r, err
	}
	w := &world{began: time.Now(), payload: p.payload}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.connect(ctx, n, link); err != nil {
		return r, err
	}
	loaded, stop := context.WithCancel(ctx)
	var load sync.WaitGroup
	defer func() { stop(); load.Wait() }()
	w.load(loaded, &load)
	if err := wait(ctx, warm); err != nil {
		return r, err
	}
	w.watch()
	before, start := w.bulk.Load(), time.Now()
	if err := wait(ctx, p.span); err != nil {
		return r, err
	}
	rate := float64(w.bulk.Load()-before) / time.Since(start).Seconds()
	return w.result(result{Link: words, Nodes: n, BulkMBPerS: rate / 1e6}, link), nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// connect starts the hosts and connects each to all others.
func (w *world) connect(ctx context.Context, n int, link shaping.Link) error {
	for i := range n {
		h, err := p2p.New(config(byte(i+1), link))
		if err != nil {
			return err
		}
		h.Handle(w.answer())
		w.work.Go(func() { w.listen(h) })
		for _, other := range w.hosts {
			if _, err := h.Dial(ctx, other.Addrs()[0]); err != nil {
				return errors.Join(err, h.Close())
			}
		}
		w.hosts = append(w.hosts, h)
	}
	return nil
}

// config is a node of a run of its own.
func config(n byte, link shaping.Link) p2p.Config {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	run := wire.RunID{'l', 'i', 'n', 'k'}
	signed, err := hello.Sign(key, hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Agent: "atoll/link", StartedMs: 1,
	})
	if err != nil {
		panic("link: " + err.Error()) // a mistake in the record above
	}
	return p2p.Config{
		Key: key, Run: run, Profile: p2p.Local, Agent: "atoll/link", OnConn: shaping.New(&link, fmt.Sprint(n)).Conn,
		Record: func() hello.Signed { return signed },
		Check:  func(wire.PeerID, []byte) error { return nil },
	}
}

// answer sends a payload of noise.
func (w *world) answer() p2p.Handler {
	payload := make([]byte, w.payload)
	rand.NewChaCha8([32]byte{}).Read(payload)
	return func(context.Context, wire.PeerID, []byte) []byte { return payload }
}

// listen records how long heartbeats took.
func (w *world) listen(h *p2p.Host) {
	for e := range h.Events() {
		m, ok := e.(p2p.Message)
		if !ok || len(m.Data) < 8 {
			continue
		}
		sent := w.began.Add(time.Duration(binary.LittleEndian.Uint64(m.Data)))
		w.mu.Lock()
		if w.watched {
			w.delays = append(w.delays, time.Since(sent))
		}
		w.mu.Unlock()
	}
}

// watch begins to note delays.
func (w *world) watch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watched = true
}

// load has every node ask all others without a pause, and send heartbeats.
func (w *world) load(ctx context.Context, g *sync.WaitGroup) {
	for i, h := range w.hosts {
		g.Go(func() { w.heartbeat(ctx, h, time.Duration(i)*heartbeatPeriod/time.Duration(len(w.hosts))) })
		for _, other := range w.hosts {
			for range streams {
				if other != h {
					g.Go(func() { w.ask(ctx, h, other.ID()) })
				}
			}
		}
	}
}

func (w *world) ask(ctx context.Context, h *p2p.Host, of wire.PeerID) {
	for ctx.Err() == nil {
		got, err := h.Call(ctx, of, []byte{1}, w.payload)
		if err == nil {
			w.bulk.Add(int64(len(got)))
		} else if wait(ctx, 100*time.Millisecond) != nil {
			return
		}
	}
}

func (w *world) heartbeat(ctx context.Context, h *p2p.Host, first time.Duration) {
	for pause := first; wait(ctx, pause) == nil; pause = heartbeatPeriod {
		msg := binary.LittleEndian.AppendUint64(nil, uint64(time.Since(w.began)))
		id := h.ID()
		msg = append(append(msg, id[:]...), make([]byte, heartbeatBytes-8-len(id))...)
		if h.Publish(msg) != nil {
			return // it closes
		}
	}
}

func (w *world) result(r result, link shaping.Link) result {
	for _, h := range w.hosts {
		if upload, full := h.Upload(); full && link.Up > 0 {
			r.UploadShare += upload / float64(link.Up)
			r.Full++
		}
	}
	r.UploadShare /= float64(max(r.Full, 1))
	if link.Up > 0 {
		r.BulkShare = 1e6 * r.BulkMBPerS / float64(link.Up) / float64(len(w.hosts))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.delays)
	if r.Heartbeats = len(w.delays); r.Heartbeats > 0 {
		at := func(q float64) float64 { return w.delays[int(q*float64(r.Heartbeats-1))].Seconds() }
		r.MedianS, r.P99S, r.WorstS = at(0.5), at(0.99), at(1)
	}
	return r
}

func (w *world) close() error {
	var err error
	for _, h := range w.hosts {
		err = errors.Join(err, h.Close())
	}
	w.work.Wait()
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}
