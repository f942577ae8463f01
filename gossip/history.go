package gossip

import (
	"errors"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// history fetches the headers of the rounds that lead to a snapshot, once
// this node is in and has nothing better to do. The snapshot came with the ids that
// were folded, so each round's headers are known to be the right ones. With them
// a peer that lacks a delta of such a round hears of it here too. Payloads of
// these rounds are of no use: nothing below the snapshot is folded here.
type history struct {
	*env
	certificates *certificates

	repair    *repair
	fetch     *fetch.Fetch
	snapshot  *snapshot
	planned   bool            // todo was listed since a snapshot was last taken
	todo      []wire.RoundKey // rounds whose headers are missing
	turn      int             // whom to ask next
	fruitless int             // answers in a row that brought nothing
	asking    bool
	after     Time // not before: it is paced
	beside    Time // not before, while payloads are on their way
}

// complete reports whether this node has joined and knows who made the folded deltas
// of all rounds up to its snapshot, as far as others do.
func (h *history) complete() bool {
	if h.heartbeats.Joining() || h.asking || h.snapshot.busy() {
		return false // nor is anything planned while an answer to the plan before is due
	}
	if !h.planned {
		h.plan()
	}
	return len(h.todo) == 0
}

// installed says that a snapshot was taken.
func (h *history) installed() { h.planned, h.after = false, 0 }

func (h *history) tick() {
	if h.heartbeats.Joining() || h.asking || h.Paused || h.Now < h.after || h.busy() {
		return
	}
	if !h.fetch.Idle() && h.Now < h.beside {
		return // in a run at work there are always some
	}
	if !h.planned {
		h.plan()
	}
	if len(h.todo) == 0 {
		return
	}
	if h.fruitless >= maxFruitless {
		h.fruitless, h.after = 0, h.Now+historyRetryMs
		return
	}
	if p := h.next(); p != nil {
		h.ask(p)
	}
}

// busy reports whether there is anything that matters more.
func (h *history) busy() bool {
	return h.snapshot.busy() || len(h.repair.sessions) > 0
}

// plan lists the rounds up to the snapshot's whose deltas are known by their ids only.
func (h *history) plan() {
	h.planned, h.todo, h.fruitless = true, nil, 0
	for f := range h.chain.Fragments() {
		for r := h.chain.Base(f); r > 0; r-- {
			set, known := h.chain.SetDigest(f, r)
			if !known {
				break
			}
			if !set.IsZero() && h.lacks(f, r) {
				h.todo = append(h.todo, wire.RoundKey{Fragment: uint16(f), Round: r})
			}
		}
	}
}

// lacks reports whether headers of the deltas folded in a round are missing: all of them, or what admits an author.
func (h *history) lacks(f int, r uint32) bool {
	signed := h.chain.Signed(f, r)
	return len(signed) == 0 || slices.ContainsFunc(signed, h.unknown)
}

// unknown reports whether what admits the author of a delta is not known here.
func (e *env) unknown(s wire.SignedHeader) bool {
	return errors.Is(e.cfg.Members.CheckHeader(s.Header), member.ErrUnknown)
}

// next is the peer to ask, each in turn.
func (h *history) next() *peers.Peer {
	n := len(h.List)
	for i := range n {
		p := h.List[(h.turn+i)%n]
		if h.Usable(p) && h.Live(p) && p.Refused == "" {
			h.turn = (h.turn + i + 1) % n
			return p
		}
	}
	return nil
}

func (h *history) ask(p *peers.Peer) {
	batch := h.todo[:min(historyBatch, len(h.todo))]
	h.asking = true
	request := wire.Request{Kind: wire.GetHeaders, Rounds: batch}
	h.Call(p.ID, request, wire.GetHeaders.MaxResponse(), effect.CallMs, func(b []byte, err error) {
		h.after, h.beside = h.Now+h.HeartbeatPeriod(), h.Now+historyHeartbeats*h.HeartbeatPeriod()
		if h.asking = false; !h.planned {
			return // a snapshot was taken meanwhile
		}
		h.todo = h.todo[len(batch):]
		h.fruitless++
		if err != nil {
			h.todo = append(h.todo, batch...)
			return
		}
		headers, err := wire.DecodeHeaders(b)
		if err != nil {
			h.Misbehaved(p.ID, err.Error())
		}
		h.resolve(p, h.sort(batch, headers), nil)
	})
}

// pastRound is the headers of the deltas folded in a round.
type pastRound struct {
	key     wire.RoundKey
	headers []wire.SignedHeader
}

// sort returns the rounds whose headers all came. The next peer is asked for the others.
func (h *history) sort(batch []wire.RoundKey, headers []wire.SignedHeader) (came []pastRound) {
	rounds := map[wire.RoundKey][]wire.SignedHeader{}
	for _, s := range headers {
		key := wire.RoundKey{Fragment: s.Header.Fragment, Round: s.Header.Round}
		rounds[key] = append(rounds[key], s)
	}
	for _, key := range batch {
		if h.whole(key, rounds[key]) {
			came = append(came, pastRound{key, rounds[key]})
		} else {
			h.todo = append(h.todo, key)
		}
	}
	return came
}

// resolve asks the peer for the certificates that the headers name and that are not known here, each once, and then takes the
// rounds. What was folded bounds them, so there is room for all.
func (h *history) resolve(p *peers.Peer, came []pastRound, asked []wire.Digest) {
	var headers []wire.SignedHeader
	for _, r := range came {
		headers = append(headers, r.headers...)
	}
	q := h.certificates.lacking(headers, asked)
	if len(q.Certificates) == 0 {
		h.accept(came)
		return
	}
	h.asking = true
	h.Call(p.ID, q, q.Kind.MaxResponse(), effect.CallMs, func(b []byte, err error) {
		if h.asking = false; !h.planned {
			return // a snapshot was taken meanwhile
		}
		if err != nil {
			h.accept(came)
			return
		}
		if err := h.certificates.accept(b, q, h.cfg.Members.AddHeld); err != nil {
			h.Misbehaved(p.ID, err.Error())
		}
		h.resolve(p, came, append(asked, q.Certificates...))
	})
}

// accept keeps the headers of each round whose authors are all known: who has contributed follows from
// their certificates. The next peer is asked for the others.
func (h *history) accept(came []pastRound) {
	for _, r := range came {
		if slices.ContainsFunc(r.headers, h.unknown) {
			h.todo = append(h.todo, r.key)
			continue
		}
		h.fruitless = 0
		for _, s := range r.headers {
			h.Emit(StoreHeader{Header: s})
		}
	}
}

// whole reports whether these are the headers of the deltas folded in a round. A
// header's id covers all of it but the signature.
func (h *history) whole(key wire.RoundKey, headers []wire.SignedHeader) bool {
	var ids []wire.Digest
	for _, s := range headers {
		ids = append(ids, s.Header.ID(h.cfg.Run))
	}
	slices.SortFunc(ids, wire.Digest.Compare)
	set, known := h.chain.SetDigest(int(key.Fragment), key.Round)
	if !known || wire.SetDigest(slices.Compact(ids)) != set {
		return false
	}
	return !slices.ContainsFunc(headers, func(s wire.SignedHeader) bool { return h.cfg.VerifyHeader(s) != nil })
}
