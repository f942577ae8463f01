package hardware

import (
	"fmt"

	"atoll/node/genesis"
)

// processBytes is what a node takes beside its model: the program, libp2p with a
// handful of peers, queues, a small corpus. Measured some 90 MiB with a model of
// a few parameters.
const processBytes = 96 << 20

// keptTips is how many tips of each fragment memory holds when the union window
// is full: the newest, and some two bases for each doubling of the first rounds.
// Older ones are read from disk.
const keptTips = 9

// MaxTipBytes is the memory that kept bases may take before those that are on
// disk too are read from there.
const MaxTipBytes = 256 << 20

// Role is what a node does in a run, as far as its memory depends on it.
type Role struct {
	Observe bool // holds the model without training
	Batch   int  // rows of a step; the genesis has the least that counts

	External bool // another program trains
}

// Need estimates the bytes of memory that a node of the run will take. A node of
// tiny took 0.9 of it after a minute, one of small 0.7: its window was not full.
func (r Role) Need(g genesis.Genesis) uint64 {
	plan := g.Plan()
	tips, longest := int64(g.TipsSize(plan)), 0
	for _, f := range plan {
		longest = max(longest, f.Len)
	}
	const fold = 8 + 8 + 8 + 4 // sums and payloads of a fold, sums and progress of a draft, bytes per value of a fragment
	need := int64(processBytes) + tips + min((keptTips-1)*tips, MaxTipBytes) + int64(fold*longest)
	if !r.Observe {
		need += r.training(g)
		if g.Outer.Codec.Partial() {
			need += 4 * int64(g.Params()) // of progress that is held
		}
	}
	return uint64(need)
}

// training is what a learner of the run takes of this machine. One in a process of its own
// shares the parameters, and has the rest wherever it computes.
func (r Role) training(g genesis.Genesis) int64 {
	if r.External || !g.BuiltIn() {
		return 4 * int64(g.Params())
	}
	cfg := g.TrainerConfig(max(r.Batch, g.Batch))
	const copies = 2 // of the optimizer's state: the one that is written, and the one before until it is collected
	return cfg.MemoryBytes() + copies*cfg.StateBytes()
}

// Fits makes sure that the model has room in the memory of this machine: have
// bytes, 0 where the system does not say.
func (r Role) Fits(g genesis.Genesis, have uint64) error {
	need := r.Need(g)
	if have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("a node of this run needs %d MiB of memory and this machine has %d MiB; %s", need>>20, have>>20, r.Remedy())
}

// Remedy says what to do where the model does not fit.
func (r Role) Remedy() string {
	if r.Observe {
		return "use a larger machine"
	}
	return "use a larger machine, fewer rows a step with --batch, or --observe to hold the model without training"
}
