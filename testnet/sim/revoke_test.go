package sim

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// revoking is an invited world of five in which the last node is revoked after a third of the run.
func revoking(more ...Fault) Scenario {
	s := calmScenario(5, 1000)
	invited(&s)
	s.Params.Fragments = 3
	s.Faults = append(s.Faults, Fault{At: 8_000, Kind: fault.Revoke, Node: 4})
	s.Faults = append(s.Faults, more...)
	return s
}

// From the round that a revocation names on, nothing of a member is folded, whatever happens to who
// hears of it when; what it made before stays. It learns of it, and ends.
func TestRevocation(t *testing.T) {
	for name, faults := range map[string][]Fault{
		"calm": nil,
		"a partition heals": {
			{At: 6_000, Kind: fault.Partition, Parts: [][]int{{0, 1}, {2, 3, 4}}}, {At: 12_000, Kind: fault.Merge},
		},
		"a node restarts":  {{At: 7_900, Kind: fault.Kill, Node: 2}, {At: 11_000, Kind: fault.Start, Node: 2}},
		"a power cut":      {{At: 8_200, Kind: fault.PowerCut, Node: 1}, {At: 9_000, Kind: fault.Start, Node: 1}},
		"one joins after":  {{At: 14_000, Kind: fault.Join}},
		"it was away":      {{At: 7_000, Kind: fault.Kill, Node: 4}, {At: 11_000, Kind: fault.Start, Node: 4}},
		"another one, too": {{At: 8_000, Kind: fault.Revoke, Node: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, revoking(faults...))
			w.Finish()
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
			who := w.nodes[4]
			if !who.gone {
				t.Error("who is revoked goes on")
			}
			if want := w.counts.Faults[fault.Revoke] * len(w.plan); w.counts.Revocations != want {
				t.Errorf("%d revocations in the ledger, %d were signed", w.counts.Revocations, want)
			}
			for _, n := range w.nodes {
				for p := range w.plan {
					if n.gone {
						continue
					}
					tip := n.machine.Rounds().Fragment(p).Tip()
					if !slices.ContainsFunc(tip.Revoked, func(r outer.Revoked) bool { return r.Name == who.id }) {
						t.Errorf("node %d: the tip of fragment %d does not know", n.index, p)
					}
				}
			}
			if before := who.inLedger(); before == 0 {
				t.Error("nothing that it made before is folded: this tests nothing")
			}
		})
	}
}

// inLedger counts the deltas of a node in the ledger of another.
func (n *Node) inLedger() (count int) {
	for _, folds := range n.w.folds(n.w.complete()) {
		for id := range folds {
			if n.w.checks.ledger[id].Author == n.id {
				count++
			}
		}
	}
	return count
}

// Random worlds keep every promise while members are revoked.
func TestRevokedSchedules(t *testing.T) {
	t.Parallel()
	revoked := 0
	for seed := range revokedSeeds() {
		s := Explore(seed)
		invited(&s)
		rng := rand.New(rand.NewPCG(seed, 9))
		for range 1 + rng.IntN(2) {
			s.Faults = append(s.Faults, Fault{At: 1 + rng.Int64N(max(s.CalmMs, 2)), Kind: fault.Revoke, Node: 1 + rng.IntN(len(s.Founders)-1)})
		}
		r := played(t, s)
		if r.Err != nil {
			t.Errorf("seed %d, with members revoked: %v", seed, r.Err)
		}
		revoked += r.Counts.Revocations
	}
	if revoked == 0 {
		t.Error("no ledger has a revocation")
	}
}

// revokedSeeds is how many random worlds TestRevokedSchedules plays.
func revokedSeeds() uint64 {
	if os.Getenv("ATOLL_LONG") != "" {
		return 1000
	}
	return 12
}
