package baseline

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/testnet/shaping"
)

// Coordinator is the one place that decides who takes part in a run of a baseline.
// atoll has none: that is what the baselines are there to be compared with.
type Coordinator struct {
	host *p2p.Host
	desk *desk
	wg   sync.WaitGroup
}

// desk is a registry with a clock: it takes questions and answers them when it is time.
type desk struct {
	done chan struct{} // closed at the end

	mu       sync.Mutex
	registry *Registry
	asked    uint64
	parked   map[uint64]chan Order
}

func newDesk(r Rules) *desk {
	return &desk{done: make(chan struct{}), registry: NewRegistry(r), parked: map[uint64]chan Order{}}
}

// tickEvery is how often the coordinator looks at the time.
const tickEvery = 50 * time.Millisecond

// DefaultRules are the rules of a run on one machine that expects so many members. A view
// that ended waits some seconds for a member that does not say so. A paused member costs
// the others as much, beside the time in which they notice.
func DefaultRules(expect int, budget uint64) Rules {
	return Rules{
		Expect: expect, Budget: budget,
		Start: time.Minute, Grace: 5 * time.Second, Settle: 3 * time.Second, Standby: 5 * time.Second,
	}
}

// NewCoordinator starts a coordinator of a run on this machine. The caller closes it.
func NewCoordinator(run wire.RunID, rules Rules, link *shaping.Link, log *slog.Logger) (*Coordinator, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	host, err := newHost(key, run, hello.Observer, shaping.New(link, "coordinator"), log)
	if err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	c := &Coordinator{host: host, desk: newDesk(rules)}
	host.Handle(c.desk.handle)
	c.wg.Go(c.listen)
	c.wg.Go(c.desk.tick)
	return c, nil
}

// newHost is a host on the loopback that does not gossip.
func newHost(key ed25519.PrivateKey, run wire.RunID, role string, link *shaping.Shaper, log *slog.Logger) (*p2p.Host, error) {
	r := hello.Record{
		Protocol: hello.Protocol, Run: run, Author: wire.PeerIDOf(key), Seq: 1, Role: role,
		Precision: "f32", Agent: "atoll-baseline", StartedMs: time.Now().UnixMilli(),
	}
	if role == hello.Learner {
		r.Trainer = hello.Builtin
	}
	signed, err := hello.Sign(key, r)
	if err != nil {
		return nil, err
	}
	return p2p.New(p2p.Config{
		Key: key, Run: run, Profile: p2p.Local, Agent: r.Agent, Log: log, OnConn: link.Conn,
		Record: func() hello.Signed { return signed },
		Check:  func(wire.PeerID, []byte) error { return errors.New("nobody gossips here") },
	})
}

// Addr is where members dial the coordinator.
func (c *Coordinator) Addr() string { return c.host.Addrs()[0] }

// History has the views whose rounds are in the newest state; see Registry.
func (c *Coordinator) History() []Span {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	return c.desk.registry.History()
}

// Views is how many views there were.
func (c *Coordinator) Views() uint64 {
	c.desk.mu.Lock()
	defer c.desk.mu.Unlock()
	return c.desk.registry.View().Number
}

// Close ends the coordinator.
func (c *Coordinator) Close() error {
	close(c.desk.done)
	err := c.host.Close()
	c.wg.Wait()
	return err
}

// listen hears of members that are gone.
func (c *Coordinator) listen() {
	for e := range c.host.Events() {
		if down, ok := e.(p2p.PeerDown); ok {
			c.desk.gone(down.ID)
		}
	}
}

// handle answers one question of a member, which may take seconds.
func (d *desk) handle(ctx context.Context, from wire.PeerID, request []byte) []byte {
	said, err := decode[Report](request, maxRequest)
	if err != nil {
		return []byte{byte(wire.Refused)}
	}
	answer := d.ask(from, said)
	select {
	case o := <-answer:
		return append([]byte{byte(wire.OK)}, encode(o)...)
	case <-ctx.Done():
	case <-d.done:
	}
	return []byte{byte(wire.Busy)}
}

// ask passes a report on. The answer comes on the channel, which has room for it.
func (d *desk) ask(from wire.PeerID, said Report) <-chan Order {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked++
	answer := make(chan Order, 1)
	d.parked[d.asked] = answer
	d.registry.Report(time.Now(), from, said, d.asked)
	d.deliver()
	return answer
}

// deliver passes answers on to those that asked.
func (d *desk) deliver() {
	for _, a := range d.registry.Take() {
		d.parked[a.Ask] <- a.Order
		delete(d.parked, a.Ask)
	}
}

func (d *desk) gone(id wire.PeerID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.registry.Gone(time.Now(), id)
	d.deliver()
}

// tick lets the registry look at the time until the end.
func (d *desk) tick() {
	t := time.NewTicker(tickEvery)
	defer t.Stop()
	for {
		select {
		case <-d.done:
			return
		case now := <-t.C:
			d.mu.Lock()
			d.registry.Tick(now)
			d.registry.Renew(now)
			d.deliver()
			d.mu.Unlock()
		}
	}
}
