package limit

import (
	"cmp"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// bucket is a token bucket: it holds what may come at once.
type bucket struct {
	at    effect.Time
	spent float64
}

// has reports whether one is left in a bucket of this size, into which so many come each ms.
func (b *bucket) has(now effect.Time, perMs, size float64) bool {
	now = max(now, b.at)
	b.spent = max(0, b.spent-float64(now-b.at)*perMs)
	b.at = now
	return b.spent+1 <= size
}

// spend takes one, if it is left.
func (b *bucket) spend(now effect.Time, perMs, size float64) bool {
	if !b.has(now, perMs, size) {
		return false
	}
	b.spent++
	return true
}

// toll is what a message takes out of a bucket: one that is left, and more that may come later. Who needs much at once would
// never get it beside a crowd that needs little.
type toll struct {
	from        *bucket
	perMs, size float64
	more        float64 // at most a full bucket counts
	owed        bool    // whether or not one is left
}

// fits reports whether all buckets have what is due.
func fits(now effect.Time, due []toll) bool {
	all := true
	for _, t := range due {
		left := t.from.has(now, t.perMs, t.size)
		all = all && (left || t.owed)
	}
	return all
}

// pay takes what is due out of buckets that fits has just looked at. No debt is more than an empty bucket and what the last one
// took beyond one: it would last for longer than whoever made it goes on.
func pay(due []toll) {
	for _, t := range due {
		more := min(t.more, t.size)
		t.from.spent = min(t.from.spent+1+more, t.size+more)
	}
}

// recent has something of each of the peers that were heard last, maxPeers of them or more. Those that
// were not heard for longest are forgotten.
type recent[T any] struct {
	newer, older map[wire.PeerID]*T
}

// of is what there is of a peer, new where nothing was.
func (r *recent[T]) of(id wire.PeerID) *T {
	if x := r.newer[id]; x != nil {
		return x
	}
	if r.newer == nil || len(r.newer) >= peers.MaxPeers {
		r.older, r.newer = r.newer, map[wire.PeerID]*T{}
	}
	x := r.older[id]
	if x == nil {
		x = new(T)
	}
	delete(r.older, id)
	r.newer[id] = x
	return x
}

// peek is what there is of a peer, and where nothing was something new that is not kept.
func (r *recent[T]) peek(id wire.PeerID) *T {
	if x := cmp.Or(r.newer[id], r.older[id]); x != nil {
		return x
	}
	return new(T)
}

func (r *recent[T]) len() int { return len(r.newer) + len(r.older) }
