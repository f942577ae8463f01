package finality

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/wire"
)

// Time is milliseconds.
type Time = int64

// Chain is what a node's own chain says. A Voter reads it during inputs only.
type Chain interface {
	// Newest is the newest multiple of Config.Every up to which the own chain is final, 0 for none.
	Newest() uint32
	// At is the value of the own chain at a multiple of Config.Every. known is false while the chain is not
	// final there, or no longer known.
	At(round uint32) (v Value, known bool)
	// Holds reports whether the own chain goes through certified points. known is false where it cannot tell.
	Holds(points []Point) (yes, known bool)
}

// Config is what a Voter is made of.
type Config struct {
	Run wire.RunID
	Key ed25519.PrivateKey // nil for a node that never votes
	// Every is the rounds between two values; the first one is of that round.
	Every uint32
	// StepMs is how long a phase of the first view lasts if votes are missing. Later views last longer.
	StepMs int64
	// From is the first height at which the node may sign. A node that lost what Save gave may have signed at the
	// height under way, and must leave it out.
	From uint32
}

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.Every == 0:
		return errors.New("Every is 0 rounds: want at least 1")
	case c.StepMs < 1:
		return fmt.Errorf("StepMs is %d milliseconds: want at least 1", c.StepMs)
	}
	return nil
}

// maxOpen bounds the certificates whose points are kept to be compared with the own chain.
const maxOpen = 64

// maxStretch bounds how much longer than in the first view a phase lasts: with a step of seconds, votes
// may take minutes on their way.
const maxStretch = 64

// Effect is one thing to do, in the order in which Effects returns them.
type Effect interface{ effect() }

// Effects of a Voter.
type (
	// Save makes durable what the node must remember of its votes, before anything that follows is done.
	Save struct{ State State }
	// Publish spreads a vote to everyone.
	Publish struct{ Vote wire.SignedVote }
	// Certified is the certificate of the next height. It is kept for ever.
	Certified struct{ Certificate Certificate }
	// Doubled says that a voter signed two votes, once for each voter.
	Doubled struct{ Proof DoubleVote }
)

func (Save) effect()      {}
func (Publish) effect()   {}
func (Certified) effect() {}
func (Doubled) effect()   {}

// State is what a voter must not forget: what it signed last, what it locked, and what proves it.
type State struct {
	_ struct{} `cbor:",toarray"`

	Height uint32
	View   uint32            // in which it signed last
	Mine   []wire.SignedVote // what it signed there and in the view before
	Lock   Lock
	Valid  Lock
	Proof  []wire.SignedVote // prevotes for Valid
}

// Encode returns the state's bytes.
func (s State) Encode() []byte { return wire.Marshal(s) }

// ParseState decodes a state, which came from this node's own disk.
func ParseState(b []byte) (State, error) {
	var s State
	if err := wire.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("state of a voter: %w", err)
	}
	return s, nil
}

// Lock is a value, and 1 + the view in which more than two thirds prevoted for it; 0 for none.
type Lock struct {
	_ struct{} `cbor:",toarray"`

	At    uint32
	Round uint32
	Value wire.Digest
}

func (l Lock) choice() choice { return choice{l.Round, l.Value} }

// step is what a voter waits for.
type step uint8

const (
	idle      step = iota // for a value to vote on
	proposing             // for the proposal
	prevoting             // for prevotes of the others
	committing
)

// stepAfter is the step that a vote leads to.
func stepAfter(phase wire.Phase) step { return step(phase) }

// Voter is one node's part in certifying. It is not safe for concurrent use: one loop feeds it inputs and
// executes its effects. Nodes without a vote follow along and learn what is certified.
type Voter struct {
	cfg   Config
	chain Chain
	self  wire.PeerID
	now   Time
	out   []Effect

	last   *Certificate // newest
	open   [][]Point    // of certificates that it is not known whether the own chain goes through, and of the newest; oldest first
	height uint32
	state  State // of this height
	votes  votes

	view     uint32
	step     step
	began    Time // the step
	until    Time // of the step; 0 while nothing limits it
	repeatAt Time
}

// New is a voter that knows no certificate. cfg must pass Validate.
func New(cfg Config, chain Chain) *Voter {
	v := &Voter{cfg: cfg, chain: chain}
	if cfg.Key != nil {
		v.self = wire.PeerIDOf(cfg.Key)
	}
	v.begin(Table{}, map[wire.PeerID]bool{})
	return v
}

// Resume goes on where a process ended: last is the newest certificate, nil for none, and saved the last State
// that was saved, nil for none. It comes before all inputs.
func (v *Voter) Resume(last *Certificate, saved *State) {
	if last != nil {
		v.last, v.height = last, last.Height+1
		v.open = [][]Point{last.Value.Points}
		v.begin(last.Table(), v.votes.barred)
	}
	switch {
	case saved == nil || saved.Height < v.height:
		return
	case saved.Height > v.height: // certificates are lost, and with them what was signed below that height
		v.cfg.From = max(v.cfg.From, saved.Height+1)
		return
	}
	v.state, v.view = *saved, saved.View
	v.setTable(v.votes.table)
}

// VoteFrom changes Config.From.
func (v *Voter) VoteFrom(height uint32) { v.cfg.From = height }

// begin is the start of a height.
func (v *Voter) begin(table Table, barred map[wire.PeerID]bool) {
	v.votes = newVotes(table, barred)
	v.state = State{Height: v.height}
	v.view, v.step, v.until = 0, idle, 0
}

// setTable says who votes at the height under way. The node goes on where it was, and forgets the votes of
// others but for those that prove what it would propose. They are repeated.
func (v *Voter) setTable(table Table) {
	v.votes = newVotes(table, v.votes.barred)
	for _, s := range slices.Concat(v.state.Proof, v.state.Mine) {
		v.votes.add(s, true)
	}
	v.step, v.began, v.until = idle, v.now, 0
	for _, s := range v.state.Mine {
		if s.View == v.view {
			v.step = max(v.step, stepAfter(s.Phase))
		}
	}
	if v.step == proposing {
		v.until = v.now + v.stepMs()
	}
}

// Effects returns the effects queued since it was last called, in order.
func (v *Voter) Effects() []Effect {
	out := v.out
	v.out = nil
	return out
}

func (v *Voter) emit(e Effect) { v.out = append(v.out, e) }

// Last is the newest certificate, nil if there is none.
func (v *Voter) Last() *Certificate { return v.last }

// Height is that of the next certificate.
func (v *Voter) Height() uint32 { return v.height }

// View is the attempt at the height that is under way.
func (v *Voter) View() uint32 { return v.view }

// Voters are who votes at the height; none are known before the first value is.
func (v *Voter) Voters() Table { return v.votes.table }

// Voting reports whether the node takes part in a vote that is under way.
func (v *Voter) Voting() bool { return v.mayVote() && v.step != idle }

// Astray reports whether the node has a vote and nothing to begin one with: it cannot tell whether its own chain, which began
// with tips of later rounds, goes through the newest certificate. Votes of others that it missed would tell.
func (v *Voter) Astray() bool {
	return v.mayVote() && v.step == idle && v.last != nil && v.extends() == unknown
}

// Bears says whether the own chain goes through the newest certificate.
func (v *Voter) Bears() wire.Bears {
	if v.last == nil {
		return wire.BearsUnknown
	}
	return [...]wire.Bears{unknown: wire.BearsUnknown, yes: wire.BearsYes, no: wire.BearsNo}[v.extends()]
}

// Votes are the votes of the height that are kept, the newest views first, at most so many. Those that skip names are
// left out.
func (v *Voter) Votes(most int, skip func(s wire.SignedVote) bool) (list []wire.SignedVote) {
	for _, view := range slices.Backward(v.votes.kept()) {
		for _, phase := range []wire.Phase{wire.Propose, wire.Prevote, wire.Precommit} {
			for _, id := range v.votes.table.ids {
				for _, s := range v.votes.of(view, phase, id) {
					if len(list) == most {
						return list
					}
					if !skip(s) {
						list = append(list, s)
					}
				}
			}
		}
	}
	return list
}

// Silent are the voters of whom no vote has come at this height.
func (v *Voter) Silent() (silent []wire.PeerID) {
	for _, id := range v.votes.table.ids {
		if v.votes.top[id] == 0 {
			silent = append(silent, id)
		}
	}
	return silent
}

// Tick lets time pass. A few times per step is enough.
func (v *Voter) Tick(now Time) {
	v.now = max(v.now, now)
	v.settle()
	if !v.mayVote() {
		return
	}
	if v.until > 0 && v.now >= v.until {
		v.timeout()
		v.settle()
	} else if v.lags() {
		v.enter(v.view + 1)
		v.settle()
	}
	if v.now >= v.repeatAt {
		v.repeat()
	}
}

// Receive takes a vote whose signature was verified.
func (v *Voter) Receive(now Time, s wire.SignedVote) {
	v.now = max(v.now, now)
	v.electFirst()
	if v.take(s) {
		v.settle()
	}
}

// take keeps a vote of this height and reports whether it may change something.
func (v *Voter) take(s wire.SignedVote) bool {
	if _, votes := v.votes.table.Place(s.Author); !votes || s.Height != v.height {
		return false
	}
	if s.Phase == wire.Propose && s.Author != v.proposer(s.View) {
		return false
	}
	v.votes.saw(s)
	if s.View > v.view+viewsAhead || s.View+viewsBehind < v.view && !v.proves(s) {
		return true // the sender is in another view
	}
	_, another := v.votes.add(s, v.proves(s))
	if another != nil && !v.votes.barred[s.Author] {
		v.votes.barred[s.Author] = true
		v.emit(Doubled{DoubleVote{*another, s}})
	}
	return true
}

// proves reports whether a vote is part of what the proposal of this view rests on.
func (v *Voter) proves(s wire.SignedVote) bool {
	p := v.proposal()
	return p != nil && s.Phase == wire.Prevote && p.Proof == s.View+1 && choiceOf(p.Vote) == choiceOf(s.Vote)
}

// Begin takes the certificate of height 0, at a node that has none. The caller must know that the run's certificates follow
// from this one: it says who votes.
func (v *Voter) Begin(now Time, first Certificate) error {
	v.now = max(v.now, now)
	if v.last != nil {
		return nil
	}
	if err := first.Verify(v.cfg.Run, nil); err != nil {
		return err
	}
	v.certify(first)
	v.settle()
	return nil
}

// ErrNotBorneOut says that certificates came to a node that has none, and whose own chain bears none of them out.
var ErrNotBorneOut = errors.New("this node's own chain goes through none of these certificates")

// Learn takes certificates in ascending order of height. Those that are known are skipped. The first of all is
// taken only if the node's own chain goes through one of them.
func (v *Voter) Learn(now Time, list []Certificate) error {
	v.now = max(v.now, now)
	i := slices.IndexFunc(list, func(c Certificate) bool { return c.Height >= v.height })
	if i < 0 {
		return nil
	}
	list = list[i:]
	before := v.last
	for i, c := range list {
		if err := c.Verify(v.cfg.Run, before); err != nil {
			return err
		}
		before = &list[i]
	}
	if v.last == nil && !slices.ContainsFunc(list, v.borneOut) {
		return fmt.Errorf("certificates of heights %d to %d: %w", list[0].Height, list[len(list)-1].Height, ErrNotBorneOut)
	}
	for _, c := range list {
		v.certify(c)
	}
	v.settle()
	return nil
}

func (v *Voter) borneOut(c Certificate) bool {
	yes, known := BornOut(v.chain, v.cfg.Run, c)
	return yes && known
}

// BornOut reports whether a chain comes to the value of a certificate, voters included. Points alone would not do:
// anybody can sign true ones with voters of their own.
func BornOut(chain Chain, run wire.RunID, c Certificate) (yes, known bool) {
	if own, known := chain.At(c.Value.Round); known {
		return own.Digest(run) == c.Value.Digest(run), true
	}
	holds, known := chain.Holds(c.Value.Points)
	return false, known && !holds
}

// certify ends a height.
func (v *Voter) certify(c Certificate) {
	v.last, v.height = &c, c.Height+1
	v.open = append(v.open, c.Value.Points)
	if len(v.open) > maxOpen {
		v.open = slices.Delete(v.open, len(v.open)-2, len(v.open)-1) // the oldest tell first that a chain is another one
	}
	v.begin(c.Table(), v.votes.barred)
	v.emit(Certified{c})
}

// electFirst finds out who votes at height 0. A node that takes another chain may find others.
func (v *Voter) electFirst() {
	if v.last != nil {
		return
	}
	value, known := v.chain.At(v.cfg.Every)
	if known && !slices.Equal(value.Voters, v.votes.table.ids) {
		v.setTable(Table{value.Voters})
	}
}
