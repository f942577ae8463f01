package sim

import "atoll/gossip/wire"

// Chain sums up what a world folded.
type Chain struct {
	Rounds       int     // of the fragment that has the fewest
	Deltas       int     // of all fragments
	PayloadBytes int64   // of these deltas, each once
	Steps        float64 // of a delta, mean
	Stale        float64 // rounds by which a delta's base is older than the round before, mean
}

// Chain is the chain of the nodes that are up. It reports false where no node
// has every round on its disk.
func (w *World) Chain() (Chain, bool) {
	from := w.complete()
	if from == nil {
		return Chain{}, false
	}
	c := Chain{Rounds: int(w.leastClosed())}
	for p := range w.plan {
		for r := uint32(1); r <= from.machine.Rounds().Fragment(p).Tip().Round; r++ {
			record, _ := from.disk.Record(p, r)
			for _, id := range record.Folded {
				h := w.checks.ledger[wire.Digest(id)]
				c.Deltas++
				c.PayloadBytes += int64(h.Size)
				c.Steps += float64(h.Steps)
				c.Stale += float64(h.Round - 1 - h.Base)
			}
		}
	}
	c.Steps /= float64(max(c.Deltas, 1))
	c.Stale /= float64(max(c.Deltas, 1))
	return c, true
}
