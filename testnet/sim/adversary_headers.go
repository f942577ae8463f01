package sim

import (
	"crypto/ed25519"
	"math"

	"atoll/gossip/wire"
	"atoll/tensor/codec"
)

// sayTwo answers each own header with a second one for the same round, and shows
// each to one half.
func sayTwo(l *liar, m wire.Message) bool {
	if m.Header == nil {
		return false
	}
	second := l.second(m)
	l.publish(wire.EncodeHeader(*m.Header, m.Inline), evenHalf)
	l.publish(wire.EncodeHeader(second, l.payloads[second.Header.ID(l.n.w.run)]), oddHalf)
	return true
}

// second signs another delta for the round of an own one.
func (l *liar) second(m wire.Message) wire.SignedHeader {
	h := m.Header.Header
	payload := m.Inline
	if payload == nil {
		payload, _ = l.n.disk.Payload(h.ID(l.n.w.run))
	}
	h.Tokens++
	return l.sign(l.n.key, h, payload)
}

// answerForged has the payloads of deltas that the core does not know.
func answerForged(l *liar, _ *Node, q wire.Request, honest []byte) []byte {
	if payload := l.payloads[q.Digest]; q.Kind == wire.GetPayload && payload != nil {
		return wire.Found(payload)
	}
	return honest
}

// saveProof signs a second delta for each own one and keeps the proof of it.
func saveProof(l *liar, m wire.Message) bool {
	if m.Header != nil {
		l.proofs = append(l.proofs, wire.Equivocation{A: *m.Header, B: l.second(m)})
	}
	return false
}

// saveOneProof does so for one delta at a time.
func saveOneProof(l *liar, m wire.Message) bool {
	return len(l.proofs) == 0 && saveProof(l, m)
}

// actProofs publishes the proofs for rounds that are Times rounds old.
func actProofs(l *liar) {
	for len(l.proofs) > 0 {
		h := l.proofs[0].A.Header
		if h.Round+uint32(l.Times) > l.victim().machine.Rounds().Fragment(int(h.Fragment)).Closed() {
			return
		}
		l.publish(wire.EncodeEquivocation(l.proofs[0]), evenHalf)
		l.proofs = l.proofs[1:]
	}
}

func sayToHalf(l *liar, m wire.Message) bool {
	if m.Header == nil {
		return false
	}
	l.publish(wire.EncodeHeader(*m.Header, m.Inline), evenHalf)
	return true
}

// forge signs a delta of a fresh key that moves nothing.
func (l *liar) forge(p int, round uint32) wire.SignedHeader {
	return l.forgeBy(l.freshKey(), p, round)
}

func (l *liar) forgeBy(key ed25519.PrivateKey, p int, round uint32) wire.SignedHeader {
	return l.forgeOf(key, p, round, 1)
}

// forgeSecond is another delta than forgeBy's for the same round.
func (l *liar) forgeSecond(key ed25519.PrivateKey, p int, round uint32) wire.SignedHeader {
	return l.forgeOf(key, p, round, 2)
}

func (l *liar) forgeOf(key ed25519.PrivateKey, p int, round uint32, tokens uint64) wire.SignedHeader {
	payload, err := codec.Encode(l.n.w.s.Params.Codec, make([]float32, l.n.w.plan[p].Len))
	if err != nil {
		panic("sim: a liar's payload: " + err.Error())
	}
	return l.sign(key, wire.Header{
		Author: wire.PeerIDOf(key), Fragment: uint16(p), Round: round, Steps: 1, Tokens: tokens,
	}, payload)
}

// announce publishes a forged header with its payload.
func (l *liar) announce(sh wire.SignedHeader) {
	l.publish(wire.EncodeHeader(sh, l.payloads[sh.Header.ID(l.n.w.run)]), everybody)
}

// actStale signs for a closed round of each fragment: those that gossip still
// brings, those that only repair would, and those that are final.
func actStale(l *liar) {
	for p := range l.n.w.plan {
		closed := l.victim().machine.Rounds().Fragment(p).Closed()
		if back := uint32(l.acted) % (l.n.w.s.Params.WindowUnion + 4); back < closed {
			l.announce(l.forge(p, closed-back))
		}
	}
}

// actFar signs for rounds within the window ahead, beyond it, and for the last
// that there is.
func actFar(l *liar) {
	params := l.n.w.s.Params
	for p := range l.n.w.plan {
		closed := l.victim().machine.Rounds().Fragment(p).Closed()
		for _, round := range []uint32{closed + 3, closed + params.WindowAccept, closed + params.WindowUnion + 1, math.MaxUint32} {
			l.announce(l.forge(p, round))
		}
	}
}

// actPayloadMissing signs for the next rounds of each fragment with Times fresh keys and
// its own. It claims as much as it may, and has no payload. It ends with the run.
func actPayloadMissing(l *liar) {
	params := l.n.w.s.Params
	if l.victim().machine.Rounds().Status().Ended {
		return
	}
	for p := range l.n.w.plan {
		closed := l.victim().machine.Rounds().Fragment(p).Closed()
		for range int(l.Times) {
			l.announceOnly(l.freshKey(), p, closed+1)
		}
		// Beyond what its core signs, so that these are no equivocation.
		l.announceOnly(l.n.key, p, closed+params.WindowAccept)
	}
}

func (l *liar) announceOnly(key ed25519.PrivateKey, p int, round uint32) {
	l.publish(l.bareHeader(key, p, round), everybody)
}

// bareHeader is the message of a header without a payload.
func (l *liar) bareHeader(key ed25519.PrivateKey, p int, round uint32) []byte {
	params := l.n.w.s.Params
	h := wire.Header{
		Fragment: uint16(p), Round: round, Steps: params.MaxSteps, Tokens: uint64(params.MaxSteps) * params.MaxTokensPerStep,
		Codec: uint8(params.Codec), Size: uint32(codec.MaxSize(params.Codec, l.n.w.plan[p].Len)), Payload: wire.Digest{1},
	}
	return wire.EncodeHeader(wire.SignHeader(key, l.n.w.run, h), nil)
}

// actUndead signs for the open rounds once the run's owner has revoked it.
func actUndead(l *liar) {
	if l.n.members == nil || l.n.members.Revoked(l.n.certificate) == nil {
		return
	}
	for p := range l.n.w.plan {
		round := l.victim().machine.Rounds().Fragment(p).Closed() + 1
		if round > l.signed[p] {
			l.signed[p] = round
			l.announce(l.forgeBy(l.n.key, p, round))
		}
	}
}
