package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node"
)

// Link is how fast two nodes on this machine ask each other, over TCP with its encryption
// and its pacing.
type Link struct {
	Bench         string  `json:"bench"` // "link"
	Transport     string  `json:"transport"`
	ResponseBytes int     `json:"response_bytes"`
	Streams       int     `json:"streams"` // at once
	MsPerCall     float64 `json:"ms_per_call"`
	MBPerS        float64 `json:"mb_per_s"` // all streams together
	Spread        float64 `json:"spread"`
}

// Transfer is one way to load a link.
type Transfer struct{ Bytes, Streams int }

// Transfers are a request whose answer says nothing, small deltas one by one and many at
// once, and large ones.
var Transfers = []Transfer{{1, 1}, {64 << 10, 1}, {64 << 10, 16}, {4 << 20, 1}, {4 << 20, 4}}

// Links measures transfers between two hosts on the loopback device.
func Links(ctx context.Context, m Meter, transfers []Transfer) (results []Link, err error) {
	m.report("connect two hosts")
	pair, err := newPair(ctx)
	if err != nil {
		return nil, fmt.Errorf("link: %w", err)
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	for _, t := range transfers {
		m.report(fmt.Sprintf("answers of %d bytes, %d at once", t.Bytes, t.Streams))
		s, err := m.repeat(ctx, func() error { return pair.transfer(ctx, t) })
		if err != nil {
			return nil, fmt.Errorf("link: %w", err)
		}
		results = append(results, Link{
			Bench: "link", Transport: "tcp", ResponseBytes: t.Bytes, Streams: t.Streams,
			MsPerCall: 1000 * s.Median, MBPerS: float64(t.Bytes*t.Streams) / 1e6 / s.Median, Spread: s.Spread,
		})
	}
	return results, nil
}

// pair is two hosts. One of them answers.
type pair struct {
	asker, server *p2p.Host
	drains        sync.WaitGroup
}

func newPair(ctx context.Context) (*pair, error) {
	p := &pair{}
	for i, h := range []**p2p.Host{&p.asker, &p.server} {
		host, err := p2p.New(hostConfig(byte(i + 1)))
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		*h = host
		p.drains.Go(func() {
			for range host.Events() {
			}
		})
	}
	p.server.Handle(answer)
	if _, err := p.asker.Dial(ctx, p.server.Addrs()[0]); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// hostConfig is a node of a run of its own that hears no gossip.
func hostConfig(n byte) p2p.Config {
	key, run := keyOf(n), wire.RunID{'b', 'e', 'n', 'c', 'h'}
	record := hello.Record{
		Protocol: hello.Protocol, Run: run, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Agent: node.Agent, StartedMs: 1,
	}
	signed, err := hello.Sign(key, record)
	if err != nil {
		panic("bench: " + err.Error()) // a mistake in the record above
	}
	return p2p.Config{
		Key: key, Run: run, Profile: p2p.Local, Agent: node.Agent,
		Record: func() hello.Signed { return signed },
		Check:  func(wire.PeerID, []byte) error { return errors.New("no gossip here") },
	}
}

// noise is what every answer is cut from.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 4<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	b[0] = byte(wire.OK)
	return b
})

// answer sends as many bytes as the request asks for.
func answer(_ context.Context, _ wire.PeerID, request []byte) []byte {
	if len(request) != 4 {
		return []byte{byte(wire.NotFound)}
	}
	return noise()[:min(int(binary.LittleEndian.Uint32(request)), len(noise()))]
}

// transfer makes one request on each stream, all at once.
func (p *pair) transfer(ctx context.Context, t Transfer) error {
	request := binary.LittleEndian.AppendUint32(nil, uint32(t.Bytes))
	failed := make([]error, t.Streams)
	var calls sync.WaitGroup
	for i := range failed {
		calls.Go(func() {
			got, err := p.asker.Call(ctx, p.server.ID(), request, t.Bytes)
			if err == nil && len(got) != t.Bytes {
				err = fmt.Errorf("%d bytes of %d arrived", len(got), t.Bytes)
			}
			failed[i] = err
		})
	}
	calls.Wait()
	return errors.Join(failed...)
}

func (p *pair) close() error {
	var err error
	for _, h := range []*p2p.Host{p.asker, p.server} {
		if h != nil {
			err = errors.Join(err, h.Close())
		}
	}
	p.drains.Wait()
	return err
}
