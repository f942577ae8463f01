package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/testnet/fault"
)

// voters is a world in which n learners vote. Its union window is short, so that rounds are soon final.
func voters(n, steps int) Scenario {
	s := calmScenario(n, steps)
	s.Finality = true
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 8
	return s
}

// certified is the most certificates that nodes have, and the least that those have who are up.
func (w *World) certified() (least, most uint32) {
	least = ^uint32(0)
	for _, n := range w.alive() {
		v, _ := n.machine.Gossip().Finals()
		least, most = min(least, v.Certified), max(most, v.Certified)
	}
	return least, most
}

// Rounds are certified as they become final, and all nodes have the certificates.
func TestCertifies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, voters(4, 1500))
	w.Finish()
	least, most := w.certified()
	t.Logf("%d rounds, %d to %d certificates\n%s", w.closed(), least, most, w)
	if most < 4 || most-least > 1 {
		t.Fatalf("%d to %d certificates", least, most)
	}
	for _, n := range w.nodes {
		if v, _ := n.machine.Gossip().Finals(); v.BorneOut != wire.BearsYes || v.Voters != 4 {
			t.Errorf("node %d: %+v", n.index, v)
		}
	}
}

var _ = fault.Kill
