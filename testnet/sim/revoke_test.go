package sim

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// revoking is an invited world of five in which the last node is revoked after a third of the run.
func revoking(more ...Fault) Scenario {
	s := calmScenario(5, 1000)
	s.Open = false
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
			w.RunUntil(Start+5_900, func() bool { return false })
			before := w.nodes[4].inLedgerOf(w.nodes[0])
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
			after := who.inLedgerOf(w.complete())
			if len(before) == 0 {
				t.Error("nothing that it made before is folded: this tests nothing")
			}
			for id := range before {
				if !after[id] {
					t.Errorf("%x, which it made before, is not folded any more", id[:4])
				}
			}
		})
	}
}

// A member that is revoked and goes on changes nothing. One that joins takes the names with its snapshot, and has the owner's words of its
// peers, so it has no session with the member either.
func TestRevokedGoesOn(t *testing.T) {
	s := revoking(Fault{At: 9_000, Kind: fault.Join}, Fault{At: 9_500, Kind: fault.Kill, Node: 1}, Fault{At: 10_000, Kind: fault.Start, Node: 1})
	s.Founders[4].Attack = Attack{Kind: Undead}
	w := newWorld(t, s)
	w.RunUntil(Start+s.LimitMs, func() bool {
		for _, n := range w.nodes {
			if n.liar == nil && !n.finished {
				return false
			}
		}
		return true
	})
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	who := w.nodes[4]
	if len(who.liar.signed) == 0 {
		t.Error("it signed nothing: this tests nothing")
	}
	for _, n := range w.nodes {
		if who.linked(n) {
			t.Errorf("node %d has a session with it", n.index)
		}
	}
	state := w.nodes[0].machine.Rounds().Fragment(0).Tip().State
	for _, n := range w.nodes {
		if got := n.machine.Rounds().Fragment(0).Tip().State; n.liar == nil && got != state {
			t.Errorf("node %d has state %x, node 0 %x", n.index, got[:4], state[:4])
		}
	}
	for reason, n := range w.checks.caught {
		t.Errorf("%d x %s: it was heard", n, reason)
	}
}

// One joins by a snapshot after a link was revoked, and is alone when a thief comes by that link. It knows that the link is revoked.
func TestNewcomerRefusesTheRevoked(t *testing.T) {
	s := revoking(Fault{At: 11_000, Kind: fault.Join}, Fault{At: 14_000, Kind: fault.Join, Spec: NodeSpec{Leaked: true}})
	s.Founders[4].Leaked = true
	s.Params.WindowAccept, s.Params.WindowUnion = 2, 4
	s.Faults[0].At = 4_000
	for i := range 4 {
		s.Faults = append(s.Faults, Fault{At: 13_500, Kind: fault.Kill, Node: i}, Fault{At: 15_500, Kind: fault.Start, Node: i})
	}
	w := newWorld(t, s)
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	newcomer, thief := w.nodes[5], w.nodes[6]
	if newcomer.Installs == 0 || thief.contacts[0] != newcomer.index {
		t.Fatalf("who joined took %d snapshots, and the link of the thief names %v: this tests nothing", newcomer.Installs, thief.contacts)
	}
	if why := w.refusals[pair{newcomer.index, thief.index}]; !thief.gone || !strings.Contains(why, "revoked") {
		t.Errorf("the thief is gone: %v; refused for %q", thief.gone, why)
	}
}

// One comes while the only node that its link can name is paused. That node is revoked, and hears of it after the faults.
// Who came gets another link, as it could never find the others.
func TestRevokedWasTheOnlyLink(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]NodeSpec{"a member comes": {}, "a guest comes": {Guest: true}} {
		t.Run(name, func(t *testing.T) {
			s := revoking(Fault{At: 6_500, Kind: fault.Pause, Node: 4}, Fault{At: 6_600, Kind: fault.Join, Spec: spec})
			for i := range 4 {
				s.Faults = append(s.Faults, Fault{At: 6_000, Kind: fault.Kill, Node: i}, Fault{At: 6_700, Kind: fault.Start, Node: i})
			}
			s.CalmMs = 10_000
			w := newWorld(t, s)
			w.RunUntil(Start+s.CalmMs-1, func() bool { return false })
			if who, came := w.nodes[4], w.nodes[5]; who.gone || !slices.Equal(came.contacts, []int{4}) {
				t.Fatalf("before the faults end it is gone: %v, and the link names %v", who.gone, came.contacts)
			}
			w.Finish()
		})
	}
}

// inLedgerOf are the deltas of a node that another has folded.
func (n *Node) inLedgerOf(from *Node) map[wire.Digest]bool {
	mine := map[wire.Digest]bool{}
	for _, folds := range n.w.folds(from) {
		for id := range folds {
			if n.w.checks.ledger[id].Author == n.id {
				mine[id] = true
			}
		}
	}
	return mine
}
