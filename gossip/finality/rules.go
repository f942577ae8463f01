package finality

import (
	"slices"

	"atoll/gossip/wire"
)

// settle applies the rules until none has anything to do.
func (v *Voter) settle() {
	v.electFirst()
	for v.decide() || v.mayVote() && v.move() {
	}
}

// mayVote reports whether the node has a vote at this height.
func (v *Voter) mayVote() bool {
	_, votes := v.votes.table.Place(v.self)
	return v.cfg.Key != nil && votes && v.height >= v.cfg.From
}

// decide certifies what more than two thirds precommitted in one view, if this node knows the value. If it does
// not, others have the certificate.
func (v *Voter) decide() bool {
	for _, view := range v.votes.kept() {
		c, by, any := v.votes.decided(view, wire.Precommit)
		if !any || c == (choice{}) || !v.mayCertify(c.round) {
			continue
		}
		if value, known := v.valueOf(c); known {
			v.certify(certificateOf(v.height, view, value, v.votes.table, by))
			return true
		}
	}
	return false
}

// move is one step in a view, or to another view.
func (v *Voter) move() bool {
	if view, any := v.votes.reached(); any && (v.step == idle || view > v.view) {
		v.enter(max(view, v.view))
		return true
	}
	switch v.step {
	case idle:
		if _, has := v.candidate(); has || v.begun() {
			v.enter(v.view)
			return true
		}
	case proposing:
		return v.tryPrevote()
	case prevoting:
		return v.tryPrecommit()
	case committing:
		v.remember()
		v.limit(wire.Precommit)
	}
	return false
}

// begun reports whether a third of the voters, of whom one is honest, vote. Who has nothing to propose takes part all the
// same: they may wait for its vote, if only for none.
func (v *Voter) begun() bool {
	n := v.votes.from(v.view)
	return n > 0 && 3*n >= v.votes.table.Len()
}

// enter begins a view.
func (v *Voter) enter(view uint32) {
	v.view, v.step, v.began = view, proposing, v.now
	v.until = v.now + v.stepMs()
	v.votes.forget(view, func(old uint32) bool { return old+1 == v.state.Lock.At || old+1 == v.state.Valid.At })
	if v.proposer(view) == v.self {
		v.propose()
	}
}

// stepMs is how long a phase of this view lasts.
func (v *Voter) stepMs() int64 { return v.cfg.StepMs * min(int64(v.view)+1, maxStretch) }

func (v *Voter) proposer(view uint32) wire.PeerID {
	return v.votes.table.Proposer(v.cfg.Run, v.height, view)
}

// proposal is that of this view, nil while there is none.
func (v *Voter) proposal() *wire.SignedVote {
	if of := v.votes.of(v.view, wire.Propose, v.proposer(v.view)); len(of) > 0 {
		return &of[0]
	}
	return nil
}

// candidate is what the node would propose of itself.
func (v *Voter) candidate() (c choice, has bool) {
	round := v.cfg.Every
	if v.last != nil {
		round = v.chain.Newest()
	}
	value, known := v.chain.At(round)
	if !known || !v.mayCertify(round) || v.extends() != yes {
		return choice{}, false
	}
	return choice{round, value.Digest(v.cfg.Run)}, true
}

// extends tells whether the own chain goes on from what is certified. It does not if it goes elsewhere at an older
// certificate, whether it got to the newest one or not. Where the own chain began with tips of later rounds it cannot tell,
// and others vouch for it.
func (v *Voter) extends() verdict {
	own := v.extendsByItself()
	if own == unknown && v.vouched() {
		return yes
	}
	return own
}

func (v *Voter) extendsByItself() verdict {
	if v.last == nil {
		return yes
	}
	for i, points := range slices.Backward(v.open) {
		switch same, known := v.chain.Holds(points); {
		case known && !same:
			return no
		case known && i == len(v.open)-1:
			v.open = v.open[i:]
			return yes
		case known:
			v.open = v.open[i:]
			return unknown
		}
	}
	return unknown
}

// vouched reports whether a third of the voters, of whom one is honest, voted at this height for a value that the own chain
// has. Who is honest votes for nothing that does not go on from the newest certificate. So the own chain does, too.
func (v *Voter) vouched() bool {
	for c, by := range v.votes.supporters() {
		if c == (choice{}) || 3*len(by) < v.votes.table.Len() || !v.mayCertify(c.round) {
			continue
		}
		if _, same := v.valueOf(c); same {
			return true
		}
	}
	return false
}

// mayCertify reports whether a value of a round can be of this height. All that vote at height 0 know each other
// from one round.
func (v *Voter) mayCertify(round uint32) bool {
	if v.last == nil {
		return round == v.cfg.Every
	}
	return round > v.last.Value.Round && round%v.cfg.Every == 0
}

// propose proposes what more than two thirds prevoted for in an older view, or what is newest.
func (v *Voter) propose() {
	c, has := v.state.Valid.choice(), true
	if v.state.Valid.At == 0 {
		c, has = v.candidate()
	}
	if has {
		v.sign(wire.Propose, c, v.state.Valid.At)
		v.showProof()
	}
}

// verdict is what a node thinks of a value.
type verdict uint8

const (
	unknown verdict = iota // its own chain is not that far
	yes
	no
)

// valueOf is the value of a choice, if the own chain has it.
func (v *Voter) valueOf(c choice) (value Value, known bool) {
	value, known = v.chain.At(c.round)
	return value, known && value.Digest(v.cfg.Run) == c.value
}

// judge is what the own chain says of a value. Where it began too late to know the value it believes more than two thirds
// that prevoted for it: else a value that one voter has locked, and another one knows no more, would end no height ever.
func (v *Voter) judge(c choice) verdict {
	if !v.mayCertify(c.round) {
		return no
	}
	if l := v.state.Lock; l.At > 0 && l.choice() == c {
		return yes // it was judged when it was locked
	}
	_, known := v.chain.At(c.round)
	_, same := v.valueOf(c)
	switch {
	case known && !same:
		return no
	case known:
		return v.extends()
	case v.missed(c.round) && v.votes.proven(c) && v.extends() != no:
		return yes
	}
	return unknown
}

// missed reports whether the own chain will never have the value of a round: it began with tips of a later one.
func (v *Voter) missed(round uint32) bool { return v.chain.Newest() > round }

// tryPrevote votes on the proposal, once it and what it rests on are there.
func (v *Voter) tryPrevote() bool {
	p := v.proposal()
	if p == nil {
		return false
	}
	c := choiceOf(p.Vote)
	if p.Proof > 0 && !v.votes.table.Enough(len(v.votes.all(p.Proof-1, wire.Prevote, c))) {
		return false
	}
	if v.lockForbids(c, p.Proof) {
		v.prevote(choice{})
		return true
	}
	switch v.judge(c) {
	case yes:
		v.prevote(c)
	case no:
		v.prevote(choice{})
	case unknown:
		return false
	}
	return true
}

// lockForbids reports whether the node has locked another value, later than the prevotes that a proposal rests
// on.
func (v *Voter) lockForbids(c choice, proof uint32) bool {
	l := v.state.Lock
	return l.At > proof && l.choice() != c
}

func (v *Voter) prevote(c choice) {
	v.step, v.began, v.until = prevoting, v.now, 0
	v.sign(wire.Prevote, c, 0)
}

// tryPrecommit votes once more than two thirds prevoted for one thing.
func (v *Voter) tryPrecommit() bool {
	c, _, any := v.votes.decided(v.view, wire.Prevote)
	if any && c == (choice{}) {
		v.precommit(choice{})
		return true
	}
	if any && v.remember() {
		v.state.Lock = v.state.Valid
		v.precommit(c)
		return true
	}
	v.limit(wire.Prevote)
	return false
}

// remember keeps what more than two thirds prevoted for in this view, to propose it later, and reports whether
// there is such a value that the node agrees to.
func (v *Voter) remember() bool {
	c, by, any := v.votes.decided(v.view, wire.Prevote)
	if !any || c == (choice{}) || v.judge(c) != yes {
		return false
	}
	v.state.Valid, v.state.Proof = Lock{At: v.view + 1, Round: c.round, Value: c.value}, by
	return true
}

func (v *Voter) precommit(c choice) {
	v.step, v.began, v.until = committing, v.now, 0
	v.sign(wire.Precommit, c, 0)
}

// limit ends the wait for votes that agree some time after more than two thirds have voted.
func (v *Voter) limit(phase wire.Phase) {
	if v.until == 0 && v.votes.enough(v.view, phase) {
		v.until = v.now + v.stepMs()
	}
}

// patience is how many steps a voter waits for votes in its view while one voter is seen in a later one.
const patience = 4

// lags reports whether the voter waits for votes that may never come: others have gone on, and what led them there has
// not come here, or came from a voter that is barred. Too few are ahead to follow at once: all of them may lie.
// So it goes on slowly, and faster if more are ahead. To leave a view is safe at any time.
func (v *Voter) lags() bool {
	if v.until > 0 || v.step == idle {
		return false
	}
	ahead := v.votes.ahead(v.view)
	return ahead > 0 && v.now >= v.began+patience*v.stepMs()/int64(ahead)
}

// timeout goes on without what did not come.
func (v *Voter) timeout() {
	switch v.step {
	case proposing:
		v.prevote(choice{})
	case prevoting:
		v.precommit(choice{})
	case committing:
		v.enter(v.view + 1)
	}
}

// sign makes a vote, saves that it was made, and publishes it.
func (v *Voter) sign(phase wire.Phase, c choice, proof uint32) {
	s := wire.SignVote(v.cfg.Key, v.cfg.Run, wire.Vote{
		Phase: phase, Height: v.height, View: v.view, Round: c.round, Value: c.value, Proof: proof,
	})
	v.state.View = v.view
	v.state.Mine = slices.DeleteFunc(append(slices.Clone(v.state.Mine), s), func(old wire.SignedVote) bool { return old.View+1 < v.view })
	v.emit(Save{v.state})
	v.take(s)
	v.emit(Publish{s})
	v.repeatAt = v.now + v.cfg.StepMs
}

// showProof publishes the prevotes that the own proposal rests on: others may lack some.
func (v *Voter) showProof() {
	p := v.proposal()
	if p == nil || p.Author != v.self || p.Proof == 0 {
		return
	}
	for _, s := range v.state.Proof {
		if s.View+1 == p.Proof {
			v.emit(Publish{s})
		}
	}
}

// repeat publishes again what others may have missed: its last votes, of two views.
func (v *Voter) repeat() {
	v.repeatAt = v.now + v.cfg.StepMs
	if v.step == idle {
		return
	}
	for _, s := range v.state.Mine {
		v.emit(Publish{s})
	}
	v.showProof()
}
