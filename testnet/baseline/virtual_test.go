package baseline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// This file is a world of members in virtual time: connections are pipes in memory, the
// coordinator is a desk, and learners sleep instead of training. Each lives in a synctest
// bubble, which also shows that every goroutine ends.

// pipeStream is one end of a stream in memory.
type pipeStream struct{ net.Conn }

func (s pipeStream) Reset() error { return s.Close() }

// cloud connects hosts.
type cloud struct {
	t     *testing.T
	desk  *desk
	rules Rules

	mu    sync.Mutex
	hosts map[wire.PeerID]*memHost
	cut   map[[2]wire.PeerID]bool

	members sync.WaitGroup
	clock   sync.WaitGroup
}

func newCloud(t *testing.T, rules Rules) *cloud {
	c := &cloud{t: t, desk: newDesk(rules), rules: rules, hosts: map[wire.PeerID]*memHost{}, cut: map[[2]wire.PeerID]bool{}}
	c.clock.Go(c.desk.tick)
	return c
}

// run waits until all members have ended.
func (c *cloud) run() {
	c.members.Wait()
	close(c.desk.done)
	c.clock.Wait()
}

// memHost is one member's network.
type memHost struct {
	cloud    *cloud
	id       wire.PeerID
	services map[string]func(wire.PeerID, p2p.Stream)
	peers    map[wire.PeerID]bool
	streams  map[wire.PeerID][]net.Conn
	dead     bool
}

// deskID names the coordinator.
var deskID = wire.PeerID{255}

func pair(a, b wire.PeerID) [2]wire.PeerID {
	if a.Compare(b) > 0 {
		a, b = b, a
	}
	return [2]wire.PeerID{a, b}
}

func (c *cloud) host(id wire.PeerID) *memHost {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := &memHost{cloud: c, id: id, services: map[string]func(wire.PeerID, p2p.Stream){}, peers: map[wire.PeerID]bool{}, streams: map[wire.PeerID][]net.Conn{}}
	c.hosts[id] = h
	return h
}

func (h *memHost) ID() wire.PeerID { return h.id }
func (h *memHost) Addrs() []string { return []string{h.id.String()} }

func (h *memHost) Connected() (ids []wire.PeerID) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	for id := range h.peers {
		ids = append(ids, id)
	}
	return ids
}

var errFar = errors.New("cannot be reached")

func (h *memHost) Dial(_ context.Context, addr string) (wire.PeerID, error) {
	if addr == deskID.String() {
		return deskID, nil
	}
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	for id, other := range h.cloud.hosts {
		if id.String() == addr && !other.dead && !h.dead && !h.cloud.cut[pair(id, h.id)] {
			h.peers[id], other.peers[h.id] = true, true
			return id, nil
		}
	}
	return wire.PeerID{}, errFar
}

func (h *memHost) Call(ctx context.Context, to wire.PeerID, request []byte, _ int) ([]byte, error) {
	h.cloud.mu.Lock()
	dead := h.dead
	h.cloud.mu.Unlock()
	if to != deskID || dead {
		return nil, errFar
	}
	return h.cloud.desk.handle(ctx, h.id, request), nil
}

func (h *memHost) Open(_ context.Context, to wire.PeerID, service string) (p2p.Stream, error) {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	other := h.cloud.hosts[to]
	if h.dead || !h.peers[to] || other.services[service] == nil {
		return nil, errFar
	}
	near, far := net.Pipe()
	h.streams[to], other.streams[h.id] = append(h.streams[to], near), append(other.streams[h.id], far)
	go other.services[service](h.id, pipeStream{far})
	return pipeStream{near}, nil
}

func (h *memHost) Accept(service string, f func(wire.PeerID, p2p.Stream)) { h.services[service] = f }

// part ends what is between two hosts, and keeps them apart or not. The caller holds mu.
func (c *cloud) part(a, b wire.PeerID, apart bool) {
	c.cut[pair(a, b)] = apart
	for _, x := range [][2]wire.PeerID{{a, b}, {b, a}} {
		if h := c.hosts[x[0]]; h != nil && apart {
			for _, s := range h.streams[x[1]] {
				s.Close()
			}
			delete(h.streams, x[1])
			delete(h.peers, x[1])
		}
	}
}

// separate parts two sides, or lets them meet again.
func (c *cloud) separate(a, b []byte, apart bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, i := range a {
		for _, j := range b {
			c.part(idOf(i), idOf(j), apart)
		}
	}
}

func idOf(n byte) wire.PeerID { return wire.PeerID{n} }

// player is a member of a cloud.
type player struct {
	*Member
	learner *sleeper
	host    *memHost
	cancel  context.CancelFunc
	err     error
}

// tokensEach is what a round is of for every member.
const tokensEach = 10

// start begins a member with a number.
func (c *cloud) start(n byte) *player {
	h := c.host(idOf(n))
	l := &sleeper{cloud: c, id: n, vector: make([]float32, 7), state: make([]float32, 7), pace: 100 * time.Millisecond}
	p := &player{Member: NewMember(h, deskID.String(), l, c.rules.Budget, true, slog.New(slog.DiscardHandler)), learner: l, host: h}
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	c.members.Go(func() {
		defer cancel()
		if p.err = p.Run(ctx); p.err != nil && !h.isDead() {
			c.t.Errorf("member %d: %v", n, p.err)
		}
	})
	return p
}

func (h *memHost) isDead() bool {
	h.cloud.mu.Lock()
	defer h.cloud.mu.Unlock()
	return h.dead
}

// kill ends a member as a signal does: nothing of it is heard any more.
func (c *cloud) kill(p *player) {
	c.mu.Lock()
	p.host.dead = true
	for id := range c.hosts {
		if id != p.host.id {
			c.part(id, p.host.id, true)
			c.cut[pair(id, p.host.id)] = false // its next process is welcome
		}
	}
	c.mu.Unlock()
	c.desk.gone(p.host.id)
	p.cancel()
}

// sleeper is a learner whose rounds take time and nothing else. Its contribution depends
// on the member and the round, and the state on all contributions ever.
type sleeper struct {
	cloud         *cloud
	id            byte
	vector, state []float32

	mu     sync.Mutex
	pace   time.Duration
	stuck  time.Duration // of the next round, in which it hears nothing
	rounds int           // begun
}

func (s *sleeper) setPace(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace = d
}

func (s *sleeper) Vector() []float32                  { return s.vector }
func (s *sleeper) Buckets() []int                     { return []int{2, 2, 7} }
func (s *sleeper) Tokens(_ Label, members int) uint64 { return uint64(members) * tokensEach }
func (s *sleeper) StateLimit() int                    { return 4 * len(s.state) }
func (s *sleeper) Round(ctx context.Context, from Label, _ int, ready func(lo int)) error {
	s.mu.Lock()
	s.rounds++
	pace, stuck := s.pace, s.stuck
	s.stuck = 0
	s.mu.Unlock()
	time.Sleep(stuck)
	for i := range s.vector {
		s.vector[i] = float32(s.id)*float32(i+1) + float32(from.Round%17)/3
	}
	for _, lo := range []int{2, 0} {
		pause(ctx, pace/2)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ready(lo)
	}
	return nil
}

// Apply adds the mean.
func (s *sleeper) Apply(from Label, members int) error {
	for i, x := range s.vector {
		s.state[i] = s.state[i]/2 + x/float32(members)
	}
	return nil
}

func (s *sleeper) State() (b []byte, err error) {
	for _, x := range s.state {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b, nil
}

func (s *sleeper) SetState(b []byte) error {
	if len(b) != s.StateLimit() {
		return fmt.Errorf("%d bytes", len(b))
	}
	for i := range s.state {
		s.state[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return nil
}

// finals fails unless these members ended with the run's model, with equal bits.
func (c *cloud) finals(players ...*player) {
	c.t.Helper()
	for _, p := range players {
		l, final := p.state()
		switch {
		case !final:
			c.t.Errorf("member %d ended with %+v, which is not the end", p.learner.id, l)
		case l.Tokens < c.rules.Budget:
			c.t.Errorf("member %d ended with %d tokens of %d", p.learner.id, l.Tokens, c.rules.Budget)
		case l != *c.desk.registry.End():
			c.t.Errorf("member %d ended with %+v, the run with %+v", p.learner.id, l, *c.desk.registry.End())
		case !slices.Equal(p.learner.state, players[0].learner.state):
			c.t.Errorf("members %d and %d hold other bits: %v, %v", p.learner.id, players[0].learner.id, p.learner.state, players[0].learner.state)
		}
	}
}

// account adds up the history and fails if it has gaps or other tokens than the model.
func (c *cloud) account() (folded map[wire.PeerID]uint64) {
	c.t.Helper()
	folded = map[wire.PeerID]uint64{}
	var at Label
	for _, s := range c.desk.registry.History() {
		if s.First != at {
			c.t.Errorf("view %d begins with %+v, the one before ended with %+v", s.Number, s.First, at)
		}
		at = s.Last
		for _, id := range s.Members {
			folded[id] += (s.Last.Tokens - s.First.Tokens) / uint64(len(s.Members))
		}
	}
	if end := c.desk.registry.End(); end == nil || at != *end {
		c.t.Errorf("the history ends with %+v, the run with %+v", at, end)
	}
	return folded
}
