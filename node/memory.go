package node

import (
	"fmt"
)

// processBytes is what a node takes beside its model: the program, libp2p with a
// handful of peers, queues, a small corpus. Measured some 90 MiB with a model of
// a few parameters.
const processBytes = 96 << 20

// keptTips is how many tips of each fragment memory holds when the union window
// is full: the newest, and some two bases for each doubling of the first rounds;
// older ones are read from disk.
const keptTips = 9

// memoryNeed estimates the bytes of memory that this node will take. A node of
// tiny took 0.9 of it after a minute, one of small 0.7: its window was not full.
func (n *node) memoryNeed() uint64 {
	plan := n.genesis.Plan()
	tips, longest := int64(n.genesis.tipsSize(plan)), 0
	for _, f := range plan {
		longest = max(longest, f.Len)
	}
	const fold = 8 + 8 + 8 + 4 // sums and payloads of a fold, sums and progress of a draft, bytes per value of a fragment
	need := int64(processBytes) + tips + min((keptTips-1)*tips, maxTipBytes) + int64(fold*longest)
	if !n.cfg.Observe {
		cfg := n.trainerConfig(max(n.cfg.Batch, n.genesis.Batch))
		const copies = 2 // of the optimizer's state in a checkpoint: one, and again while it is written
		need += cfg.MemoryBytes() + copies*cfg.StateBytes()
		if n.genesis.Outer.Codec.Partial() {
			need += 4 * int64(n.genesis.Model.Params()) // of progress that is held
		}
	}
	return uint64(need)
}

// fits makes sure that the model has room in the memory of this machine: have
// bytes, 0 where the system does not say.
func (n *node) fits(have uint64) error {
	need := n.memoryNeed()
	if have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("a node of this run needs %d MiB of memory and this machine has %d MiB; %s", need>>20, have>>20, memoryRemedy(n.cfg.Observe))
}

// memoryRemedy says what to do where the model does not fit.
func memoryRemedy(observe bool) string {
	if observe {
		return "use a larger machine"
	}
	return "use a larger machine, fewer rows a step with --batch, or --observe to hold the model without training"
}
