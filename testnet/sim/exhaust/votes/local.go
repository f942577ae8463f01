package votes

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"fmt"
	"slices"
	"strings"

	"atoll/gossip/finality"
	"atoll/gossip/wire"
	"atoll/testnet/sim/exhaust"
)

const (
	voters = 4
	liar   = 3 // its place; those before it are honest
	height = 1 // the one that is voted on: the table of the first height is not in question here
)

// Rounds of the two values, and of the one that is certified already.
const (
	roundBefore = 1
	roundA      = 2
	roundB      = 3
)

// vote is a vote by its number in rig.sent.
type vote = int

// input is one thing that happens to a voter: votes come and, unless they make it do something, its wait ends.
type input struct {
	restart bool
	late    bool    // votes of a phase that is over
	leads   bool    // votes of a later view
	votes   [6]vote // 1 + each, ascending; 0 is none
}

// local is a state of a voter: the inputs that led there, and what can be seen.
type local struct {
	id        uint32
	shape     uint64 // the same for voters that differ in their names alone
	at        int
	path      []input
	next      map[input]*local
	view      uint32
	signed    []vote // ascending
	lies      []vote // prevotes of the liar's that came, ascending
	certified *finality.Certificate
}

// rig is the voters, what they can say, and all states of a voter that were met.
type rig struct {
	run     wire.RunID
	bounds  Bounds
	keys    [voters]ed25519.PrivateKey
	before  finality.Certificate
	values  [roundB + 1]finality.Value
	digests [roundB + 1]wire.Digest
	sent    []wire.SignedVote
	number  map[wire.SignedVote]vote
	lies    map[wire.Vote]vote
	all     map[uint64]*local
	inputs  int // that were computed
	err     error
}

func newRig(run wire.RunID, b Bounds) *rig {
	r := &rig{run: run, bounds: b, number: map[wire.SignedVote]vote{}, lies: map[wire.Vote]vote{}, all: map[uint64]*local{}}
	for i := range r.keys {
		r.keys[i] = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, ed25519.SeedSize))
	}
	slices.SortFunc(r.keys[:], func(a, b ed25519.PrivateKey) int { return wire.PeerIDOf(a).Compare(wire.PeerIDOf(b)) })
	for round := uint32(roundBefore); round <= roundB; round++ {
		r.values[round] = r.value(round)
		r.digests[round] = r.values[round].Digest(run)
	}
	r.before = finality.Certificate{Value: r.values[roundBefore]}
	first := wire.Vote{Phase: wire.Precommit, Round: roundBefore, Value: r.digests[roundBefore]}
	for i, key := range r.keys {
		r.before.Seals = append(r.before.Seals, finality.Seal{Voter: uint16(i), Sig: wire.SignVote(key, run, first).Sig})
	}
	return r
}

// value is the value of everybody's chain at a round.
func (r *rig) value(round uint32) finality.Value {
	v := finality.Value{Round: round, Points: []finality.Point{{Round: round, Chain: wire.Sum([]byte{byte(round)})}}}
	for _, key := range r.keys {
		v.Voters = append(v.Voters, wire.PeerIDOf(key))
	}
	return v
}

// chain is that of one voter. All have both values, and not all propose the same. Or some went astray: they have B, and
// know nothing of the rounds before. Then the others have A, and something else in place of B.
type chain struct {
	*rig
	newest uint32
	astray bool
}

func (c chain) Newest() uint32 { return c.newest }

func (c chain) At(round uint32) (v finality.Value, known bool) {
	switch v = c.values[round]; {
	case c.bounds.Astray == 0:
		return v, true
	case c.astray:
		return v, round == roundB
	case round == roundB:
		v.Points = []finality.Point{{Round: round}}
	}
	return v, true
}

func (c chain) Holds([]finality.Point) (yes, known bool) { return !c.astray, !c.astray }

// chainOf is the chain of an honest voter.
func (r *rig) chainOf(at int) chain {
	switch astray := r.bounds.Astray>>at&1 == 1; {
	case astray:
		return chain{r, roundB, true}
	case r.bounds.Astray > 0:
		return chain{r, roundA, false}
	}
	return chain{r, []uint32{roundA, roundB, roundA}[at], false}
}

// note numbers a vote.
func (r *rig) note(s wire.SignedVote) vote {
	n, known := r.number[s]
	if !known {
		n = len(r.sent)
		r.number[s] = n
		r.sent = append(r.sent, s)
	}
	return n
}

// lie is a vote of the liar's.
func (r *rig) lie(phase wire.Phase, view, round, proof uint32) vote {
	v := wire.Vote{Phase: phase, Height: height, View: view, Round: round, Proof: proof}
	if round > 0 {
		v.Value = r.digests[round]
	}
	n, known := r.lies[v]
	if !known {
		n = r.note(wire.SignVote(r.keys[liar], r.run, v))
		r.lies[v] = n
	}
	return n
}

// stepMs is any time: it passes only when the search says so.
const stepMs = 1

// machine is a voter while its inputs are played.
type machine struct {
	*finality.Voter
	now  int64
	save *finality.State
	l    local
}

func (r *rig) machine(at int, save *finality.State) *finality.Voter {
	v := finality.New(finality.Config{Run: r.run, Key: r.keys[at], Every: 1, StepMs: stepMs}, r.chainOf(at))
	v.Resume(&r.before, save)
	return v
}

// first is the state of a voter that has begun.
func (r *rig) first(at int) *local { return r.met(r.begin(at, nil)) }

// take gives a voter in some state an input. One that makes it do nothing leaves it as it was.
func (r *rig) take(l *local, in input) *local {
	to := l.next[in]
	if to == nil {
		to = r.play(l, in)
		l.next[in] = to
	}
	return to
}

// begin makes the state that a path of inputs leads to.
func (r *rig) begin(at int, path []input) *machine {
	r.inputs++
	m := &machine{Voter: r.machine(at, nil), l: local{at: at, path: path}}
	m.Tick(m.now)
	r.collect(m)
	for _, in := range path {
		r.input(m, in)
	}
	return m
}

func (r *rig) play(l *local, in input) *local {
	m := r.begin(l.at, l.path)
	if !r.input(m, in) {
		return l
	}
	m.l.path = append(slices.Clip(l.path), in)
	return r.met(m)
}

// met is the state that a machine is in.
func (r *rig) met(m *machine) *local {
	var votes []wire.Vote
	for _, n := range m.l.signed {
		v := r.sent[n].Vote
		v.Author = wire.PeerID{}
		votes = append(votes, v)
	}
	slices.SortFunc(votes, func(a, b wire.Vote) int {
		return cmp.Or(cmp.Compare(a.View, b.View), cmp.Compare(a.Phase, b.Phase))
	})
	shape := exhaust.Fingerprint(nil, votes)
	if m.View() < r.bounds.Views && m.l.certified == nil {
		shape = exhaust.Fingerprint(r.aside(m.l.at, m.View()), m.Voter, shape, r.matter(m))
	}
	key := shape ^ uint64(m.l.at)<<60
	if known := r.all[key]; known != nil {
		return known
	}
	l := m.l
	l.id, l.shape, l.next, l.view = uint32(len(r.all)), shape, map[input]*local{}, m.View()
	r.all[key] = &l
	return &l
}

// matter are the lies that can make a difference later: prevotes that a proposal may rest on, where the liar must
// say something else then. Where all vote before one goes on it never must: it lied to complete two equal votes
// of honest voters, or where all three are equal, and what is left cannot be two equal votes for anything else.
func (r *rig) matter(m *machine) (list []vote) {
	if r.bounds.Together {
		return nil
	}
	for _, n := range m.l.lies {
		if r.sent[n].View+1 < r.bounds.Views {
			list = append(list, n)
		}
	}
	return list
}

// aside names the fields of a Voter that make no other state of it: times, what never changes, what the search keeps by
// itself, and votes that came. The liar's are in local.lies, and those of honest voters can come again. What a voter would propose
// is aside too if it proposes in no view from there on.
func (r *rig) aside(at int, view uint32) map[string]bool {
	names := map[string]bool{}
	for _, name := range strings.Fields("now until repeatAt cfg self chain out last votes Mine Proof began") {
		names[name] = true
	}
	names["Valid"] = !r.proposes(at, view)
	return names
}

// proposes reports whether a voter proposes in a later view.
func (r *rig) proposes(at int, view uint32) bool {
	table := r.before.Table()
	for later := view + 1; later < r.bounds.Views; later++ {
		if table.Proposer(r.run, height, later) == table.IDs()[at] {
			return true
		}
	}
	return false
}

// input plays an input and reports whether the voter did something.
func (r *rig) input(m *machine, in input) (acted bool) {
	if in.restart {
		m.Voter = r.machine(m.l.at, m.save)
		m.Tick(m.now)
		r.collect(m)
		return true
	}
	before := m.View()
	for _, n := range in.votes {
		if n > 0 {
			r.hear(m, n-1)
			acted = r.collect(m) || acted
		}
	}
	if !acted && m.View() == before && !in.late {
		m.now += 1 << 20
		m.Tick(m.now)
		acted = r.collect(m)
	}
	return acted || m.View() != before || in.late
}

func (r *rig) hear(m *machine, n vote) {
	s := r.sent[n]
	m.Receive(m.now, s)
	if s.Author == wire.PeerIDOf(r.keys[liar]) && s.Phase == wire.Prevote {
		if at, known := slices.BinarySearch(m.l.lies, n); !known {
			m.l.lies = slices.Insert(slices.Clone(m.l.lies), at, n)
		}
	}
}

// collect takes the effects of a voter and reports whether it did something.
func (r *rig) collect(m *machine) (acted bool) {
	for _, e := range m.Effects() {
		switch e := e.(type) {
		case finality.Save:
			state := e.State
			m.save = &state
		case finality.Publish:
			if e.Vote.Author == wire.PeerIDOf(r.keys[m.l.at]) && e.Vote.Height == height {
				acted = r.signed(m, e.Vote) || acted
			}
		case finality.Certified:
			acted, m.l.certified = true, &e.Certificate
			if err := e.Certificate.Verify(r.run, &r.before); err != nil {
				r.err = fmt.Errorf("voter %d certifies what does not verify: %w", m.l.at, err)
			}
		}
	}
	return acted
}

// signed notes an own vote, and reports whether it is new. Two for one thing are what no honest voter signs.
func (r *rig) signed(m *machine, s wire.SignedVote) bool {
	n := r.note(s)
	at, known := slices.BinarySearch(m.l.signed, n)
	if known {
		return false
	}
	for _, other := range m.l.signed {
		if o := r.sent[other]; o.Phase == s.Phase && o.View == s.View {
			r.err = fmt.Errorf("voter %d signs two %vs in view %d", m.l.at, s.Phase, s.View)
		}
	}
	m.l.signed = slices.Insert(m.l.signed, at, n)
	return true
}
