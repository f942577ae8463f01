package baseline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// Network is what a member needs to reach the others: a *p2p.Host is one.
type Network interface {
	ID() wire.PeerID
	Addrs() []string
	Connected() []wire.PeerID
	Dial(ctx context.Context, addr string) (wire.PeerID, error)
	Call(ctx context.Context, to wire.PeerID, request []byte, maxResponse int) ([]byte, error)
	Open(ctx context.Context, to wire.PeerID, service string) (p2p.Stream, error)
	Accept(service string, f func(from wire.PeerID, s p2p.Stream))
}

// Learner is what a member does alone: it trains for a round, and applies the sum of
// what all members did. One goroutine uses it at a time.
type Learner interface {
	// Round makes this member's contribution to the round after a state, and leaves it
	// in Vector. ready is told how much of that is final, from its end to its start:
	// everything at lo and beyond. At last lo is 0, and the caller may change the
	// vector.
	Round(ctx context.Context, from Label, members int, ready func(lo int)) error
	// Vector is the contribution, always the same slice.
	Vector() []float32
	// Apply makes the next state of the sum of the members' vectors, which is in Vector.
	Apply(from Label, members int) error
	// Tokens is how many a round after a state is of, all members together.
	Tokens(from Label, members int) uint64
	// Buckets are the ends of the parts of Vector that may travel apart, ascending.
	Buckets() []int
	// State encodes what a member must hold to take part from here on; SetState takes
	// it, and changes nothing after an error. None is longer than StateLimit.
	State() ([]byte, error)
	SetState(b []byte) error
	StateLimit() int
}

// Times of a member.
const (
	// minSilenceLimit is the least time in which a neighbour may send nothing while this
	// member waits. Below it, a busy machine would look like a dead member.
	minSilenceLimit = 5 * time.Second
	// silenceRounds is how many of the longest rounds so far it may be: members are not
	// equally fast, and one may become slower.
	silenceRounds = 4
	// firstSilenceLimit is the same for the first round of a view, when it is not known how
	// long a round takes.
	firstSilenceLimit = time.Minute
	// snapshotPatience is what it takes at most to give a state to those that lack it.
	snapshotPatience = 10 * time.Minute
	// dialWithin is how long connecting to another member may take.
	dialWithin = 3 * time.Second
	// askWithin is how long the coordinator may take to answer: it parks questions for
	// Rules.Standby at most.
	askWithin = 30 * time.Second
	// askEvery lies between two questions.
	askEvery = 200 * time.Millisecond
	// lostWithin is how long a member lives without a coordinator.
	lostWithin = time.Minute
	// leaveWithin is how long a member that was asked to leave goes on with a round.
	leaveWithin = 10 * time.Second
)

// errLost says that no coordinator answers.
var errLost = errors.New("the coordinator does not answer")

// Member takes part in rounds until the run is over.
type Member struct {
	net         Network
	coordinator string // its address
	learner     Learner
	budget      uint64 // tokens of the whole run
	overlap     bool   // send buckets while others are still being computed
	log         *slog.Logger
	account     account

	leaving   atomic.Bool
	stop      atomic.Bool // end the view after this round
	arrived   arrivals
	snapshots snapshots

	mu      sync.Mutex
	label   Label
	in      uint64 // last view that it was told of
	view    View   // that one
	phase   string
	ended   time.Time
	final   bool // the run is over and the learner has its model
	trail   []Label
	longest time.Duration // round so far
}

// trailLength is how many of its last states a member remembers the labels of, so that
// two members can be compared when one is ahead.
const trailLength = 64

// NewMember is a member that has done nothing yet.
func NewMember(n Network, coordinator string, l Learner, budget uint64, overlap bool, log *slog.Logger) *Member {
	m := &Member{net: n, coordinator: coordinator, learner: l, budget: budget, overlap: overlap, log: log, phase: "joining"}
	m.account.began = time.Now()
	n.Accept(ringService, m.arrived.serve)
	n.Accept(stateService, m.snapshots.serve)
	return m
}

// Run takes part until the run is over, or until ctx ends: then the member ends its round
// with the others, and goes. It returns an error if it cannot go on.
func (m *Member) Run(ctx context.Context) error {
	hard, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		m.leaving.Store(true)
		time.AfterFunc(leaveWithin, cancel) // one that is not in a round returns before
	})()
	defer m.snapshots.close()
	defer m.arrived.close()
	for {
		order, err := m.await(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case order.End != nil:
			m.conclude(*order.End)
			return nil
		}
		if err := m.participate(hard, *order.View); err != nil {
			return err
		}
		if m.leaving.Load() {
			return nil
		}
	}
}

// conclude notes that the run is over, and whether this member has its model.
func (m *Member) conclude(end Label) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.final = m.label == end
	m.phase, m.ended = "done", time.Now()
	if !m.final {
		m.phase = CutOff
	}
}

// CutOff is what the status of a member says that was not there when the run ended.
const CutOff = "cut off"

// await asks for a view until there is one, and connects to the others meanwhile.
func (m *Member) await(ctx context.Context) (Order, error) {
	defer m.account.spend(waiting, time.Now())
	var heard time.Time
	for began := time.Now(); ctx.Err() == nil; {
		order, err := m.ask(ctx, opReady)
		switch {
		case err == nil && (order.View != nil || order.End != nil):
			return order, nil
		case err == nil:
			heard = time.Now()
			m.connect(ctx, order.PeerList)
		case ctx.Err() == nil && time.Since(later(began, heard)) > lostWithin:
			return Order{}, fmt.Errorf("%w: %w", errLost, err)
		default:
			m.log.Debug("ask the coordinator", "err", err)
		}
		pause(ctx, askEvery)
	}
	return Order{}, ctx.Err()
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// ask asks the coordinator one thing.
func (m *Member) ask(ctx context.Context, op string) (Order, error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	id, err := m.net.Dial(ctx, m.coordinator) // at once if there is a connection
	if err != nil {
		return Order{}, err
	}
	b, err := m.net.Call(ctx, id, encode(m.report(op, id)), maxAnswer)
	if err != nil {
		return Order{}, err
	}
	if len(b) == 0 || wire.Status(b[0]) != wire.OK {
		return Order{}, fmt.Errorf("the coordinator says %x", b[:min(len(b), 1)])
	}
	order, err := decode[Order](b[1:], maxAnswer)
	if err == nil && order.View != nil {
		err = m.suits(*order.View)
	}
	return order, err
}

// suits returns an error for a view that this member cannot be meant by.
func (m *Member) suits(v View) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch self := m.net.ID(); {
	case v.place(self) < 0:
		return fmt.Errorf("view %d is without this member", v.Number)
	case v.Number <= m.in:
		return fmt.Errorf("view %d comes after view %d", v.Number, m.in)
	case !v.lacks(self) && v.From != m.label:
		return fmt.Errorf("view %d begins with %+v, this member holds %+v", v.Number, v.From, m.label)
	}
	return nil
}

func (m *Member) report(op string, coordinator wire.PeerID) Report {
	m.mu.Lock()
	r := Report{Op: op, In: m.in, Label: m.label}
	m.mu.Unlock()
	if addrs := m.net.Addrs(); len(addrs) > 0 {
		r.Addr = addrs[0]
	}
	for _, id := range m.net.Connected() {
		if id != coordinator && len(r.Connected) < MaxMembers {
			r.Connected = append(r.Connected, id)
		}
	}
	return r
}

// connect dials all nodes of the peer list without a connection at once.
func (m *Member) connect(ctx context.Context, peerList []Place) {
	up := map[wire.PeerID]bool{m.net.ID(): true}
	for _, id := range m.net.Connected() {
		up[id] = true
	}
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	var wg sync.WaitGroup
	for _, p := range peerList {
		if up[p.ID] {
			continue
		}
		wg.Go(func() {
			if _, err := m.net.Dial(ctx, p.Addr); err != nil {
				m.log.Debug("dial", "member", p.ID, "err", err)
			}
		})
	}
	wg.Wait()
}

// participate makes rounds in a view until it ends. An error means that the member cannot go on
// at all; a failure between members only ends the view.
func (m *Member) participate(ctx context.Context, v View) error {
	m.enter(v)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer cancel(nil)
	m.stop.Store(false)
	watcher.Go(func() { m.watch(ctx) })
	c, err := m.join(ctx, cancel, v)
	if err != nil {
		m.log.Info("view failed", "view", v.Number, "err", err)
		return nil
	}
	defer c.close()
	defer cancel(nil)
	for stopped := false; !stopped; {
		began := time.Now()
		if stopped, err = m.round(ctx, v, c); err != nil {
			return m.failed(ctx, v, err)
		}
		m.took(time.Since(began))
	}
	defer m.account.spend(waiting, time.Now())
	c.finish()
	return nil
}

func (m *Member) took(round time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.longest = max(m.longest, round)
}

// failed tells an error of this member's own from one of the view.
func (m *Member) failed(ctx context.Context, v View, err error) error {
	var own *learnerError
	if errors.As(err, &own) && !errors.Is(err, context.Canceled) {
		return err
	}
	m.log.Info("view failed", "view", v.Number, "round", m.Label().Round+1, "err", err, "cause", context.Cause(ctx))
	return nil
}

// learnerError is an error of the learner, which no other view mends.
type learnerError struct{ error }

func (e *learnerError) Unwrap() error { return e.error }

// enter notes a view, before anything of it is done.
func (m *Member) enter(v View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.in, m.view, m.phase = v.Number, v, "training"
	m.account.joined()
}

// watch hears when the view is to end after its round.
func (m *Member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		order, err := m.ask(ctx, opWatch)
		if err == nil && order.Stop {
			m.stop.Store(true)
			return
		}
		pause(ctx, askEvery)
	}
}

// join connects the ring of a view and brings this member to the state that it begins
// with.
func (m *Member) join(ctx context.Context, fail context.CancelCauseFunc, v View) (*ringConn, error) {
	defer m.account.spend(waiting, time.Now())
	if v.Source == m.net.ID() && len(v.Lacking) > 0 {
		b, err := m.learner.State()
		if err != nil {
			return nil, err
		}
		m.snapshots.offer(v.Number, b)
		context.AfterFunc(ctx, func() { m.snapshots.withdraw(v.Number) })
	}
	c, err := m.connectRing(ctx, fail, v)
	if err != nil {
		return nil, err
	}
	if v.lacks(m.net.ID()) {
		if err := m.fetch(ctx, v); err != nil {
			c.close()
			return nil, err
		}
	}
	return c, nil
}

// fetch takes the state of a view from its source.
func (m *Member) fetch(ctx context.Context, v View) error {
	b, err := fetchSnapshot(ctx, m.net, v.Source, v.Number, m.learner.StateLimit())
	if err == nil {
		err = m.learner.SetState(b)
	}
	if err != nil {
		return fmt.Errorf("state of view %d from %v: %w", v.Number, v.Source, err)
	}
	m.reach(v.From)
	return nil
}

// reach notes that the learner holds a state.
func (m *Member) reach(l Label) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.label = l
	m.trail = append(m.trail, l)
	if len(m.trail) > trailLength {
		m.trail = m.trail[1:]
	}
}

// Label says which state the member holds.
func (m *Member) Label() Label {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.label
}

// silenceLimit is how long a neighbour may send nothing.
func (m *Member) silenceLimit(v View) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := max(minSilenceLimit, silenceRounds*m.longest)
	switch first := m.label == v.From; {
	case first && len(v.Lacking) > 0:
		return max(p, snapshotPatience)
	case first:
		return max(p, firstSilenceLimit)
	}
	return p
}
