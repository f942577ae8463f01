package core_test

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// offByOne is the tip that a machine comes to that miscalculates: sealed, so it
// looks sound.
func (w *world) offByOne(tip *outer.Tip, fragment int) *outer.Tip {
	bad := *tip
	bad.Anchor = slices.Clone(tip.Anchor)
	bad.Anchor[0] += 1
	wrong, err := outer.DecodeTip(bad.Encode(), w.plan[fragment], w.cfg.params)
	if err != nil {
		w.fatalf("%v", err)
	}
	return wrong
}

// A fold that comes out wrong on one node is noticed by the beats, blamed on
// that node by itself and by the others, and healed: all end with the same bits.
func TestMiscalculationIsFoundAndHealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 41, worldConfig{params: budgetOf(2000)})
	w.found(4)
	w.runFor(5000)
	bad := w.nodes[2]
	w.damages, bad.miscalculates = true, true
	w.runUntil("the wrong state is healed", 10_000, func() bool { return bad.heals > 0 })
	w.finish(patience)
	if n := len(bad.verdicts); n == 0 || !bad.verdicts[0].Own {
		t.Errorf("the node that was wrong judged %+v", bad.verdicts)
	}
	for _, n := range w.nodes {
		if n == bad {
			continue
		}
		for _, v := range n.verdicts {
			if v.Own || v.Peer != bad.id {
				t.Errorf("node %d judged %+v, node %d was wrong", n.index, v, bad.index)
			}
		}
		if n.heals > 0 {
			t.Errorf("node %d healed what was not damaged", n.index)
		}
	}
}

// A bit that flips in the anchor in memory is noticed before anything that comes
// of it is published, and healed, wherever it flips.
func TestFlippedBitIsHealedAtHome(t *testing.T) {
	t.Parallel()
	for p := range 3 {
		w := newWorld(t, 50+uint64(p), worldConfig{params: budgetOf(1500)})
		w.found(3)
		w.runFor(4000)
		bad := w.nodes[1]
		bad.machine.Rounds().Tip(p).Anchor[2] += 100
		w.runUntil("the flipped bit is healed", 10_000, func() bool { return bad.heals > 0 })
		w.finish(patience)
		for _, n := range w.nodes {
			if len(n.verdicts) > 0 {
				t.Errorf("node %d saw another state: %+v", n.index, n.verdicts)
			}
		}
	}
}

// A lone node has nobody to ask and heals from its own bases.
func TestFlippedBitAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 60, worldConfig{params: budgetOf(600)})
	w.found(1)
	w.runFor(4000)
	w.nodes[0].machine.Rounds().Tip(0).Anchor[0] += 1
	w.slack = w.cfg.params.H // what was dropped of one fragment is made again in all
	w.finish(patience)
	if w.nodes[0].heals != 1 {
		t.Errorf("healed %d times", w.nodes[0].heals)
	}
}
