package trace

import (
	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// durable records an own delta, which is on the disk.
func (r *Recorder) durable(now int64, e core.StoreOwn) {
	l := r.begin(e.ID, e.Header.Header)
	l.Drafted, l.Verified = r.drafts[e.Seq], now
	delete(r.drafts, e.Seq)
	if len(r.own) < maxOpen {
		r.own[e.Seq] = l
	}
}

// announced records that the header of an own delta leaves; the round has the delta. That is
// written at once: others' lines are worth little without it, should this process be killed.
func (r *Recorder) announced(now int64, id wire.Digest) {
	l := r.open[id]
	if l == nil || l.Announced != 0 {
		return
	}
	l.Announced, l.Held = now, now
	l.Late = l.Closed != 0 && l.Closed < now // it may itself have closed the round, just now
	first := *l
	first.End = Open
	r.put(first)
}

// heard records a header that is here for the first time.
func (r *Recorder) heard(now int64, e gossip.Offer) {
	l := r.begin(e.ID, e.Header.Header)
	if l.Heard == 0 {
		l.Heard, l.Brought = now, e.From
	}
}

// verified records that a payload decodes and is stored.
func (r *Recorder) verified(now int64, id wire.Digest) {
	if l := r.open[id]; l != nil && l.Verified == 0 {
		l.Verified = now
		l.Inline = l.LastByte == 0
	}
}

// stored records that a delta goes into the set of its round.
func (r *Recorder) stored(now int64, id wire.Digest) {
	if l := r.open[id]; l != nil {
		l.holds(now)
	}
}

func (l *Line) holds(now int64) {
	if l.Held == 0 {
		l.Held, l.Late = now, l.Closed != 0
	}
}

// fates records what an adoption does to own deltas. What it folds is adopted by now, or
// will be.
func (r *Recorder) fates(now int64, a outer.Adopt) {
	for _, c := range a.Changes {
		l := r.own[c.Seq]
		if l == nil {
			continue
		}
		switch c.Fate {
		case outer.Unfolded:
			r.reopen(l)
		case outer.Returned:
			r.end(l, Returned)
		case outer.Discarded, outer.Dropped:
			r.end(l, Discarded)
		case outer.Folded, outer.Regained:
			l.Adopted = now
			r.end(l, Adopted)
		}
		if c.Fate == outer.Returned || c.Fate == outer.Forgotten {
			delete(r.own, c.Seq)
		}
	}
}

// reopen follows an own delta again that left the chain.
func (r *Recorder) reopen(l *Line) {
	l.Folded, l.Adopted, l.End = 0, 0, ""
	if r.open[l.Delta] == nil {
		r.open[l.Delta] = l
		r.order = append(r.order, l.Delta)
	}
}
