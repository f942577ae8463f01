package exhaust

import (
	"errors"
	"math"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// A node is a function of its inputs, and it shares nothing with others. So what
// an input does to a node in a given state is computed once, whatever state the
// other nodes are in. The search over the states of the world is then one over
// tuples.

// input is one thing that happens to a node.
type input struct {
	kind  inputKind
	from  int    // the sender of a message or a request; a peer
	call  uint64 // of a request or an answer
	bytes string // of a message, a request or an answer; "" is no answer
}

type inputKind uint8

const (
	inBoot inputKind = iota
	inStep
	inTornStep // a step that ends in a crash, right after the delta is durable
	inTick
	inMessage
	inRequest
	inAnswer
	inPeerUp
	inPeerDown
	inCrash
)

// output is what leaves a node.
type output struct {
	kind  outputKind
	to    int    // of a call or an answer; messages go to all
	call  uint64 // likewise
	bytes string
}

type outputKind uint8

const (
	outMessage outputKind = iota
	outCall
	outAnswer
	outReconnect
)

// local is a state of a node: the inputs that led there, and what can be seen.
type local struct {
	id     uint32
	index  int
	parent *local
	input  input
	next   map[input]*transition

	up, may, done bool
	open          []uint64 // calls without an answer
	closed        uint32
	chain, state  outer.Digest // of the tip
	settled       bool         // every closed round is folded
	tokens        uint64       // folded in the tip
	mine          uint64       // stepped in all lives, not lost at a crash and not on the way into the tip
	rest          bool         // nothing unpublished or in flight
	off           float64      // between local and global parameters
}

// transition is what an input does to a node.
type transition struct {
	to  *local
	out []output
}

// locals are all states of all nodes that were met.
type locals struct {
	all      map[uint64]*local // by fingerprint
	live     map[*local]*node  // some nodes, in the state that they are in
	opened   map[string]wire.Message
	verified map[wire.SignedHeader]error
	states   map[outer.Digest]outer.Digest // what a chain came to, in whatever world
	runs     int                           // inputs that were computed
	err      error
	where    *local
}

// maxLive bounds the nodes kept in memory; others are made again from their
// inputs.
const maxLive = 4_000

func newLocals() *locals {
	return &locals{
		all: map[uint64]*local{}, live: map[*local]*node{}, opened: map[string]wire.Message{}, verified: map[wire.SignedHeader]error{},
		states: map[outer.Digest]outer.Digest{},
	}
}

// first is a node that was never started.
func (ls *locals) first(index int) *local {
	return ls.known(newNode(index, ls), nil, input{})
}

// transit gives a node in some state an input.
func (ls *locals) transit(l *local, in input) *transition {
	if t, ok := l.next[in]; ok {
		return t
	}
	n := ls.nodeAt(l)
	out := ls.feed(n, in)
	t := &transition{ls.known(n, l, in), out}
	l.next[in] = t
	return t
}

// feed is the one place where a node runs.
func (ls *locals) feed(n *node, in input) []output {
	ls.runs++
	n.medium = &medium{}
	n.input(in)
	if n.up {
		n.replica.Execute()
	}
	n.check()
	if n.err != nil && ls.err == nil {
		ls.err = n.err
	}
	return n.out
}

// nodeAt is a node in that state, for the caller to use up.
func (ls *locals) nodeAt(l *local) *node {
	if n, ok := ls.live[l]; ok {
		delete(ls.live, l)
		return n
	}
	var inputs []input
	at := l
	for ; at.parent != nil; at = at.parent {
		inputs = append(inputs, at.input)
	}
	n := newNode(at.index, ls)
	for i := len(inputs) - 1; i >= 0; i-- {
		ls.feed(n, inputs[i])
	}
	return n
}

// known finds the state that a node is in, or begins a new one.
func (ls *locals) known(n *node, parent *local, in input) *local {
	key := n.fingerprint()
	l, met := ls.all[key]
	if !met {
		l = n.observe()
		l.id, l.parent, l.input = uint32(len(ls.all)), parent, in
		ls.all[key] = l
		if ls.err != nil && ls.where == nil {
			ls.where = l
		}
	}
	if len(ls.live) >= maxLive {
		for other := range ls.live {
			delete(ls.live, other)
			break
		}
	}
	ls.live[l] = n
	return l
}

var errDown = errors.New("peer is not reachable")

func (n *node) input(in input) {
	switch in.kind {
	case inBoot:
		n.boot()
	case inCrash:
		n.crash()
	case inStep:
		n.step()
	case inTornStep:
		n.torn = true
		n.step()
		n.replica.Execute()
		n.torn = false
	case inTick:
		n.clock += quantum
		n.machine().SetLearning(uint64(n.steps), uint64(n.steps), 0, 0, 1)
		n.machine().Tick(n.clock)
	case inMessage:
		n.machine().Step(n.clock, gossip.Received{From: ids[in.from], Message: n.locals.open(in.bytes)})
	case inRequest:
		n.handle++
		n.asked[n.handle] = request{in.from, in.call}
		n.machine().Step(n.clock, gossip.Requested{Handle: n.handle, From: ids[in.from], Request: []byte(in.bytes)})
	case inAnswer:
		delete(n.calls, in.call)
		if in.bytes == "" {
			n.machine().Step(n.clock, gossip.Answered{Call: in.call, Err: errDown})
			return
		}
		n.machine().Step(n.clock, gossip.Answered{Call: in.call, Response: []byte(in.bytes)})
	case inPeerUp:
		n.machine().Step(n.clock, gossip.PeerUp{Peer: ids[in.from], Signed: signed[in.from], Record: records[in.from]})
	case inPeerDown:
		n.machine().Step(n.clock, gossip.PeerDown{Peer: ids[in.from]})
	}
}

// open decodes and verifies a message, which is a function of its bytes.
func (ls *locals) open(bytes string) wire.Message {
	m, known := ls.opened[bytes]
	if !known {
		var err error
		if m, err = wire.Open(run, []byte(bytes)); err != nil && ls.err == nil {
			ls.err = err
		}
		ls.opened[bytes] = m
	}
	return m
}

// check holds a node to what must hold in every state.
func (n *node) check() {
	if n.up {
		if total := n.account().Total().Tokens; total != n.made {
			n.broken("the machine accounts for %d tokens of %d: %+v", total, n.made, n.account())
		}
		n.checkLearner()
	}
	for _, l := range n.disk.Records(0) {
		if state, known := n.locals.states[l.Chain]; known && state != l.State {
			n.broken("round %d: chain %x came to state %x here and %x elsewhere", l.Round, l.Chain[:4], l.State[:4], state[:4])
		}
		n.locals.states[l.Chain] = l.State
	}
}

// checkLearner: the learner has pending what the machine counts, and in its parameters the own deltas
// that the machine has in flight.
func (n *node) checkLearner() {
	r := n.machine().Rounds().Fragment(0)
	steps, tokens := n.learner.Pending(0)
	if machineSteps, machineTokens := r.Pending(); steps != machineSteps || tokens != machineTokens {
		n.broken("the learner has %d steps and %d tokens pending, the machine %d and %d", steps, tokens, machineSteps, machineTokens)
	}
	if !slices.Equal(n.learner.InFlight(0), r.InFlight()) {
		n.broken("the machine has own deltas %d in flight, the learner %d", r.InFlight(), n.learner.InFlight(0))
	}
}

func (n *node) fingerprint() uint64 {
	return fingerprintOf(n.index, n.up, n.life, n.clock, n.may, n.done, n.steps, n.made, n.lost, n.handle,
		n.asked, n.calls, n.disk, n.local, n.replica, n.learner)
}

// observe records what the search looks at.
func (n *node) observe() *local {
	l := &local{index: n.index, next: map[input]*transition{}, up: n.up, may: n.may, done: n.done}
	l.mine = uint64(n.steps) - n.lost
	if !n.up {
		return l
	}
	for id := range n.calls {
		l.open = append(l.open, id)
	}
	r := n.machine().Rounds()
	tip, a := r.Fragment(0).Tip(), n.account()
	l.closed, l.chain, l.state, l.tokens, l.settled = r.Fragment(0).Closed(), tip.Chain, tip.State, tip.Tokens, r.Status().Settled
	left := a.Pending.Tokens + a.InFlight.Tokens
	l.mine -= left + a.Discarded.Tokens
	l.rest = left == 0
	for i, x := range tip.Global {
		l.off = max(l.off, math.Abs(float64(x)-float64(n.local[i])))
	}
	return l
}
