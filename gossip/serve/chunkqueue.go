package serve

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// chunkQueue shares this node's upload among those that fetch its snapshot or parts of blobs, which
// count as chunks. Each asker gets one chunk at a time, so that a node that dies in the middle costs it at
// most one; what it asks for beyond waits here. All askers together get few at
// a time, and beside a payload of the run only one: joiners must not starve the
// rounds. An asker without room is told Busy, and goes to another source.
type chunkQueue struct {
	*peers.Table
	serve  *Serve
	askers []*asker    // the next to be given a chunk first
	began  effect.Time // when the last chunk did to leave
}

// asker is one peer that has asked for chunks.
type asker struct {
	peer    *peers.Peer
	waiting []chunkRequest // in the order in which they came
	sending bool           // a chunk is leaving
	handle  uint64         // of that chunk
	since   effect.Time    // when it began to leave
}

// chunkRequest waits for its turn.
type chunkRequest struct {
	handle uint64
	digest wire.Digest
	parts  wire.PartSet // of the blob of that digest, one of which is asked for; empty for a chunk
	until  effect.Time
}

// turn is how an asker uses its slot. It outlives a moment without requests.
type turn struct {
	from, last effect.Time // when it began, and when it was used last
	chunks     int         // that have left since it began
}

// goesOn reports whether a request at now belongs to the turn.
func (t turn) goesOn(now effect.Time) bool { return t.last > 0 && now < t.last+ChunkTurnMs }

// pace is the chunks per ms so far.
func (t turn) pace(now effect.Time) float64 { return float64(t.chunks) / float64(max(now-t.from, 1)) }

// request queues a request for a chunk, or turns it away.
func (d *chunkQueue) request(p *peers.Peer, r chunkRequest) {
	a := d.asker(p)
	if a == nil || len(a.waiting) >= MaxChunkAhead {
		d.serve.status(r.handle, wire.Busy)
		return
	}
	peerOf(p).turn.last = d.Now
	r.until = d.Now + ChunkWaitMs
	a.waiting = append(a.waiting, r)
	d.pump()
}

// asker returns the entry of p, nil if there is no room for one more.
func (d *chunkQueue) asker(p *peers.Peer) *asker {
	for _, a := range d.askers {
		if a.peer == p {
			return a
		}
	}
	if len(d.askers) >= MaxChunkAskers && !d.makeRoom(p) {
		return nil
	}
	if !peerOf(p).turn.goesOn(d.Now) {
		peerOf(p).turn = turn{from: d.Now}
	}
	a := &asker{peer: p}
	d.askers = append(d.askers, a)
	return a
}

// makeRoom has the slowest of those give way whose turn has lasted long enough, or of those that are
// not known where p is. Contributors keep their slots.
func (d *chunkQueue) makeRoom(p *peers.Peer) bool {
	slowest := -1
	for i, a := range d.askers {
		before := d.Known(a.peer.ID) || !d.Known(p.ID) // p has to wait for the end of the turn
		if d.Contributed(a.peer) || before && d.Now < peerOf(a.peer).turn.from+ChunkTurnMs {
			continue
		}
		if slowest < 0 || peerOf(a.peer).turn.pace(d.Now) < peerOf(d.askers[slowest].peer).turn.pace(d.Now) {
			slowest = i
		}
	}
	if slowest < 0 {
		return false
	}
	a := d.askers[slowest]
	d.turnAway(a, func(chunkRequest) bool { return true })
	peerOf(a.peer).turn = turn{}
	d.askers = slices.Delete(d.askers, slowest, slowest+1)
	return true
}

// pump gives the askers whose turn it is a chunk each, as many as may leave.
func (d *chunkQueue) pump() {
	for i := 0; i < len(d.askers) && d.away() < d.mayLeave(); {
		a := d.askers[i]
		if a.sending || len(a.waiting) == 0 || !d.send(a) {
			i++
			continue
		}
		d.askers = append(slices.Delete(d.askers, i, i+1), a) // the others come first now
	}
	d.forget()
}

// send answers the first request of an asker, if there is a slot.
func (d *chunkQueue) send(a *asker) bool {
	d.skip(a)
	if len(a.waiting) == 0 {
		return false
	}
	r := a.waiting[0]
	if !d.serve.admit(reply{handle: r.handle, to: a.peer, bytes: wire.ChunkSize}) {
		return false
	}
	a.waiting = a.waiting[1:]
	a.sending, a.handle, a.since = true, r.handle, d.Now
	d.began = d.Now
	if r.parts.Empty() {
		d.Emit(effect.ReplyChunk{Handle: r.handle, Digest: r.digest})
	} else {
		d.Emit(effect.ReplyPart{Handle: r.handle, Digest: r.digest, Index: d.serve.blobs.Choose(r.digest, r.parts)})
	}
	return true
}

// skip answers the first requests of an asker that are for parts that are not there any more,
// or that others are about to have while the uplink is full.
func (d *chunkQueue) skip(a *asker) {
	for len(a.waiting) > 0 {
		r := a.waiting[0]
		switch {
		case r.parts.Empty():
			return
		case !d.serve.blobs.Has(r.digest, r.parts):
			d.serve.status(r.handle, wire.NotFound)
		case d.serve.upload() > 0 && d.serve.blobs.Spread(r.digest, r.parts):
			d.serve.status(r.handle, wire.Busy)
		default:
			return
		}
		a.waiting = a.waiting[1:]
	}
}

// away counts the chunks that are leaving. One that is stuck does not count:
// an asker that does not read must not keep the others out.
func (d *chunkQueue) away() (n int) {
	for _, a := range d.askers {
		if a.sending && d.Now < a.since+ChunkSlotMs {
			n++
		}
	}
	return n
}

// mayLeave is how many chunks may leave at once.
func (d *chunkQueue) mayLeave() int {
	if d.serve.crowded() && float64(d.Now-d.began) < ChunkParts*wire.ChunkSize/d.serve.upload() {
		return 0
	}
	if d.serve.payloadsAway() {
		return MaxChunksBeside
	}
	return MaxChunksAway
}

// left says that the last byte of a chunk left, or that its asker is gone.
func (d *chunkQueue) left(handle uint64) {
	for _, a := range d.askers {
		if a.sending && a.handle == handle {
			a.sending = false
			peerOf(a.peer).turn.chunks++
			peerOf(a.peer).turn.last = d.Now
		}
		a.waiting = slices.DeleteFunc(a.waiting, func(r chunkRequest) bool { return r.handle == handle })
	}
	d.pump()
}

// forget drops the entries that say nothing.
func (d *chunkQueue) forget() {
	d.askers = slices.DeleteFunc(d.askers, func(a *asker) bool { return !a.sending && len(a.waiting) == 0 })
}

// gone forgets a peer whose last connection was lost.
func (d *chunkQueue) gone(id wire.PeerID) {
	d.askers = slices.DeleteFunc(d.askers, func(a *asker) bool {
		if a.peer.ID == id {
			d.turnAway(a, func(chunkRequest) bool { return true })
		}
		return a.peer.ID == id
	})
	d.pump()
}

// tick turns away what waited too long.
func (d *chunkQueue) tick() {
	for _, a := range d.askers {
		d.turnAway(a, func(r chunkRequest) bool { return d.Now >= r.until })
	}
	d.pump()
}

// turnAway says Busy to the waiting requests that pick selects.
func (d *chunkQueue) turnAway(a *asker, pick func(chunkRequest) bool) {
	a.waiting = slices.DeleteFunc(a.waiting, func(r chunkRequest) bool {
		out := pick(r)
		if out {
			d.serve.status(r.handle, wire.Busy)
		}
		return out
	})
}
