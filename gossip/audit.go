package gossip

import (
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// audit runs where a peer shows the chain of this node and another state. It finds out up
// to which round the two states agree. From there the outer side folds again and sees whose
// state is wrong. Both sides do it, and the one that was wrong repairs its memory.
type audit struct {
	*env
	busy  bool
	after Time // none before

	// strangersAfter and strangersPauseMs are the time of the next audit and the last pause of
	// all peers together that have not contributed: keys are free.
	strangersAfter   Time
	strangersPauseMs int64
}

// auditPeer is when the next audit with a peer may begin.
type auditPeer struct {
	after   Time
	pauseMs int64 // before that
}

func auditOf(p *peers.Peer) *auditPeer { return peers.Note[auditPeer](p) }

// doubt is a fragment whose states differ at a round.
type doubt struct {
	fragment int
	round    uint32
}

// want begins an audit with p, unless one is under way or was recently: an answer
// may make this node fold hundreds of rounds again.
func (a *audit) want(p *peers.Peer) {
	if a.busy || a.Now < a.after || !a.mayAsk(p) || !a.Usable(p) {
		return
	}
	a.busy, a.after = true, a.Now+auditPauseMs
	auditOf(p).pauseMs = longerPause(auditOf(p).pauseMs)
	auditOf(p).after = a.Now + auditOf(p).pauseMs
	if !a.Contributed(p) {
		a.strangersPauseMs = longerPause(a.strangersPauseMs)
		a.strangersAfter = a.Now + a.strangersPauseMs
	}
	a.locate(p, peers.Lagged(p.Heartbeat.Closed, p.Heartbeat.Lag))
}

// mayAsk reports whether the pauses allow an audit with p.
func (a *audit) mayAsk(p *peers.Peer) bool {
	return a.Now >= auditOf(p).after && (a.Contributed(p) || a.Now >= a.strangersAfter)
}

// longerPause is the pause after the next audit.
func longerPause(ms int64) int64 { return min(max(2*ms, auditPauseMs), auditPauseMaxMs) }

// ask asks for the digests after each round given. then gets an answer each.
func (a *audit) ask(p *peers.Peer, at []doubt, then func([]wire.RangeAnswer)) {
	ranges := make([]wire.Range, len(at))
	for i, d := range at {
		ranges[i] = wire.Range{Fragment: uint16(d.fragment), From: d.round + 1, To: d.round + 1}
	}
	q := wire.Request{Kind: wire.GetRounds, Ranges: ranges}
	a.Call(p.ID, q, q.Kind.MaxResponse(), effect.CallMs, func(body []byte, err error) {
		if err != nil {
			a.end(p, fmt.Sprintf("comparison of states ended: %v", err))
			return
		}
		answers, err := wire.DecodeRounds(body, ranges)
		if err != nil {
			a.Misbehaved(p.ID, err.Error())
			a.end(p, "comparison of states ended: "+err.Error())
			return
		}
		then(answers)
	})
}

// locate finds the fragments whose states differ at the rounds of the heartbeat.
func (a *audit) locate(p *peers.Peer, rounds []uint32) {
	var all []doubt
	for f, r := range rounds {
		all = append(all, doubt{f, r})
	}
	a.ask(p, all, func(answers []wire.RangeAnswer) {
		var differ []doubt
		for i, d := range all {
			if chain, state := a.same(d, answers[i]); chain && !state {
				differ = append(differ, d)
			}
		}
		if len(differ) == 0 {
			a.end(p, "the states agree again")
			return
		}
		a.trace(p, differ)
	})
}

// same compares an answer with this node's digests. A state that either side
// does not know is no difference.
func (a *audit) same(d doubt, answer wire.RangeAnswer) (chain, state bool) {
	c, known := a.chain.ChainDigest(d.fragment, d.round)
	chain = known && c == answer.Chain
	s, known := a.chain.StateDigest(d.fragment, d.round)
	return chain, !known || answer.State.IsZero() || s == answer.State
}

// trace finds the newest kept base of each fragment at which the states agree.
func (a *audit) trace(p *peers.Peer, differ []doubt) {
	var at []doubt
	for _, d := range differ {
		for _, base := range a.chain.Bases(d.fragment) {
			if base < d.round && len(at) < wire.MaxRanges {
				at = append(at, doubt{d.fragment, base})
			}
		}
	}
	if len(at) == 0 {
		a.end(p, "no older state is kept to judge from")
		return
	}
	a.ask(p, at, func(answers []wire.RangeAnswer) {
		shared := map[int]uint32{}
		for i, d := range at {
			_, known := a.chain.StateDigest(d.fragment, d.round)
			chain, state := a.same(d, answers[i])
			if chain && state && known && !answers[i].State.IsZero() {
				shared[d.fragment] = d.round // bases ascend
			}
		}
		a.judge(p, differ, shared)
	})
}

// judge has the fragments folded again for which there is common ground.
func (a *audit) judge(p *peers.Peer, differ []doubt, shared map[int]uint32) {
	differ = slices.DeleteFunc(differ, func(d doubt) bool {
		_, ok := shared[d.fragment]
		return !ok
	})
	for _, d := range differ {
		a.Emit(Audit{Peer: p.ID, Fragment: d.fragment, Shared: shared[d.fragment]})
	}
	if len(differ) == 0 {
		a.end(p, "no state that both sides had is kept to judge from")
		return
	}
	a.end(p, fmt.Sprintf("folds %d fragments again, from the last states that both sides had", len(differ)))
}

func (a *audit) end(p *peers.Peer, text string) {
	a.busy = false
	a.Event(EventAudit, p.ID, text)
}
