package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/testnet/fault"
)

// A value that changes in memory, in the tip of any fragment, is noticed before
// anything that comes of it is published. It is repaired with others, and alone from
// the node's own bases. Nobody sees another state meanwhile.
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

// dropped are the payloads that a node dropped, by id.
type dropped map[wire.Digest]core.StoreDelta

// drop drops the payloads that nobody can need any more. Own deltas that a restart
// reads stay.
func (n *Node) drop(gone dropped) {
	limit, own := make([]uint32, len(n.w.plan)), map[wire.Digest]bool{}
	records, _ := n.disk.Own() // which has no errors, as all here
	for _, o := range records {
		own[o.ID] = true
	}
	for p := range limit {
		limit[p] = n.machine.View().Droppable(p)
		_ = n.disk.Held(p, 0, func(id wire.Digest, h wire.SignedHeader) {
			if payload, err := n.disk.Payload(id); err == nil && h.Header.Round <= limit[p] && !own[id] {
				gone[id] = core.StoreDelta{ID: id, Header: &h, Payload: payload}
			}
		})
	}
	_, _ = n.disk.Retain(0, limit, own)
}

// Nodes that drop every payload as soon as they may lack none of them afterwards: not
// for a refold, a repair, a joiner, or a restart.
func TestPayloadsThatMayGo(t *testing.T) {
	t.Parallel()
	gone, refolds := 0, 0
	for seed := range Time(4) {
		s := calmScenario(4, 1200)
		narrow(&s)
		s.Seed, s.Link = uint64(seed), Link{LatencyMs: 60, JitterMs: 30, Loss: 0.1}
		s.Faults = []Fault{
			{At: 4000, Kind: fault.Partition, Others: []int{0}}, {At: 5500 + 700*seed, Kind: fault.Merge}, {At: 6000 + 700*seed, Kind: fault.Kill, Node: 1},
			{At: 8000 + 700*seed, Kind: fault.Start, Node: 1}, {At: 8000 + 700*seed, Kind: fault.Join},
		}
		w, all := newWorld(t, s), map[*Node]dropped{}
		w.Watch(100, func() {
			for _, n := range w.nodes {
				if all[n] == nil {
					all[n] = dropped{}
				}
				n.drop(all[n])
			}
		})
		w.until(t, "all finish with the same bits", s.LimitMs, func() bool { return w.now > Start+20_000 && w.allFinished() && w.same() })
		for _, n := range w.nodes {
			refolds, gone = refolds+n.Refolds, gone+len(all[n])
			if n.damage.repairs > 0 {
				t.Errorf("seed %d: node %d cannot read own deltas back", seed, n.index)
			}
			for _, d := range all[n] { // back, so that the ledger can be checked
				_ = n.disk.PutDelta(d.ID, d.Header, d.Payload)
			}
		}
		w.checkAtRest()
	}
	if gone == 0 || refolds == 0 {
		t.Errorf("%d payloads were dropped, %d refolds might miss them", gone, refolds)
	}
}
