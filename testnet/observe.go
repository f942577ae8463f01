package testnet

import (
	"time"

	"atoll/gossip/wire"
	"atoll/node/status"
)

// recovery is how long something took to be as before.
type recovery struct {
	kind   string
	member *member // nil where all of them are meant
	at     time.Time
	folded uint64   // wakes: own tokens folded before
	closed []uint32 // merges: the last closed rounds before, of the node that had most
	took   time.Duration
}

// Kinds of recovery.
const (
	wakes    = "wake"    // from the end of a pause to the node's next own folded delta
	merges   = "merge"   // from the end of a partition until all nodes show one chain at a round after it
	relearns = "relearn" // from the end of a program that trains, or of part of it, until it trains again
)

// observe notes what the nodes said last.
func (w *world) observe(now time.Time) {
	if lead := w.lead(); lead != nil {
		w.progress.add(lead.last.At.Sub(w.began), lead.last.TokensFolded)
	}
	w.watchFolds(now)
	for _, m := range w.members {
		if l := m.current(); l != nil && l.seen {
			l.use()
		}
	}
	for _, r := range w.recoveries {
		if r.took == 0 && w.recovered(r) {
			r.took = now.Sub(r.at)
		}
	}
}

// recovered says whether it is as before now.
func (w *world) recovered(r *recovery) bool {
	if r.kind == merges {
		return w.agree(r)
	}
	l := r.member.current()
	if r.kind == relearns {
		return l != nil && l.event(eventLearnerBack).After(r.at)
	}
	return l != nil && l.last.At.After(r.at) && l.ownFolded() > r.folded
}

// ownFolded is a measure of a node's own folded work, which grows with it.
func (l *life) ownFolded() (sum uint64) {
	for _, tokens := range l.last.Account.OwnFolded {
		sum += tokens
	}
	return sum
}

// mostClosed are the last closed rounds of the fragments, of the node that has most.
func (w *world) mostClosed() (closed []uint32) {
	for _, m := range w.members {
		l := m.current()
		if l == nil {
			continue
		}
		for p, f := range l.last.Fragments {
			if p == len(closed) {
				closed = append(closed, 0)
			}
			closed[p] = max(closed[p], f.Closed)
		}
	}
	return closed
}

// agree says whether all running nodes have shown the same chain since a
// partition ended, at a common round that is not before its end.
func (w *world) agree(r *recovery) bool {
	var first []status.Fragment
	for _, m := range w.members {
		l := m.current()
		if l == nil || l.paused || l.asked || l.killed {
			continue
		}
		if !l.seen || !l.last.At.After(r.at) {
			return false
		}
		if first == nil {
			first = l.last.Fragments
		}
		for p, f := range l.last.Fragments {
			if p >= len(r.closed) || !sameChain(first[p].Chains, f.Chains, r.closed[p]) {
				return false
			}
		}
	}
	return first != nil
}

// sameChain says whether two nodes have the same chain at the newest round that
// both show, which is not before the one given.
func sameChain(a, b []status.ChainAt, from uint32) bool {
	for i := len(a) - 1; i >= 0 && a[i].Round >= from; i-- {
		for _, other := range b {
			if other.Round == a[i].Round {
				return other.Digest == a[i].Digest
			}
		}
	}
	return false
}

// usage is what a process took of the machine at a moment.
type usage struct {
	at         time.Duration // since its start
	joining    bool          // it had yet to get the run
	rss        float64       // bytes
	goroutines float64
	files      float64
}

// use notes what the process takes and plans, once for each status.
func (l *life) use() {
	l.plan = max(l.plan, l.last.Plan.Planned)
	u := usage{
		at: l.last.At.Sub(l.began), joining: l.last.State == wire.Joining.String(), rss: float64(l.last.RSSBytes),
		goroutines: float64(l.last.Goroutines), files: float64(l.last.OpenFiles),
	}
	if n := len(l.usage); n == 0 || l.usage[n-1].at < u.at {
		l.usage = append(l.usage, u)
	}
}
