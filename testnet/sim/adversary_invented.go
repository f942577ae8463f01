package sim

import (
	"crypto/ed25519"
	"maps"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// invention is a chain that a liar folded by itself, from genesis, of deltas that
// it signed for nobody: sound to the last bit, and worth nothing.
type invention struct {
	tips      []*outer.Tip
	links     [][]outer.Link
	blobs     map[wire.Digest][]byte
	manifest  wire.Manifest
	heartbeat wire.Heartbeat
}

// invent folds so many rounds of each fragment, far from where training leads.
func (l *liar) invent(rounds uint32) *invention {
	w := l.n.w
	v := &invention{blobs: map[wire.Digest][]byte{}}
	for p, tip := range w.genesis {
		links := []outer.Link{{}}
		for tip.Round < rounds {
			next, folded := l.inventRound(p, tip, rounds)
			links = append(links, core.LinkOf(next, folded))
			tip = next
		}
		links[0].State = w.genesis[p].State
		links = links[max(0, len(links)-int(w.s.Params.WindowUnion)):]
		v.tips, v.links = append(v.tips, tip), append(v.links, links)
		v.manifest.Fragments = append(v.manifest.Fragments, v.cut(tip, links))
	}
	v.show(l)
	return v
}

// inventRound folds one delta that moves every value by a hundred, of as many
// tokens as leave the run without an end.
func (l *liar) inventRound(p int, tip *outer.Tip, rounds uint32) (*outer.Tip, []outer.ID) {
	w := l.n.w
	q := make([]float32, w.plan[p].Len)
	for i := range q {
		q[i] = 100
	}
	payload, err := codec.Encode(w.s.Params.Codec, q)
	if err != nil {
		panic("sim: a liar's payload: " + err.Error())
	}
	steps := w.s.Params.MaxSteps
	tokens := min(uint64(steps)*w.s.Params.MaxTokensPerStep, w.s.Params.Budget/uint64(rounds)-1)
	sh := l.sign(l.n.key, wire.Header{Fragment: uint16(p), Round: tip.Round + 1, Base: tip.Round, Steps: steps, Tokens: tokens}, payload)
	d := core.DeltaOf(sh.Header.ID(w.run), sh.Header, nil)
	next, r, err := outer.Fold(w.s.Params, w.plan[p], tip, tip.Round+1, []outer.Contribution{{Delta: d, Payload: payload}})
	if err != nil {
		panic("sim: a liar's fold: " + err.Error())
	}
	return next, r.Folded
}

func (v *invention) cut(tip *outer.Tip, links []outer.Link) wire.FragmentManifest {
	f, chunks := core.CutSnapshot(tip, links)
	f.Closed = tip.Round
	maps.Copy(v.blobs, chunks)
	return f
}

// show is the heartbeat of a node that holds the chain.
func (v *invention) show(l *liar) {
	var chains, states []byte
	for _, tip := range v.tips {
		chains, states = append(chains, tip.Chain[:]...), append(states, tip.State[:]...)
		v.heartbeat.Closed = append(v.heartbeat.Closed, tip.Round)
		v.heartbeat.Unpublished = append(v.heartbeat.Unpublished, 0)
		v.heartbeat.Folded = tip.Tokens
	}
	v.heartbeat.State, v.heartbeat.Incarnation = wire.Training, l.n.clock()
	v.heartbeat.Chain, v.heartbeat.StateDigest = wire.Sum(chains), wire.Sum(states)
}

// actInvented invents a chain of about as many rounds as the run has, so its base
// is ahead of nobody, or of Ahead more rounds. It shows the chain from then on.
// Liars show one and the same.
func actInvented(l *liar) {
	if l.invented == nil {
		l.invented = l.n.w.invention()
	}
	if l.invented == nil {
		l.invented = l.invent(l.victim().machine.Rounds().Fragment(0).Closed() + l.Ahead)
	}
	speakers := []ed25519.PrivateKey{l.n.key}
	if l.Kind != BoughtRun {
		speakers = append(speakers, l.crowd()...)
	}
	for _, key := range speakers {
		b := l.invented.heartbeat
		b.Seq, b.PeriodMs = uint64(l.acted), uint32(l.everyMs())
		b.Incarnation++ // later than the heartbeats of its core
		l.publish(wire.EncodeHeartbeat(key, l.n.w.run, b), everybody)
	}
}

// actBought shows the invented run once the liar has bought weight.
func actBought(l *liar) {
	if l.n.w.now >= Start+l.From+buyMs {
		actInvented(l)
	}
}

// invention is what some liar invented, nil for nothing.
func (w *World) invention() *invention {
	for _, n := range w.nodes {
		if n.liar != nil && n.liar.invented != nil {
			return n.liar.invented
		}
	}
	return nil
}

// sayInvented keeps the heartbeats of the core to itself.
func sayInvented(l *liar, m wire.Message) bool { return m.Heartbeat != nil && l.invented != nil }

func answerInvented(l *liar, to *Node, q wire.Request, honest []byte) []byte {
	v := l.invented
	if v == nil {
		return honest
	}
	switch q.Kind {
	case wire.GetRounds:
		return wire.Found(wire.EncodeRounds(v.rounds(q.Ranges)))
	case wire.GetManifest, wire.GetSnapshot:
		return wire.Found(wire.EncodeManifest(l.n.key, l.n.w.run, v.manifest))
	case wire.GetChunk:
		return chunkAnswer(v.blobs[q.Digest])
	}
	return answerForged(l, to, q, honest)
}

// rounds answers as a node that holds the invented chain.
func (v *invention) rounds(ranges []wire.Range) []wire.RangeAnswer {
	out := make([]wire.RangeAnswer, len(ranges))
	for i, r := range ranges {
		links := v.links[r.Fragment]
		first, last := links[0].Round, links[len(links)-1].Round
		out[i] = wire.RangeAnswer{Closed: last, Base: first}
		if at := r.From - 1; at >= first && at <= last {
			out[i].Chain, out[i].State = wire.Digest(links[at-first].Chain), wire.Digest(links[at-first].State)
		}
		for round := r.From; round <= min(r.To, last); round++ {
			var set wire.Digest
			if round > first {
				set = wire.SetDigest([]wire.Digest{wire.Digest(links[round-first].Folded[0])})
			}
			out[i].Sets = append(out[i].Sets, set)
		}
	}
	return out
}
