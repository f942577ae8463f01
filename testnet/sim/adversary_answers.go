package sim

import (
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
)

func answerNoPayload(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
	if q.Kind == wire.GetPayload {
		return nil
	}
	return honest
}

func answerNoPayloadToHalf(l *liar, to *Node, q wire.Request, honest []byte) []byte {
	if evenHalf(to) {
		return honest
	}
	return answerNoPayload(l, to, q, honest)
}

// answerWrong changes a byte of each answer of some kinds.
func answerWrong(kinds ...wire.RequestKind) func(*liar, *Node, wire.Request, []byte) []byte {
	return func(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
		if !slices.Contains(kinds, q.Kind) || len(honest) < 2 {
			return honest
		}
		wrong := append([]byte(nil), honest...)
		wrong[len(wrong)/2] ^= 1
		return wrong
	}
}

// chunkAnswer gives a chunk, or none.
func chunkAnswer(chunk []byte) []byte { return wire.Found(core.PackChunk(chunk)) }

// answerShort cuts chunks in half.
func answerShort(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
	if q.Kind == wire.GetChunk {
		return honest[:1+len(honest)/2]
	}
	return honest
}

// edgeDelta is a delta of the liar that its sets have and gossip has not brought.
type edgeDelta struct {
	id wire.Digest
	sh wire.SignedHeader
}

// edgeRounds are the oldest rounds that are not final: a delta has to travel before
// the next one closes.
const edgeRounds = 4

// actEdge signs, by a fresh key, a delta for each round that is about to become final at the node that is furthest on. It
// does so until the run ends, or with Times for ever. It forgets rounds that are final for all.
func actEdge(l *liar) {
	union := l.n.w.s.Params.WindowUnion
	if l.Times == 0 && l.victim().machine.Rounds().Status().Ended {
		return
	}
	for p := range l.n.w.plan {
		closed := l.victim().machine.Rounds().Fragment(p).Closed()
		if closed >= union {
			sh := l.forge(p, closed-union+1+uint32(l.acted)%edgeRounds)
			l.edge = append(l.edge, edgeDelta{sh.Header.ID(l.n.w.run), sh})
		}
	}
	l.forgetEdge(int(union) * len(l.n.w.plan))
}

// forgetEdge keeps so many of these deltas, the newest.
func (l *liar) forgetEdge(keep int) {
	l.edge = l.edge[max(0, len(l.edge)-keep):]
}

// lateDeltas are as many for one round as actLateSets shows at a time.
const lateDeltas = 16

// actLateSets signs for the last closed round of each fragment, for ever, and publishes nothing.
func actLateSets(l *liar) {
	for p := range l.n.w.plan {
		if closed := l.openRound(p) - 1; closed > 0 {
			sh := l.forge(p, closed)
			l.edge = append(l.edge, edgeDelta{sh.Header.ID(l.n.w.run), sh})
		}
	}
	l.forgetEdge(lateDeltas * len(l.n.w.plan))
}

// sayRestless shows a chain of its own in each heartbeat, so that others compare rounds.
func sayRestless(l *liar, m wire.Message) bool {
	if m.Heartbeat == nil {
		return false
	}
	b := *m.Heartbeat
	b.Chain = wire.Digest{byte(b.Seq), 3}
	l.publish(wire.EncodeHeartbeat(l.n.key, l.n.w.run, b), everybody)
	return true
}

// answerEdge gives the odd half sets in which the withheld deltas are.
func answerEdge(l *liar, to *Node, q wire.Request, honest []byte) []byte {
	if evenHalf(to) {
		return honest
	}
	return answerWithEdge(l, to, q, honest)
}

// answerWithEdge gives everybody such sets.
func answerWithEdge(l *liar, to *Node, q wire.Request, honest []byte) []byte {
	switch q.Kind {
	case wire.GetRounds:
		return editRounds(q, honest, func(i int, a *wire.RangeAnswer) {
			for k := range a.Sets {
				if len(l.edgeOf(q.Ranges[i].Fragment, q.Ranges[i].From+uint32(k))) > 0 {
					a.Sets[k] = wire.Digest{byte(l.acted), 4}
				}
			}
		})
	case wire.GetHeaders:
		return l.addHeaders(q, honest)
	}
	return answerForged(l, to, q, honest)
}

func (l *liar) edgeOf(fragment uint16, round uint32) (out []wire.SignedHeader) {
	for _, e := range l.edge {
		if e.sh.Header.Fragment == fragment && e.sh.Header.Round == round {
			out = append(out, e.sh)
		}
	}
	return out
}

func (l *liar) addHeaders(q wire.Request, honest []byte) []byte {
	r, err := wire.DecodeResponse(honest, wire.GetHeaders.MaxResponse())
	if err != nil || r.Status != wire.OK {
		return honest
	}
	headers, err := wire.DecodeHeaders(r.Body)
	if err != nil {
		return honest
	}
	for _, k := range q.Rounds {
		headers = append(headers, l.edgeOf(k.Fragment, k.Round)...)
	}
	return wire.Found(wire.EncodeHeaders(headers))
}
