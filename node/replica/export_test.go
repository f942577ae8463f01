package replica

import (
	"atoll/gossip"
	"atoll/node/core"
	"atoll/optimizer/rounds"
)

// Do executes one effect, as Execute does each one of the machine's.
func (r *Replica) Do(effect any) {
	switch e := effect.(type) {
	case gossip.IO:
		r.execute(core.IO{Effect: e})
	case rounds.Work:
		r.execute(core.Work{Effect: e})
	default:
		r.execute(e.(core.Effect))
	}
}

// HeldBases are the rounds of a fragment's bases in memory, and the bytes of all.
func (r *Replica) HeldBases(fragment int) (rounds map[uint32]bool, bytes int64) {
	rounds = map[uint32]bool{}
	for k, tip := range r.bases.held {
		if bytes += baseBytes(tip); k.fragment == fragment {
			rounds[k.round] = true
		}
	}
	if bytes != r.bases.bytes {
		panic("the bytes of kept bases are miscounted")
	}
	return rounds, bytes
}

// SetBaseBudget has bases take at most so many bytes of memory.
func (r *Replica) SetBaseBudget(bytes int64) { r.bases.budget = bytes }
