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

// leaking is a world of members in which so many more came by an invite that was meant for one, and lie.
func leaking(seed uint64, keys int, a Attack) Scenario {
	s := membersWorld(seed, leakedKeys+keys)
	invited(&s)
	for i := range keys {
		s.Founders[leakedKeys+i].Leaked, s.Founders[leakedKeys+i].Attack = true, a
	}
	return s
}

// An invite for one node that has leaked, and by which as many come as are honest, costs the others no more than the
// bar of lying members allows: together they have the weight and the voice of one.
func TestLeakedInvite(t *testing.T) {
	without := map[uint64][]float64{}
	var table strings.Builder
	for _, m := range memberTests {
		t.Run(m.name, func(t *testing.T) {
			if testing.Short() && m.attack.Kind != Noise {
				t.Skip("one lie is enough here")
			}
			cost := math.NaN()
			for seed := range mergeSeeds() {
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
			switch over := !(cost <= mostMemberly); { // true for NaN
			case over && m.wins == "":
				t.Errorf("the loss is %.3g times what it is without them, at most %g times", cost, mostMemberly)
			case !over && m.wins != "":
				t.Errorf("does not win any more: take away `wins: %q`", m.wins)
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

// leakedHonest are the nodes of a world of floods that do not lie; the last of them came by the leaked invite.
const leakedHonest = 5

// flooding is a world in which one more came by an invite that was meant for one, who is there, and beats with so many keys.
func flooding(keys int) Scenario {
	s := Small(leakedHonest+1, 40, nil, attackSeed)
	invited(&s)
	s.Founders[leakedHonest-1].Leaked = true
	s.Founders[leakedHonest] = NodeSpec{Leaked: true, Observer: true}
	if keys > 0 {
		s.Founders[leakedHonest].Attack = Attack{Kind: FreshBeats, Times: float64(keys), From: 3000}
	}
	return s
}

// A leaked invite for one lets in keys without end, and all beat no more often than honest nodes do. Together they may say what
// one node may, so four times as many keys are no louder. Whoever the invite was for loses nothing.
func TestLeakedInviteFlood(t *testing.T) {
	var messages [3]float64
	for i, keys := range []int{0, 50, 200} {
		w := newWorld(t, flooding(keys))
		w.Finish()
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		messages[i] = float64(w.counts.Messages) / float64(w.now-Start)
		var silent int
		t.Logf("rounds %d loss %g honest %d other %d caught %v silent %d", w.leastClosed(), Loss(w.Anchors()), len(w.nodes[leakedHonest-1].inLedgerOf(w.nodes[0])), len(w.nodes[0].inLedgerOf(w.nodes[0])), w.checks.caught, silent)
		of := 0
		t.Logf("%d keys: %.2f messages a ms in %d ms, %v", keys, messages[i], w.now-Start, of)
	}
}
