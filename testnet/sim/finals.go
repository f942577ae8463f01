package sim

import (
	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// voteStepMs is the step of a voter, ten times shorter than a real run's.
const voteStepMs = 500

// finals are what the world knows to be certified: the certificates that honest nodes have, by height.
type finals struct {
	list []finality.Certificate
}

// voting is how a node votes, in one life.
type voting struct {
	gate *finality.Gate
}

// votes is what a node needs to vote, nil in a world without finality.
func (n *Node) votes() *core.Finality {
	if !n.w.s.Finality {
		return nil
	}
	n.gate = finality.NewGate(n.id, voteStepMs)
	return &core.Finality{StepMs: voteStepMs, Gate: n.gate}
}

// passes reports whether a message goes on, as a validator does.
func (n *Node) passes(m wire.Message) bool {
	return m.Vote == nil || n.gate != nil && n.gate.Pass(n.clock(), m.Vote.Vote)
}

// checkCertified: of one height there are no two certificates with different values at honest nodes, and each
// follows from the one before.
func (w *World) checkCertified(n *Node, c finality.Certificate) {
	if n.liar != nil {
		return
	}
	known := &w.checks.finals.list
	if int(c.Height) < len(*known) {
		if d := (*known)[c.Height].Value.Digest(w.run); d != c.Value.Digest(w.run) {
			n.broken("final", "has another certificate of height %d than others", c.Height)
		}
		return
	}
	var before *finality.Certificate
	if len(*known) > 0 {
		before = &(*known)[len(*known)-1]
	}
	if err := c.Verify(w.run, before); err != nil {
		n.broken("final", "%v", err)
		return
	}
	*known = append(*known, c)
	w.history.bytes(c.Encode())
}

// checkVotedTwice: no honest voter signs two votes of one phase and view, whatever happened to it.
func (w *World) checkVotedTwice(n *Node, d finality.DoubleVote) {
	if err := d.Check(w.run); err != nil {
		n.broken("final", "%v", err)
	}
	author := d.A.Author
	w.checks.catch(n, author, "voted twice")
	if !w.checks.faulty[author] && !w.nodes[w.byID[author].index].wiped {
		n.broken("votes once", "node %d signed %+v and %+v", w.byID[author].index, d.A.Vote, d.B.Vote)
	}
}

// bears notes how many certificates the own chain was found to go through.
func (n *Node) bears() {
	v, any := n.machine.Gossip().Finals()
	if any && v.Last != nil && v.BorneOut == wire.BearsYes {
		n.borne = max(n.borne, v.Last.Height+1)
	}
}

// checkFinal: once a node's chain went through a certificate its rounds are what the certificate says, whatever is
// folded again.
func (n *Node) checkFinal(p int, l outer.Link) {
	if n.liar != nil {
		return
	}
	n.bears()
	for _, c := range n.w.checks.finals.list[:min(int(n.borne), len(n.w.checks.finals.list))] {
		if at := c.Value.Points[p]; at.Round == l.Round && at.Chain != wire.Digest(l.Chain) {
			n.broken("final", "round %d of fragment %d is certified by height %d, and has another chain here", l.Round, p, c.Height)
		}
	}
}

// checkRecords does so for all rounds that the disk has.
func (n *Node) checkRecords() {
	for p := range n.w.plan {
		for _, c := range n.w.checks.finals.list {
			if l, known := n.disk.Record(p, c.Value.Points[p].Round); known {
				n.checkFinal(p, l)
			}
		}
	}
}

// sayTwoVotes adds to each own vote another one of that phase and view: none in place of a value, and a value that
// nobody has in place of none.
func sayTwoVotes(l *liar, m wire.Message) bool {
	if m.Vote == nil || m.Vote.Author != l.n.id {
		return false
	}
	v := m.Vote.Vote
	if v.Phase != wire.Propose && v.Round > 0 {
		v.Round, v.Value = 0, wire.Digest{}
	} else {
		v.Round, v.Value = max(v.Round, 1), wire.Sum(v.Value[:])
	}
	l.tell(wire.EncodeVote(*m.Vote), evenHalf)
	l.tell(wire.EncodeVote(wire.SignVote(l.n.key, l.n.w.run, v)), oddHalf)
	return true
}

// sawVotes takes an event about votes.
func (n *Node) sawVotes(event any) {
	switch e := event.(type) {
	case gossip.Certified:
		n.w.checkCertified(n, e.Certificate)
		n.bears()
	case gossip.VotedTwice:
		n.w.checkVotedTwice(n, e.Proof)
	}
}
