package gossip

import (
	"encoding/binary"
	"errors"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// wanted is a blob that this node fetches. Each part is missing, asked for, being stored, or
// held; a request asks for one of several parts, which all count as asked for until the
// answer.
type wanted struct {
	Blob
	missing wire.PartSet // neither held nor being stored
	asked   wire.PartSet // of missing: some request in flight may bring it
	storing wire.PartSet
	first   int // the part that this node begins with: not all begin with the same
}

// flight is a request for a part.
type flight struct {
	to     *peers.Peer
	digest wire.Digest
	parts  wire.PartSet
	left   bool // its parts may be asked of others: the peer owes an answer for too long
}

// blobPeer is what blobs knows of a peer.
type blobPeer struct {
	calls  int                          // parts asked of it
	lastAt Time                         // when its last part came, or the first was asked for
	after  Time                         // no part before: it was busy
	holds  map[wire.Digest]wire.PartSet // of what is wanted, as it said last
	asking bool                         // what it holds
	deaf   Time                         // until then it is not asked: it does not know such requests, and counts them as faults
	lied   map[wire.Digest]bool         // what it gave was no part of these
}

func blobsOf(p *peers.Peer) *blobPeer { return peers.Note[blobPeer](p) }

func (b *blobs) newWant(blob Blob) *wanted {
	parts := wire.PartCount(blob.Size)
	lot := wire.Sum(append(b.cfg.Self[:], blob.Digest[:]...))
	return &wanted{
		Blob: blob, missing: wire.AllParts(parts).Without(b.held[blob.Digest]),
		first: int(binary.BigEndian.Uint32(lot[:]) % uint32(parts)),
	}
}

func (b *blobs) tick() {
	if b.Paused || !slices.ContainsFunc(b.wants, func(w *wanted) bool { return !w.missing.Empty() }) {
		return
	}
	b.reclaim()
	b.askHoldings()
	b.pump()
}

// gives reports whether a peer can be asked for blobs.
func (b *blobs) gives(p *peers.Peer) bool {
	return b.Usable(p) && !p.Pauses() && !p.Record().Stateless
}

// askHoldings asks some peers what they have of what is missing, the next ones each time.
func (b *blobs) askHoldings() {
	linked := b.Linked
	if b.Now < b.askAt || len(linked) == 0 {
		return
	}
	b.askAt = b.Now + holdingsMs
	var digests []wire.Digest
	for _, w := range b.wants {
		if !w.missing.Empty() && len(digests) < wire.MaxHoldings {
			digests = append(digests, w.Digest)
		}
	}
	for range min(len(linked), maxHolders) {
		b.turn = (b.turn + 1) % len(linked)
		if p := linked[b.turn]; b.gives(p) && !blobsOf(p).asking && b.Now >= blobsOf(p).deaf {
			b.askHolds(p, digests)
		}
	}
}

func (b *blobs) askHolds(p *peers.Peer, digests []wire.Digest) {
	blobsOf(p).asking = true
	q := wire.Request{Kind: wire.GetHoldings, Digests: digests}
	b.Call(p.ID, q, q.Kind.MaxResponse(), effect.CallMs, func(body []byte, err error) {
		blobsOf(p).asking = false
		if errors.Is(err, wire.ErrRefused) {
			blobsOf(p).deaf = b.Now + deafMs
		}
		if err != nil {
			return
		}
		held, err := wire.DecodeHoldings(body, len(digests))
		if err != nil {
			b.Misbehaved(p.ID, err.Error())
			return
		}
		blobsOf(p).holds = make(map[wire.Digest]wire.PartSet, len(held))
		for i, d := range digests {
			if !held[i].Empty() && !blobsOf(p).lied[d] {
				blobsOf(p).holds[d] = held[i]
			}
		}
		b.pump()
	})
}

// pump asks for as many parts as may be in flight, of each peer in turn.
func (b *blobs) pump() {
	for asked := !b.Paused; asked; {
		asked = false
		for _, p := range b.Linked {
			if len(b.flights) >= b.disk.Allows(b.Now, b.mostCalls()) {
				return
			}
			asked = b.askNext(p) || asked
		}
	}
}

// askNext asks a peer for the part that is needed most of those that it is to give.
func (b *blobs) askNext(p *peers.Peer) bool {
	if !b.idle(p) {
		return false
	}
	for _, w := range b.wants {
		if parts := b.pick(w, p); !parts.Empty() {
			b.ask(w, p, parts)
			return true
		}
	}
	return false
}

// idle reports whether a peer may be asked for one part more.
func (b *blobs) idle(p *peers.Peer) bool {
	return b.gives(p) && b.Now >= blobsOf(p).after && blobsOf(p).calls < chunksAhead(p) && !b.stalled(p)
}

// pick are the parts of w to ask of p, for one answer. Who has the whole blob is needed for
// what the others lack: what one of these can give is asked there. Who has it whole and an
// uplink that is not known to be full is asked as well, where the others have enough to do.
func (b *blobs) pick(w *wanted, p *peers.Peer) (parts wire.PartSet) {
	holds := blobsOf(p).holds[w.Digest]
	free := w.missing.Without(w.asked).And(holds)
	if free.Empty() {
		return free
	}
	if whole := wire.PartCount(w.Size); holds.Len() == whole {
		full := p.Heartbeat != nil && p.Heartbeat.Full
		for _, q := range b.Linked {
			has := blobsOf(q).holds[w.Digest]
			if has.Len() < whole && b.gives(q) && !b.stalled(q) && (full || b.idle(q)) {
				free = free.Without(has)
			}
		}
	}
	all := free.Indexes()
	from, _ := slices.BinarySearch(all, w.first)
	for i := range min(len(all), maxChoice) {
		parts.Add(all[(from+i)%len(all)])
	}
	return parts
}

// stalled reports whether p owes parts and nothing of it came for long.
func (b *blobs) stalled(p *peers.Peer) bool {
	return blobsOf(p).calls > 0 && b.Now > blobsOf(p).lastAt+max(partStallMs, p.Rate.TransferMs(wire.PartSize))
}

// reclaim lets parts be asked of others whose peer is gone or still. If it sends one after
// all that is welcome.
func (b *blobs) reclaim() {
	for _, f := range b.flights {
		if !b.gives(f.to) || b.stalled(f.to) {
			b.leave(f)
		}
	}
}

// leave lets the parts of a request be asked of others.
func (b *blobs) leave(f *flight) {
	if w := b.find(f.digest); w != nil && !f.left {
		w.asked = w.asked.Without(f.parts)
	}
	f.left = true
}

func (b *blobs) ask(w *wanted, p *peers.Peer, parts wire.PartSet) {
	w.asked = w.asked.With(parts)
	f := &flight{to: p, digest: w.Digest, parts: parts}
	b.flights = append(b.flights, f)
	if blobsOf(p).calls == 0 {
		blobsOf(p).lastAt = b.Now
	}
	blobsOf(p).calls++
	q := wire.Request{Kind: wire.GetPart, Digest: w.Digest, Parts: parts}
	b.Call(p.ID, q, q.Kind.MaxResponse(), chunkCallMs, func(body []byte, err error) {
		blobsOf(p).calls--
		b.flights = slices.DeleteFunc(b.flights, func(o *flight) bool { return o == f })
		b.leave(f)
		if err == nil {
			p.Rate.Sampled(len(body), max(b.Took, 1))
		}
		blobsOf(p).lastAt = b.Now
		b.came(f, body, err)
		b.pump()
	})
}

// came takes the answer to a request for a part.
func (b *blobs) came(f *flight, body []byte, err error) {
	p, w := f.to, b.find(f.digest)
	switch {
	case err == nil && w != nil:
		b.accept(w, f, body)
	case errors.Is(err, wire.ErrNotFound), errors.Is(err, wire.ErrRefused):
		delete(blobsOf(p).holds, f.digest)
	case err != nil:
		blobsOf(p).after = b.Now + fetch.BusyRetryMs
	}
}

// accept keeps a part, if it is one of those that were asked for.
func (b *blobs) accept(w *wanted, f *flight, body []byte) {
	part, err := wire.OpenPart(w.Digest, body)
	switch {
	case err == nil && part.Size() != w.Size:
		err = errors.New("part of a blob of another size")
	case err == nil && !f.parts.Has(part.Index):
		err = errors.New("part that was not asked for")
	}
	if err != nil {
		b.Misbehaved(f.to.ID, err.Error())
		b.distrust(f.to, w.Digest)
		return
	}
	var one wire.PartSet
	one.Add(part.Index)
	if w.missing.And(one).Empty() {
		return // it came from another peer as well
	}
	w.missing = w.missing.Without(one)
	w.storing = w.storing.With(one)
	b.Emit(StorePart{Digest: w.Digest, Part: part})
}

// distrust does not ask a peer for a blob again.
func (b *blobs) distrust(p *peers.Peer, d wire.Digest) {
	if blobsOf(p).lied == nil || len(blobsOf(p).lied) >= wire.MaxHoldings {
		blobsOf(p).lied = map[wire.Digest]bool{}
	}
	blobsOf(p).lied[d] = true
	delete(blobsOf(p).holds, d)
}

// stored notes what became of a part.
func (b *blobs) stored(d wire.Digest, index int, err error) {
	var one wire.PartSet
	one.Add(index)
	w := b.find(d)
	if w != nil {
		w.storing = w.storing.Without(one)
	}
	if err == nil {
		b.disk.Worked()
		b.held[d] = b.held[d].With(one)
		return
	}
	b.disk.Failed(b.Now)
	if w != nil {
		w.missing = w.missing.With(one)
	}
}
