package sim

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"atoll/testnet/fault"
)

// leakedKeys are as many liars as there are honest learners in a world of members.
const leakedKeys = members - lyingMembers

// mostOfCopies is what six that copy the deltas of six may cost. The worst of five seeds is 1.19, where copies have their
// norm of noise.
const mostOfCopies = 1.2

// leaking is a world of members in which so many more came by an invite that was meant for one, and lie.
func leaking(seed uint64, keys int, a Attack) Scenario {
	s := membersWorld(seed, leakedKeys+keys)
	for i := range keys {
		s.Founders[leakedKeys+i].Leaked, s.Founders[leakedKeys+i].Attack = true, a
	}
	return s
}

// An invite for one node that has leaked, and by which as many come as are honest, costs the others no more than the
// bar of lying members allows: together they have the weight of one and are one reference.
func TestLeakedInvite(t *testing.T) {
	without := map[uint64][]float64{}
	var table strings.Builder
	for _, m := range memberTests {
		t.Run(m.name, func(t *testing.T) {
			if !longMode() && m.attack.Kind != Noise {
				t.Skip("ATOLL_LONG=1 runs it")
			}
			cost := math.NaN()
			for seed := range lossSeeds() {
				if without[seed] == nil {
					without[seed] = curve(t, leaking(seed+1, 0, Attack{}))
				}
				var logs []float64
				for i, loss := range curve(t, leaking(seed+1, leakedKeys, m.attack)) {
					if i > 0 {
						logs = append(logs, math.Log(loss/without[seed][i]))
					}
				}
				if of := math.Exp(meanOf(logs)); !(of <= cost) {
					cost = of
				}
			}
			fmt.Fprintf(&table, "| %s | %.3g |\n", m.name, cost)
			most := mostMemberly
			if m.attack.Kind == Copy {
				most = mostOfCopies
			}
			if !(cost <= most) { // true for NaN
				t.Errorf("the loss is %.3g times what it is without them, at most %g times", cost, most)
			}
		})
	}
	t.Logf("%d keys of a leaked invite for one beside %d honest learners: times the loss without them, worst seed\n| lie | loss |\n%s", leakedKeys, leakedKeys, table.String())
}

// Once the owner revokes a leaked invite nothing of whoever came by it is folded, from the named round on, whether they
// go on or not, and the others end as one.
func TestLeakedInviteIsRevoked(t *testing.T) {
	for _, a := range []Attack{{}, {Kind: Undead}, {Kind: SignFlip, Times: 1}} {
		t.Run(string(a.Kind), func(t *testing.T) {
			s := revoking()
			s.Founders = append(s.Founders, NodeSpec{}, NodeSpec{})
			for i := 4; i < len(s.Founders); i++ {
				s.Founders[i].Leaked, s.Founders[i].Attack = true, a
			}
			w := newWorld(t, s)
			w.RunUntil(Start+s.LimitMs, func() bool {
				for _, n := range w.nodes[:4] {
					if !n.finished {
						return false
					}
				}
				return true
			})
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
			if w.counts.Faults[fault.Revoke] != 1 {
				t.Fatalf("%d revocations", w.counts.Faults[fault.Revoke])
			}
			for p := range w.plan {
				w.checkRevoked(p, w.folds(w.nodes[0])[p])
			}
			if w.Err() != nil || w.counts.Revocations < len(w.plan) {
				t.Errorf("%v; %d revocations in the ledger", w.Err(), w.counts.Revocations)
			}
			for _, n := range w.nodes[4:] {
				if a.Kind == "" && !n.gone {
					t.Errorf("node %d, who came by the invite, goes on", n.index)
				}
				if len(n.inLedgerOf(w.nodes[0])) == 0 {
					t.Errorf("nothing of node %d was folded before: this tests nothing", n.index)
				}
			}
		})
	}
}

// invitedFlood plays a world in which one more came by an invite that was meant for one, who is there, and sends heartbeats with so many keys.
// It counts the messages that honest nodes send in a second, and the deltas folded of whoever the invite was for.
func invitedFlood(t *testing.T, keys int) (sent float64, folded int) {
	s := Small(honestNodes+1, 12, nil, attackSeed)
	s.Founders[honestNodes-1].Leaked = true
	s.Founders[honestNodes] = NodeSpec{Leaked: true, Observer: true}
	if keys > 0 {
		s.Founders[honestNodes].Attack = Attack{Kind: FreshHeartbeats, Times: float64(keys), From: 3000}
	}
	w := newWorld(t, s)
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	messages := w.counts.Messages
	if l := w.nodes[honestNodes].liar; l != nil {
		messages -= l.acted * len(l.keys) * len(l.n.links)
	}
	return float64(messages) / float64(w.now-Start) * 1000, len(w.nodes[honestNodes-1].inLedgerOf(w.nodes[0]))
}

// A leaked invite for one lets in keys without end, each of which sends heartbeats no more often than an honest node. Together they may
// say what one node may, so four times as many keys have others send no more. Whoever the invite was for loses nothing.
func TestLeakedInviteFlood(t *testing.T) {
	if !longMode() {
		t.Skip("takes seconds: ATOLL_LONG=1 runs it")
	}
	const most = 2 // times what honest nodes send without the flood: a node may send eight heartbeats a period, and six are here
	calm, folded := invitedFlood(t, 0)
	few, _ := invitedFlood(t, 50)
	many, left := invitedFlood(t, 200)
	if many > most*calm || many > 1.1*few {
		t.Errorf("%.0f messages a second with 200 keys, %.0f with 50, %.0f without", many, few, calm)
	}
	if left < folded*9/10 {
		t.Errorf("%d deltas folded of whoever the invite was for, %d without the flood", left, folded)
	}
}
