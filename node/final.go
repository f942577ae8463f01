package node

import (
	"encoding/hex"
	"fmt"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/wire"
	"atoll/node/status"
)

// finalStatus is how far what is final got, nil in a run whose nodes do not vote.
func (n *node) finalStatus() *status.Final {
	v, votes := n.machine.Gossip().Finals()
	if !votes {
		return nil
	}
	s := &status.Final{Certificates: v.Certified, Waiting: v.Pending, Voters: v.Voters, Votes: v.Votes, View: v.View, First: n.firstFinal()}
	if v.Last != nil {
		s.Round = v.Last.Value.Round
		s.OtherChain = v.BorneOut == wire.BearsNo
	}
	for p := range n.plan {
		if closed := n.machine.Rounds().Fragment(p).Closed(); closed > s.Round {
			s.Behind = max(s.Behind, closed-s.Round)
		}
	}
	for _, id := range v.Silent {
		s.Silent = append(s.Silent, hex.EncodeToString(id[:]))
	}
	return s
}

// firstFinal is the round that has to close before anything is certified.
func (n *node) firstFinal() uint32 {
	window := n.genesis.Outer.WindowUnion
	return window + finality.Every(window)
}

// votedTwice tells of a voter that lies.
func (n *node) votedTwice(e gossip.VotedTwice) {
	a := e.Proof.A
	n.view.event(n, "final", a.Author.String(), fmt.Sprintf("signed two different votes (%v, height %d, view %d): its votes count here no more", a.Phase, a.Height, a.View))
}
