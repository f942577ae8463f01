package sim

import (
	"crypto/ed25519"

	"atoll/gossip/wire"
)

// sayFalseHeartbeat claims rounds that are not there, more tokens than the budget,
// folded and unpublished, and digests of nothing.
func sayFalseHeartbeat(l *liar, m wire.Message) bool {
	if m.Heartbeat == nil {
		return false
	}
	l.heartbeat(l.n.key, *m.Heartbeat)
	return true
}

func (l *liar) heartbeat(key ed25519.PrivateKey, b wire.Heartbeat) {
	budget := l.n.w.s.Params.Budget
	b.State, b.Folded, b.TokensPerSecond = wire.Training, 1000*budget, 1e9
	b.Chain, b.StateDigest = wire.Digest{byte(l.acted), 1}, wire.Digest{byte(l.acted), 2}
	b.Closed, b.Unpublished = make([]uint32, len(l.n.w.plan)), make([]uint64, len(l.n.w.plan))
	for p := range b.Closed {
		b.Closed[p] = l.victim().machine.Rounds().Fragment(p).Closed() + 1000
		b.Unpublished[p] = 1000 * budget
	}
	l.publish(wire.EncodeHeartbeat(key, l.n.w.run, b), everybody)
}

// actFreshHeartbeats sends heartbeats of Times keys that are nobody's.
func actFreshHeartbeats(l *liar) {
	for _, key := range l.crowd() {
		l.heartbeat(key, wire.Heartbeat{Incarnation: l.n.clock(), Seq: uint64(l.acted), PeriodMs: uint32(l.everyMs())})
	}
}

// crowd are Times fresh keys, the same each time.
func (l *liar) crowd() []ed25519.PrivateKey {
	for len(l.keys) < int(l.Times) {
		l.freshKey()
	}
	return l.keys[:int(l.Times)]
}

// sayFalseState shows the right chain with a state that it does not come to.
func sayFalseState(l *liar, m wire.Message) bool {
	if m.Heartbeat == nil {
		return false
	}
	b := *m.Heartbeat
	b.StateDigest = wire.Digest{1}
	l.publish(wire.EncodeHeartbeat(l.n.key, l.n.w.run, b), everybody)
	return true
}

// answerFalseState says the true state of the oldest rounds only, so that an
// audit finds common ground and folds much again.
func answerFalseState(l *liar, _ *Node, q wire.Request, honest []byte) []byte {
	return editRounds(q, honest, func(i int, a *wire.RangeAnswer) {
		if q.Ranges[i].From > l.n.w.s.Params.WindowAccept {
			a.State = wire.Digest{1}
		}
	})
}

// editRounds changes an honest answer to GetRounds.
func editRounds(q wire.Request, honest []byte, edit func(i int, a *wire.RangeAnswer)) []byte {
	if q.Kind != wire.GetRounds {
		return honest
	}
	r, err := wire.DecodeResponse(honest, wire.GetRounds.MaxResponse())
	if err != nil || r.Status != wire.OK {
		return honest
	}
	answers, err := wire.DecodeRounds(r.Body, q.Ranges)
	if err != nil {
		return honest
	}
	for i := range answers {
		edit(i, &answers[i])
	}
	return wire.Found(wire.EncodeRounds(answers))
}
