package sim

import (
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// This file has what one laptop does with keys that cost nothing. Nothing honest need be
// behind them: the liar itself may be an observer.

// buyMs is how long an attacker works for the standing of its keys before it uses it.
const buyMs = 10_000

// actSybils has Times fresh keys fold one delta each, of one token and without a value, or of the most
// tokens that count. Then it shows an invented run in the name of all of them.
func actSybils(l *liar) {
	if l.acted == 1 {
		l.buy()
	}
	if l.n.w.now >= Start+l.From+buyMs {
		actInvented(l)
	}
}

// buy has the keys fold their deltas. In a run of claims the key that gives the run has one folded as well.
func (l *liar) buy() {
	round := l.openRound(0)
	if l.Kind == SybilRun {
		for _, key := range l.crowd() {
			l.announce(l.forgeBy(key, 0, round))
		}
		return
	}
	claim, empty := l.heaviest(0, round), l.constant(0, 0)
	for _, key := range append(slices.Clone(l.crowd()), l.n.key) {
		l.announce(l.sign(key, claim, empty))
	}
}

// openRound is the round that an honest node closes next.
func (l *liar) openRound(p int) uint32 { return l.victim().machine.Rounds().Fragment(p).Closed() + 1 }

// pushBy is how far a delta of actMostClaims moves each value, before it is clipped.
const pushBy = 100

// actMostClaims has Times fresh keys sign for every round. Each claims the most tokens and
// steps that genesis allows and pushes all values one way.
func actMostClaims(l *liar) {
	for p := range l.n.w.plan {
		open := l.openRound(p)
		if open <= l.signed[p] {
			continue
		}
		l.signed[p] = open
		for _, key := range l.crowd() {
			h := l.heaviest(p, open)
			l.announce(l.sign(key, h, l.constant(p, pushBy)))
		}
	}
}

// constant is a payload of equal values.
func (l *liar) constant(p int, value float32) []byte {
	q := make([]float32, l.n.w.plan[p].Len)
	for i := range q {
		q[i] = value
	}
	payload, err := codec.Encode(l.n.w.s.Params.Codec, q)
	if err != nil {
		panic("sim: a liar's payload: " + err.Error())
	}
	return payload
}

// most is a header that claims the most that genesis allows.
func (l *liar) most(p int, round uint32) wire.Header {
	params := l.n.w.s.Params
	return wire.Header{
		Fragment: uint16(p), Round: round,
		Steps: params.MaxSteps, Tokens: uint64(params.MaxSteps) * params.MaxTokensPerStep,
	}
}

// heaviest is the header that weighs most of those that genesis allows: where steps count by
// the rounds since the base, an old base allows more of them and is stale.
func (l *liar) heaviest(p int, round uint32) (h wire.Header) {
	params, most := l.n.w.s.Params, 0.
	for base := range round {
		claim := l.most(p, round)
		claim.Base = base
		if params.MaxPace > 0 {
			claim.Steps = min(claim.Steps, uint32(params.MaxPace*params.H)*(round-base))
			claim.Tokens = uint64(claim.Steps) * params.MaxTokensPerStep
		}
		d := core.DeltaOf(wire.Digest{}, claim, nil)
		if w := outer.Weights(params, []outer.Delta{d})[0]; w >= most {
			h, most = claim, w
		}
	}
	return h
}

// actOneClaim has a fresh key sign one delta without a value for each fragment, which claims
// the most, once.
func actOneClaim(l *liar) {
	if l.acted > 1 {
		return
	}
	key := l.freshKey()
	for p := range l.n.w.plan {
		l.announce(l.sign(key, l.most(p, l.openRound(p)), l.constant(p, 0)))
	}
}

// actBurst has Times fresh keys sign at about one moment, each for a round of its own: as many
// rounds as gossip takes ahead, and the next ones as soon as honest nodes have closed these.
func actBurst(l *liar) {
	if l.acted == 1 {
		for p := range l.n.w.plan {
			l.burst(p, l.openRound(p), int(l.Times))
		}
	}
}

// burst signs for the rounds that may be next, from one on, if keys are left.
func (l *liar) burst(p int, from uint32, keys int) {
	for last := l.openRound(p) + l.n.w.s.Params.WindowAccept - 1; from <= last && keys > 0; keys-- {
		l.announce(l.forge(p, from))
		from++
	}
	if keys > 0 {
		l.n.later(diskMs, func() { l.burst(p, max(from, l.openRound(p)), keys) })
	}
}

// actFullRound has Times fresh keys sign for the open round of a fragment, and shows their
// deltas to one half first. The other half sees those of as many other keys first.
func actFullRound(l *liar) {
	if l.acted > 1 {
		return
	}
	open := l.openRound(0)
	for _, half := range []func(*Node) bool{evenHalf, oddHalf} {
		for range int(l.Times) {
			sh := l.forge(0, open)
			l.publish(wire.EncodeHeader(sh, l.payloads[sh.Header.ID(l.n.w.run)]), half)
		}
	}
}

// actLastRound has a fresh key sign for the last closed round of each fragment, for ever.
func actLastRound(l *liar) {
	for p := range l.n.w.plan {
		if closed := l.openRound(p) - 1; closed > 0 {
			l.announce(l.forge(p, closed))
		}
	}
}

// fillMs is the time that a wanted payload stays in a node's table, as in gossip.
const fillMs = 180_000

// actBareHeaders shows Times headers a second without payloads, of fresh keys. It
// begins with those of the time after which as many leave the tables as come in.
func actBareHeaders(l *liar) {
	second := 1000 / float64(l.everyMs())
	count := int(float64(l.acted)*l.Times/second) - int(float64(l.acted-1)*l.Times/second)
	if l.acted == 1 {
		count = int(l.Times * fillMs / 1000)
	}
	for range count {
		p := l.shown % len(l.n.w.plan)
		// Gossip takes the rounds of the window, and two ahead.
		ahead := l.openRound(p) + 1
		back := uint32(l.shown/len(l.n.w.plan)) % min(l.n.w.s.Params.WindowAccept+2, ahead)
		l.shown++
		l.announceOnly(l.freshKey(), p, ahead-back)
	}
}

// actIdleCrowd sends once a second for each of Times fresh keys what the liar's core says, but
// that they learn.
func actIdleCrowd(l *liar) {
	if l.last == nil {
		return
	}
	every := max(int(1000/l.everyMs()), 1)
	for i, key := range l.crowd() {
		if i%every != l.acted%every {
			continue
		}
		b := *l.last
		b.State, b.Seq, b.Capability = wire.Training, uint64(l.acted), 0
		l.publish(wire.EncodeHeartbeat(key, l.n.w.run, b), everybody)
	}
}

// keepLast remembers what the core said of itself.
func keepLast(l *liar, m wire.Message) bool {
	if m.Heartbeat != nil {
		l.last = m.Heartbeat
	}
	return false
}

// answerNoRepair lets those wait that compare rounds.
func answerNoRepair(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
	if q.Kind == wire.GetRounds || q.Kind == wire.GetHeaders {
		return nil
	}
	return honest
}

// actSessions begins a session with every node that has none with the liar.
func actSessions(l *liar) {
	for _, n := range l.n.w.nodes {
		if n.up && n.liar == nil && !n.linked(l.n) {
			l.n.w.dial(l.n, n.index)
		}
	}
}

// answerPeerListOnly lets all wait but those that ask who is there.
func answerPeerListOnly(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
	if q.Kind == wire.GetPeerList {
		return honest
	}
	return nil
}
