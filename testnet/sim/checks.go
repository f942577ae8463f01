package sim

import (
	"math/bits"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// checks is what the world knows by means of its own, to hold nodes against.
type checks struct {
	states  map[chainKey]outer.Digest    // what folding a chain came to
	signed  map[slot]wire.Digest         // every header that a node made durable
	ledger  map[wire.Digest]*wire.Header // likewise, by id
	revoked []revocation
	faulty  map[wire.PeerID]bool // whom honest nodes may blame
	calmed  Time                 // 0 before the faults ended
	rounds  uint32               // closed by the most advanced node then
	agreed  Time                 // when all nodes showed one chain after that, 0 before
	took    uint32               // rounds closed from calm until then
	caught  map[string]int       // what honest nodes said of liars, and how often
	ending  bool                 // a learner has stopped
	proven  map[wire.PeerID]bool // authors of deltas that came to others
	unsure  []*Node              // whose deltas had come to nobody when the first learner stopped
	told    map[*Node][]string   // what nodes said of their ways in and out
	spoilt  map[chainKey]spoilt  // rounds that closed while a liar spoiled its deltas
	misled  map[chainKey]uint32  // rounds of whatever chain that lies swayed, unjudged, and the base of the last honest delta made on them
}

type chainKey struct {
	fragment int
	round    uint32
	chain    outer.Digest
}

// slot is what an author may sign once.
type slot struct {
	author   wire.PeerID
	fragment uint16
	round    uint32
}

func newChecks() checks {
	return checks{
		states: map[chainKey]outer.Digest{}, signed: map[slot]wire.Digest{},
		ledger: map[wire.Digest]*wire.Header{}, faulty: map[wire.PeerID]bool{}, caught: map[string]int{}, proven: map[wire.PeerID]bool{}, told: map[*Node][]string{},
		spoilt: map[chainKey]spoilt{}, misled: map[chainKey]uint32{},
	}
}

// ends records that a learner has stopped, and whose claims others had no reason to count then.
func (c *checks) ends(w *World) {
	if c.ending {
		return
	}
	c.ending = true
	for _, n := range w.nodes {
		if !c.proven[n.id] {
			c.unsure = append(c.unsure, n)
		}
	}
}

// checkSigned: no author signs a round twice, whatever happened to it. A key that
// lost its disk may, where nobody is left who knows of the first delta.
func (w *World) checkSigned(n *Node, id wire.Digest, sh wire.SignedHeader) {
	k := slot{sh.Header.Author, sh.Header.Fragment, sh.Header.Round}
	if old, ok := w.checks.signed[k]; ok && old != id && !(n.wiped && w.forgotten(old)) {
		n.broken("signs once", "signed round %d of fragment %d twice", k.round, k.fragment)
	}
	h := sh.Header
	w.checks.signed[k], w.checks.ledger[id] = id, &h
	if n.liar != nil {
		n.liar.claimed[h.Fragment] += h.Tokens
	}
	w.history.bytes(id[:])
}

// revocation is an owner's signed statement, and what of its author's was folded then by the node that spread it.
type revocation struct {
	header   *wire.Header
	by       *Node
	installs int           // snapshots that this node had taken
	before   []wire.Digest // of rounds before the one that the statement names
}

// revokes records a revocation, which is in the ledger as any delta.
func (c *checks) revokes(by *Node, sh wire.SignedHeader) {
	h := sh.Header
	r := revocation{header: &h, by: by, installs: by.Installs}
	for round := uint32(1); round < h.Round; round++ {
		record, _ := by.disk.Record(int(h.Fragment), round)
		for _, id := range record.Folded {
			if by.w.door.names(h.Certificate, c.ledger[id].Author) {
				r.before = append(r.before, id)
			}
		}
	}
	c.ledger[h.ID(by.w.run)] = &h
	c.revoked = append(c.revoked, r)
}

// checkRevoked: where the ledger of a fragment has a revocation, it has nothing of who is revoked from
// that round on, and all that a node had folded before, unless it took a snapshot since.
func (w *World) checkRevoked(p int, folds map[wire.Digest]bool) {
	for _, r := range w.checks.revoked {
		if int(r.header.Fragment) != p || !folds[r.header.ID(w.run)] {
			continue
		}
		w.counts.Revocations++
		for id := range folds {
			if h := w.checks.ledger[id]; w.door.names(r.header.Certificate, h.Author) && h.Round >= r.header.Round {
				w.broken("revoked", "fragment %d folds a delta of round %d of an author that is revoked from round %d on", p, h.Round, r.header.Round)
			}
		}
		if !r.by.up || r.by.Installs != r.installs {
			continue
		}
		for _, id := range r.before {
			if !folds[id] {
				w.broken("revoked", "fragment %d does not fold %x of round %d any more, whose author is revoked from round %d on", p, id[:4], w.checks.ledger[id].Round, r.header.Round)
			}
		}
	}
}

// checkParted: nobody has a session any more with who is revoked, whenever it came.
func (w *World) checkParted() {
	for _, r := range w.checks.revoked {
		for _, n := range w.nodes {
			for _, p := range n.links {
				if n.liar == nil && w.door.names(r.header.Certificate, p.id) {
					n.broken("revoked", "has a session with node %d, which is revoked", p.index)
				}
			}
		}
	}
}

// waitedFor says that a name is no guest's.
func (w *World) waitedFor(id wire.PeerID) bool { return w.byID[id] == nil || !w.byID[id].spec.Guest }

// forgotten says that no node knows of a delta, except nodes that are gone for
// good. Nobody can tell its author, and nobody can be misled.
func (w *World) forgotten(id wire.Digest) bool {
	return !slices.ContainsFunc(w.nodes, func(p *Node) bool { return !p.gone && p.knowsOf(id) })
}

// knowsOf says that the node has a delta on its disk, or has heard of it.
func (n *Node) knowsOf(id wire.Digest) bool {
	return n.disk.Holds(id) || n.up && n.heard[id]
}

// checkFold: its author published what is folded for this round, with the bytes
// that it signed, and one chain has one state on all nodes.
func (w *World) checkFold(n *Node, p int, tip *outer.Tip, set int, folded []outer.ID) {
	if n.damage.befell {
		return
	}
	for _, id := range folded {
		h := w.checks.ledger[wire.Digest(id)]
		switch {
		case h == nil:
			n.broken("verified", "folded %x, which nobody published", id[:6])
		case int(h.Fragment) != p || h.Round != tip.Round:
			n.broken("verified", "folded %x of fragment %d round %d into fragment %d round %d", id[:6], h.Fragment, h.Round, p, tip.Round)
		case !w.s.Lean && !n.disk.Signed(wire.Digest(id), h):
			n.broken("verified", "folded %x with other bytes than were signed", id[:6])
		}
	}
	if len(folded) > set {
		n.broken("verified", "folded %d deltas of a set of %d", len(folded), set)
	}
	key := chainKey{p, tip.Round, tip.Chain}
	if state, ok := w.checks.states[key]; ok && state != tip.State {
		n.broken("equal sets, equal bits", "fragment %d round %d: chain %x came to state %x here and %x elsewhere",
			p, tip.Round, tip.Chain[:4], tip.State[:4], state[:4])
	}
	w.checks.states[key] = tip.State
}

// localSlack is what float32 rounding makes of local parameters over a run; a delta that is
// counted twice or never is a thousand times that.
const localSlack = 1e-3

// checkLocal: local parameters are A + sum s q + U after each adoption, and the accounts of machine
// and learner have every token of this life.
func (w *World) checkLocal(n *Node, a outer.Adopt, repaired bool) {
	if n.oracle != nil {
		s := n.oracle[a.Fragment]
		s.Adopted(a, repaired)
		if off := s.Off(n.trainer.Params()); off > localSlack {
			n.broken("local parameters", "those of fragment %d are %g off A + sum q + U after round %d", a.Fragment, off, a.Tip.Round)
		}
	}
	if n.liar != nil {
		return // what it claims is not what it made
	}
	made := n.book.base[a.Fragment] + n.book.trained - n.book.before
	if total := n.account(a.Fragment).Total().Tokens; total != made {
		n.broken("account", "fragment %d: the machine accounts for %d tokens of %d", a.Fragment, total, made)
	}
	n.checkWork(a.Fragment)
}

// checkWhole: every fragment is taken of a chain that is taken instead of the own one;
// stitched fragments are a broken model.
func (w *World) checkWhole(n *Node, tips []*outer.Tip) {
	for p, tip := range tips {
		if own := n.machine.Rounds().Fragment(p).Tip(); own != tip {
			n.broken("whole", "took a snapshot of another chain and stays with round %d of fragment %d, not round %d of theirs", own.Round, p, tip.Round)
		}
	}
}

// checkTaken: own deltas folded on a chain that is left do not come back with a snapshot
// of the other one, up to their rounds: the winners made something else of these.
func (w *World) checkTaken(n *Node, a outer.Adopt) {
	if n.taken == nil || a.Tip != n.taken[a.Fragment] {
		return
	}
	n.taken[a.Fragment] = nil
	for _, id := range n.disk.OwnIDs(a.Seqs(outer.Unfolded)) {
		if h := w.checks.ledger[id]; h.Round <= a.Tip.Round {
			n.broken("whole", "has the delta of fragment %d round %d back from a chain that lost, with a snapshot of round %d", a.Fragment, h.Round, a.Tip.Round)
		}
	}
}

// checkLeft: a node that leaves others that train has handed over what it published. What
// nobody else has is gone with it. What it folded long ago, or in an earlier life, came to
// others with a snapshot. It waits for no guest.
func (w *World) checkLeft(n *Node) {
	r, kept := n.machine.Rounds(), 0
	for id, o := range n.book.own {
		if o.handed || o.fate != current {
			continue
		}
		round := w.checks.ledger[id].Round
		l, known := r.Fragment(o.fragment).Link(round)
		folded := round <= r.Fragment(o.fragment).Closed() && (!known || slices.Contains(l.Folded, outer.ID(id)))
		if !folded || n.clock()-o.at < w.s.Params.GraceMaxMs {
			kept++
		}
	}
	// What is yet to be adopted may have given them up.
	if kept > 0 && len(n.commands) == 0 && slices.ContainsFunc(n.machine.Gossip().Peers().Learners(n.clock()), w.waitedFor) {
		n.broken("leaves", "goes with %d own deltas that nobody took", kept)
	}
}

// checkBegins: no node begins the run anew while it is connected to a member that holds more than genesis, or hears one. Who misled it
// may have proved wrong. Nor does it before one that its link names was connected.
func (w *World) checkBegins(n *Node) {
	for _, v := range n.machine.Gossip().Peers().All() {
		p := w.byID[v.ID]
		heard := v.Heard && !v.Silent && (v.Connected || v.Heartbeat != nil)
		if !heard || p == nil || !p.up || p.spec.Guest || p.machine.View().FoldedTokens() == 0 || p.liar != nil && p.liar.misled[n] {
			continue
		}
		n.broken("begins", "begins the run anew beside node %d, which folded %d tokens", p.index, p.machine.View().FoldedTokens())
	}
	if !n.founder && !n.answered {
		n.broken("begins", "begins the run anew before anybody whom its link names was connected")
	}
}

// checkBlame: honest nodes refuse nothing of each other and find no fault.
func (w *World) checkBlame(n *Node, event any) {
	switch e := event.(type) {
	case gossip.Misbehaved:
		w.checks.catch(n, e.Peer, e.Reason)
		if !w.checks.faulty[e.Peer] {
			n.broken("blame", "thinks that node %d misbehaves: %s", w.byID[e.Peer].index, e.Reason)
		}
	case gossip.StateDiffers:
		if w.checks.faulty[e.Peer] || n.damage.befell {
			return
		}
		n.broken("equal sets, equal bits", "node %d has another state on one chain", w.byID[e.Peer].index)
	case core.Verdict:
		n.damage.verdicts = append(n.damage.verdicts, e)
		if w.checks.faulty[e.Peer] && !e.Own || n.damage.befell {
			return
		}
		n.broken("equal sets, equal bits", "blames node %d or itself (%v) for the state of fragment %d", w.byID[e.Peer].index, e.Own, e.Fragment)
	case core.Refused:
		w.checks.catch(n, e.Header.Author, e.Reason.Error())
		if !w.checks.faulty[e.Header.Author] {
			n.broken("blame", "refused a delta: %v", e.Reason)
		}
	}
}

// Limits of what a node may have open at a time. The cores' own constants add up
// to less.
const (
	maxCalls   = 128  // pulls 64, chunks 16, repairs 3, and one peer list for each peer
	maxWaiting = 2048 // parked 1024, and answers on their way
)

// checkEvery is how many ticks pass between two looks at a node's queues. sizesEvery is
// the same for the queues that its cores count: that takes longer, and they do not empty
// within a tick.
const (
	checkEvery = 8
	sizesEvery = 4 * checkEvery
)

// checkTick: queues are within their constants, and a learner that is in steps,
// unless the tokens for the whole budget exist.
func (w *World) checkTick(n *Node) {
	n.ticks++
	if n.ticks%checkEvery != 0 {
		return
	}
	if len(n.calls) > maxCalls+len(n.links) {
		n.broken("bounds", "%d requests wait for an answer", len(n.calls))
	}
	if len(n.waiting) > maxWaiting {
		n.broken("bounds", "%d requests of others wait", len(n.waiting))
	}
	if n.ticks%sizesEvery == 0 {
		n.machine.Sizes(n.checkSize)
	}
	bases := 2*bits.Len32(w.s.Params.WindowUnion) + 8 // two for each doubling of the window, and the bases of a fold under way
	for p := range w.plan {
		if got := n.replica.KeptBases(p); got > bases {
			n.broken("bounds", "keeps %d bases of fragment %d, at most %d are of use", got, p, bases)
		}
	}
	w.checkIdle(n)
	w.looksAtPlan(n)
}

func (n *Node) checkSize(what string, count, most int) {
	if count > most {
		n.broken("bounds", "%d %s, at most %d are allowed", count, what, most)
	}
}

// A learner may stand still on claims of others that then do not come true for as long as their silence and the
// doubt after it last: idleHeartbeats of its heartbeat periods, and idleMs in any case. It takes time to doubt them while it
// runs only: for as long as its process is paused its clock stands still. A learner that comes back and may not sign
// yet (L-4) does not wait for others: it has made what is missing.
const (
	idleHeartbeats = 20
	idleMs         = 30_000
)

func (w *World) checkIdle(n *Node) {
	r := n.machine.Rounds()
	idle := !n.spec.Observer && n.machine.View().Phase() == core.Ready && !n.may && !n.left && !n.machine.View().Paused() && !n.machine.View().ComesBack() && !r.Excluded(n.id) && !r.Status().Ended
	if !idle {
		n.idleFrom = 0
		return
	}
	awake := w.now - n.slept
	if n.idleFrom == 0 {
		n.idleFrom = awake
	}
	made := w.made()
	if made >= w.s.Params.Budget {
		n.idleFrom = awake // after a node discards what it made the others step again
		return
	}
	n.idle += checkEvery * w.s.TickMs
	if awake-n.idleFrom > max(idleMs, idleHeartbeats*n.machine.Gossip().HeartbeatPeriodMs()) {
		n.broken("no wait", "stands still for %d ms, though only %d tokens of %d were ever made", awake-n.idleFrom, made, w.s.Params.Budget)
	}
}

// made are the tokens of the fragment that has the fewest: trained by members, and not known
// to be lost. What guests make is no part of the budget.
func (w *World) made() uint64 {
	least := ^uint64(0)
	for p := range w.plan {
		var sum uint64
		for _, n := range w.members() {
			if n.liar != nil {
				sum += n.liar.claimed[p]
				continue
			}
			sum += n.book.trained - n.book.lost[p] - n.book.gone[p]
			if n.up {
				sum -= n.account(p).Discarded.Tokens
			}
		}
		least = min(least, sum)
	}
	return least
}

// calm records that the faults have ended, and begins to look for one chain.
func (c *checks) calm(w *World) {
	c.calmed, c.rounds = w.now, w.closed()
	w.lookForAgreement()
}

// agreeEveryMs is the time between two looks at whether all nodes agree.
const agreeEveryMs = 100

func (w *World) lookForAgreement() {
	if w.oneChain() {
		closed := w.closed() // the chain that won may be the shorter one
		w.checks.agreed, w.checks.took = w.now, closed-min(closed, w.checks.rounds)
		return
	}
	w.after(agreeEveryMs, w.lookForAgreement)
}

// closed is how many rounds of fragment 0 the most advanced node has closed.
func (w *World) closed() (most uint32) {
	for _, n := range w.alive() {
		most = max(most, n.machine.Rounds().Fragment(0).Closed())
	}
	return most
}

// agreeLag is how many rounds behind the last one that all closed the chains are
// compared: as a heartbeat's digest, as the newest deltas are still on their way.
const agreeLag = 2

// oneChain says whether all nodes that are in have one chain up to the last
// rounds that all of them closed.
func (w *World) oneChain() bool { return w.oneChainOf(w.alive()) }

func (w *World) oneChainOf(nodes []*Node) bool {
	for p := range w.plan {
		common := ^uint32(0)
		for _, n := range nodes {
			if n.machine.View().Phase() != core.Ready {
				return false
			}
			common = min(common, n.machine.Rounds().Fragment(p).Closed())
		}
		common -= min(common, agreeLag)
		var chain outer.Digest
		for i, n := range nodes {
			l, ok := n.machine.Rounds().Fragment(p).Link(common)
			if !ok || i > 0 && l.Chain != chain {
				return false
			}
			chain = l.Chain
		}
	}
	return true
}
