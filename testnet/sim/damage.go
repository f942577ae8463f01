package sim

import (
	"slices"

	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// damage is what befell the memory or the arithmetic of a node, and what it and
// others made of it.
type damage struct {
	befell        bool // its arithmetic, at some time: its states are no promise
	corrupted     bool // its memory, at some time
	miscalculates bool // the next fold
	repairs       int
	verdicts      []core.Verdict // of this node
}

// damaged does a Miscalculate or a Corrupt.
func (n *Node) damaged(f Fault) bool {
	if !n.up || f.Kind == fault.Corrupt && int(f.Factor) >= len(n.w.plan) {
		return false
	}
	if f.Kind == fault.Corrupt {
		n.damage.corrupted = true
		n.machine.Rounds().Fragment(int(f.Factor)).Tip().Global[0] += 100
		return true
	}
	n.damage.befell, n.damage.miscalculates, n.w.checks.faulty[n.id] = true, true, true
	return true
}

// corrupts says that some fault changes tips in memory, so that nodes may share none.
func corrupts(faults []Fault) bool {
	return slices.ContainsFunc(faults, func(f Fault) bool { return f.Kind == fault.Corrupt })
}

// computed is the tip that a fold comes to on this node. A wrong one looks sound.
func (n *Node) computed(p int, tip *outer.Tip) *outer.Tip {
	if !n.damage.miscalculates {
		return tip
	}
	n.damage.miscalculates = false
	wrong := *tip
	wrong.Global = slices.Clone(tip.Global)
	wrong.Global[0]++
	sealed, err := outer.DecodeTip(wrong.Encode(), n.w.plan[p], n.w.s.Params)
	if err != nil {
		n.broken("sim", "a wrong tip: %v", err)
		return tip
	}
	return sealed
}
