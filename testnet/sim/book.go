package sim

import (
	"slices"

	"atoll/gossip/wire"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// book is what the world knows of a node's tokens, by means of its own. Each token
// that was trained, or came back with a final and unfolded delta, is in an own delta,
// or it is unpublished: pending or lost. And each own delta is folded,
// or the book says why not.
type book struct {
	trained   uint64                    // by each fragment
	lost      []uint64                  // by fragment: unpublished at a crash
	lostHere  []uint64                  // by fragment: unpublished, and lost without a crash; discarded in the machine's account
	gone      []uint64                  // discarded in earlier lives
	published []uint64                  // by fragment: in own deltas that were durable once
	back      []uint64                  // by fragment: returned, to be published once more
	own       map[wire.Digest]*ownDelta // all that were durable once
	closed    bool                      // the account of the last life is in the columns above
	rebased   bool                      // it took a snapshot, or lost its disk, while it had work of its own
	base      []uint64                  // what this life began with, in the machine's account
	before    uint64                    // trained when this life began
}

// ownDelta is an own delta and what became of it on this node.
type ownDelta struct {
	fragment int
	tokens   uint64
	at       Time // when it was published, by the node's own clock; 0 in an earlier life
	handed   bool // to some peer
	fate     fate
}

// fate is why an own delta need not be in the final chain.
type fate uint8

const (
	current   fate = iota // it is in flight, or folded
	returned              // its tokens are pending again
	discarded             // it was folded on a chain that was left, or nobody can say
	forgotten             // likewise, by the disk alone: in this life it may be in flight
	unseen                // it was folded, and is older than the history of the chain that was taken
	diskLost              // the disk was lost, and who wrote it knows of nothing
)

// counted says that the tokens are in another column than the tokens of folded deltas.
func (f fate) counted() bool { return f == returned || f == discarded || f == forgotten }

func newBook(fragments int) book {
	column := func() []uint64 { return make([]uint64, fragments) }
	return book{lost: column(), lostHere: column(), gone: column(), published: column(), back: column(), own: map[wire.Digest]*ownDelta{}}
}

// publishes records an own delta that is durable.
func (b *book) publishes(id wire.Digest, h wire.Header, at Time) {
	b.published[h.Fragment] += h.Tokens
	b.own[id] = &ownDelta{fragment: int(h.Fragment), tokens: h.Tokens, at: at, handed: h.Size <= wire.MaxInline}
}

// hands records that a peer has the whole payload of a delta, which may be an own one.
func (b *book) hands(id wire.Digest) {
	if o := b.own[id]; o != nil {
		o.handed = true
	}
}

// records keeps what became of own deltas.
func (b *book) records(what fate, ids []wire.Digest) {
	for _, id := range ids {
		if o := b.own[id]; o != nil {
			o.fate = what
		}
	}
}

// returns records own deltas whose tokens are pending again. Where the payload is lost, the
// learner drops them.
func (b *book) returns(ids []wire.Digest) {
	for _, id := range ids {
		o := b.own[id]
		b.back[o.fragment] += o.tokens
		o.fate = returned
	}
}

// recordUnseen records own deltas that are older than the history which came with the snapshot of
// another chain. Whether that folds them nobody here can say.
func (n *Node) recordUnseen(fragments []replica.InstalledFragment) {
	for id, o := range n.book.own {
		first := fragments[o.fragment].Links[0]
		record, _ := n.disk.Record(o.fragment, first.Round)
		another := record.Chain != first.Chain
		if o.fate == current && another && n.w.checks.ledger[id].Round < first.Round {
			o.fate = unseen
		}
	}
}

// losesDisk records that the records of all own deltas are gone.
func (b *book) losesDisk() {
	b.rebased = true
	for _, o := range b.own {
		if o.fate == current {
			o.fate = diskLost
		}
	}
}

// closeBook closes the account of a life that a crash ends: what was not
// published is lost, and so are drafts that were not on disk.
func (n *Node) closeBook() {
	for p := range n.w.plan {
		_, pending := n.learner.Pending(p)
		n.book.lost[p] += pending
		a := n.account(p)
		n.book.gone[p] += a.Discarded.Tokens
	}
	for _, d := range n.drafts {
		n.book.lost[d.fragment] += d.tokens
	}
	n.book.closed = true
}

// openBook begins the account of a life, with what the disk brought back.
func (n *Node) openBook() {
	n.book.closed = false
	n.book.before = n.book.trained
	n.book.base = make([]uint64, len(n.w.plan))
	for p := range n.book.base {
		n.book.base[p] = n.account(p).Total().Tokens
	}
	for _, o := range n.book.own {
		o.at = 0
	}
}

// checkBook compares what a node trained with where it went, on both sides, whatever
// befell it. folds are the deltas in the final chain.
func (n *Node) checkBook(p int, folds map[wire.Digest]bool) {
	n.checkWork(p)
	n.checkFates(p, folds)
	if n.up {
		n.checkMachine(p)
	}
}

// checkWork: what was trained or came back was published, or is in a column of what was not.
func (n *Node) checkWork(p int) {
	b := n.book
	made := b.trained + b.back[p]
	spent := b.published[p] + b.lost[p] + b.lostHere[p]
	if !b.closed {
		_, pending := n.learner.Pending(p)
		spent += pending
		for _, d := range n.drafts {
			if d.fragment == p {
				spent += d.tokens
			}
		}
	}
	if made != spent {
		n.broken("account", "fragment %d: trained %d tokens and %d came back, %d are published, pending, or lost with %d at crashes; account %+v",
			p, b.trained, b.back[p], spent, b.lost[p], n.account(p))
	}
}

// checkFates: an own delta that the final chain does not fold is in flight, or it is known
// why not; one that it folds was not returned. Nobody knows what a node that is gone or down
// still had in flight. A node that left a chain could not know the fate of deltas
// older than the history that came with the snapshot. It discarded them, or had back what was
// final and unfolded there: they may be folded all the same. It takes deltas for folded
// that others showed to have folded, and the chain may not fold them.
func (n *Node) checkFates(p int, folds map[wire.Digest]bool) {
	b := n.book
	var flying, may, twice, unknown uint64
	for id, o := range b.own {
		switch {
		case o.fragment != p:
		case folds[id] && o.fate.counted():
			twice += o.tokens
		case !folds[id] && o.fate == current:
			flying += o.tokens
		case !folds[id] && o.fate == forgotten:
			may += o.tokens
		case !folds[id] && o.fate == unseen:
			unknown += o.tokens
		}
	}
	if twice > 0 && !b.rebased {
		n.broken("account", "fragment %d: %d tokens were returned or discarded, and are folded as well", p, twice)
	}
	n.w.counts.DiscardedAndFolded += twice
	n.w.counts.FoldedUnseen += unknown
	if !n.up {
		return
	}
	if a := n.account(p); a.InFlight.Tokens < flying || a.InFlight.Tokens > flying+may {
		n.broken("account", "fragment %d: own deltas of %d tokens are not folded, nor are %d that the disk forgot; account %+v", p, flying, may, a)
	}
}

// checkMachine: the learner has pending what the machine counts, and in its parameters the
// own deltas that the machine has in flight.
func (n *Node) checkMachine(p int) {
	steps, tokens := n.learner.Pending(p)
	if a := n.account(p); a.Pending != (outer.Work{Steps: uint64(steps), Tokens: tokens}) {
		n.broken("account", "fragment %d: the learner has %d steps and %d tokens pending, the machine %+v", p, steps, tokens, a)
	}
	learner, machine := n.learner.InFlight(p), n.machine.Rounds().Fragment(p).InFlight()
	if !slices.Equal(learner, machine) {
		n.broken("account", "fragment %d: the machine has own deltas %d in flight, the learner %d", p, machine, learner)
	}
}

// account is where the machine has the work of this life.
func (n *Node) account(p int) rounds.Account { return n.machine.Rounds().Fragment(p).Account() }
