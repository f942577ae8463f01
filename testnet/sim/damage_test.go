package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/testnet/fault"
)

// A value that changes in memory, in the tip of any fragment, is noticed before
// anything that comes of it is published, and repaired: with others, and alone from the
// node's own bases. Nobody sees another state meanwhile.
func TestChangedMemoryIsRepaired(t *testing.T) {
	t.Parallel()
	for p, learners := range []int{3, 3, 3, 1} {
		s := calmScenario(learners, 500*learners)
		s.Seed, s.Faults = 50+uint64(p), []Fault{{At: 4000, Kind: fault.Corrupt, Node: learners - 1, Factor: int64(p % 3)}}
		w := newWorld(t, s)
		w.Finish()
		for _, n := range w.nodes {
			if bad := n.index == learners-1; bad != (n.damage.repairs > 0) || learners == 1 && n.damage.repairs != 1 || len(n.damage.verdicts) > 0 {
				t.Errorf("fragment %d of %d learners: node %d repaired %d times, judged %+v", p%3, learners, n.index, n.damage.repairs, n.damage.verdicts)
			}
		}
	}
}

// drop drops the payloads that nobody can need any more. Own deltas that a restart
// reads stay.
func (n *Node) drop() int {
	limit, own := make([]uint32, len(n.w.plan)), map[wire.Digest]bool{}
	for p := range limit {
		limit[p] = n.machine.Droppable(p)
	}
	records, _ := n.disk.Own() // which has no errors
	for _, o := range records {
		own[o.ID] = true
	}
	kept, _ := n.disk.Retain(0, limit, own) // neither
	return kept.Dropped
}

// Nodes that drop every payload as soon as they may lack none of them afterwards: not
// for a refold, a repair, a joiner, or a restart. The first one keeps all, to be
// checked.
func TestPayloadsThatMayGo(t *testing.T) {
	t.Parallel()
	dropped, refolds := 0, 0
	for seed := range Time(4) {
		s := calmScenario(4, 1200)
		narrow(&s)
		s.Seed, s.Link = uint64(seed), Link{LatencyMs: 60, JitterMs: 30, Loss: 0.1}
		s.Faults = []Fault{
			{At: 4000, Kind: fault.Partition, Others: []int{2}}, {At: 5500 + 700*seed, Kind: fault.Merge}, {At: 6000 + 700*seed, Kind: fault.Kill, Node: 1},
			{At: 8000 + 700*seed, Kind: fault.Start, Node: 1}, {At: 8000 + 700*seed, Kind: fault.Join},
		}
		w := newWorld(t, s)
		w.Watch(20, func() {
			for _, n := range w.nodes[1:] {
				dropped += n.drop()
			}
		})
		w.Finish()
		for _, n := range w.nodes {
			refolds += n.Refolds
			if n.damage.repairs > 0 {
				t.Errorf("seed %d: node %d cannot read own deltas back", seed, n.index)
			}
		}
	}
	if dropped == 0 || refolds == 0 {
		t.Errorf("%d payloads were dropped, %d refolds might miss them", dropped, refolds)
	}
}
