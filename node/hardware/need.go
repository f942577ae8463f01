package hardware

import (
	"fmt"
	"math/bits"

	"atoll/node/genesis"
	"atoll/tensor"
)

// processBytes is what a node takes beside its model: the program, libp2p with a
// handful of peers, queues, a small corpus. Measured some 90 MiB with a model of
// a few parameters.
const processBytes = 96 << 20

// MaxTipBytes is the memory that newest tips and bases may take before bases are read from the disk.
const MaxTipBytes = 256 << 20

// changedTips is of how many fragments the tip before the newest is in memory as well, as a fold is made of it: between two steps
// seldom more change.
const changedTips = 2

// shortBases is how many bases of a fragment go to disk only if memory has no room for them: those of the last rounds.
const shortBases = 2

// What the collector of a node lets gather: a quarter of what is alive in a small process, and in a large one, whose numbers
// it need not look at, no more than mostGarbage or a twentieth.
const (
	garbageShare = 4
	mostGarbage  = 64 << 20
	leastShare   = 20
)

// Garbage is how many bytes of garbage a node lets gather beside so many that are alive.
func Garbage(alive int64) int64 { return min(alive/garbageShare, max(mostGarbage, alive/leastShare)) }

// Role is what a node does in a run, as far as its memory depends on it.
type Role struct {
	Observe bool // holds the model without training
	Batch   int  // rows of a step; the genesis has the least that counts

	External bool // another program trains

	// Precision is the one that the built-in trainer has from its start: F32 where it looks for the faster, as it tries F32 first.
	Precision tensor.Precision
}

// Need estimates the bytes of memory that a node of the run will take at most. A node whose union window is not full
// takes less where its model is small (testnet/lab/RESULTS.md, "Size").
func (r Role) Need(g genesis.Genesis) uint64 {
	heap, mapped := r.tipBytes(g), int64(0)
	plan := g.Plan()
	for i, f := range plan {
		const fold = 2*8 + (8 + 4) // payloads of two folds, sums and progress of a draft, bytes per value
		heap = max(heap, r.tipBytes(g)+int64(fold*f.Len)+changedTips*int64(g.TipsSize(plan[i:i+1])))
	}
	if !r.Observe {
		own, shared := r.training(g)
		heap, mapped = heap+own, shared
		if g.Outer.Codec.Partial() {
			heap += 4 * int64(g.Params()) // of progress that is held
		}
	}
	return uint64(processBytes + heap + Garbage(heap) + mapped)
}

// tipBytes is what tips take of memory: the newest of each fragment, and bases. Beside a learner in a process of its own it is
// the global parameters too on which that process still stands: it adopts nothing while it starts or saves, and all fragments
// go on. The first values are such parameters when tips come from a peer.
func (r Role) tipBytes(g genesis.Genesis) int64 {
	tips := int64(g.TipsSize(g.Plan()))
	first := 4 * int64(g.Params()) // round 0 has no momentum of its own
	all := tips + first + int64(keptBases(g.Outer.Window)+shortBases)*tips
	least := tips
	if !r.Observe && (r.External || !g.BuiltIn()) {
		least += first
	}
	return max(least, min(all, MaxTipBytes))
}

// keptBases is how many bases of a fragment the disk holds when its union window is full: one for each power of two from
// replica.Policy.BaseEvery on, and one that the oldest round is folded from.
func keptBases(window uint32) int { return bits.Len32(window/4) + 1 }

// training is what a learner of the run takes of this machine: of this process, and of files that it maps. One in a process
// of its own shares the parameters, and has the rest wherever it computes.
func (r Role) training(g genesis.Genesis) (own, mapped int64) {
	if r.External || !g.BuiltIn() {
		return 0, 4 * int64(g.Params())
	}
	cfg := g.TrainerConfig(max(r.Batch, g.Batch))
	cfg.Precision = r.Precision
	return cfg.MemoryBytes() + cfg.EvaluationBytes(), 0
}

// Disk is what a node of a run takes of its disk beside the ledger, estimated in bytes.
type Disk struct {
	Bases   int64 // kept states
	Learner int64 // of the learner: what it has to go on with
}

// DiskOf estimates that of a run whose union window is full. Learners keep two moments of each value. One in a process
// of its own saves a state beside the one before, and has its values in a file while it evaluates others, or all the time if it attaches.
func (r Role) DiskOf(g genesis.Genesis) Disk {
	tips, kept := int64(g.TipsSize(g.Plan())), keptBases(g.Outer.Window)
	if r.tipBytes(g) >= MaxTipBytes {
		kept += shortBases
	}
	d := Disk{Bases: int64(kept) * tips}
	switch {
	case r.Observe:
	case r.External || !g.BuiltIn():
		d.Learner = (2*8 + 4) * int64(g.Params())
	default:
		d.Learner = g.TrainerConfig(g.Batch).StateBytes()
	}
	return d
}

// Fits makes sure that the model has room in the memory of this machine: have
// bytes, 0 where the system does not say.
func (r Role) Fits(g genesis.Genesis, have uint64) error {
	need := r.Need(g)
	if have == 0 || need <= have {
		return nil
	}
	return fmt.Errorf("a node of this run needs %d MiB of memory and may take %d MiB here; %s", need>>20, have>>20, r.Remedy())
}

// Remedy says what to do where the model does not fit.
func (r Role) Remedy() string {
	if r.Observe {
		return "use a machine or a container with more memory"
	}
	return "use a machine or a container with more memory, fewer rows a step with --batch, or --observe to hold the model without training"
}
