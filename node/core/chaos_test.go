package core_test

import (
	"math/rand/v2"
	"testing"

	"atoll/node/core"
)

// chaosSeeds is how many random schedules run: a few seconds of CPU in all, and
// some ten times that under the race detector.
const chaosSeeds = 12

// After any schedule of crashes, restarts, losses, delays, hangs, joins, leaves
// and partitions ends, all live nodes come to one chain and one state, nobody
// signed a round twice, theta is A + sum s q + U throughout, and the account adds
// up to the token.
func TestAnyScheduleConverges(t *testing.T) {
	t.Parallel()
	var refolds, installs, unfolds, returns int
	for seed := range uint64(chaosSeeds) {
		for _, n := range chaos(t, seed).nodes {
			refolds += n.refolds
			installs += n.installs
			unfolds += n.unfolds
			returns += n.returns
		}
	}
	t.Logf("%d refolds, %d times tips taken whole, %d own deltas unfolded, %d returned", refolds, installs, unfolds, returns)
	if refolds == 0 || installs == 0 {
		t.Error("the schedules are too tame to test anything")
	}
}

func chaos(t *testing.T, seed uint64) *world {
	rng := rand.New(rand.NewPCG(seed, 3))
	p := budgetOf(900)
	p.Quorum = 1 + rng.IntN(3)
	p.Answerers = 3 + rng.IntN(6)
	p.WindowAccept, p.WindowUnion = 8, uint32(40+rng.IntN(60))
	if rng.IntN(3) == 0 {
		p.Mu, p.Eta = 0.5, 0.7
	}
	w := newWorld(t, seed, worldConfig{
		params: p, latencyMs: []core.Time{5, 30, 150}[rng.IntN(3)],
		loss: 0.1 * rng.Float64(), duplicate: 0.2 * rng.Float64(),
	})
	for range 2 + rng.IntN(3) {
		w.add(nodeConfig{alone: true, divisor: 1 + core.Time(rng.IntN(3))})
	}
	for range 8 {
		w.runFor(200 + rng.Int64N(2500))
		w.disturb(rng)
	}
	w.calm()
	w.slack = 2 * p.H * len(w.nodes) // what parted or hung nodes do not know of each other
	w.finish(patience)
	return w
}

// disturb does one thing to one node or to the network. Node 0 stays up, so
// that there is always one that holds what was folded.
func (w *world) disturb(rng *rand.Rand) {
	n := w.nodes[rng.IntN(len(w.nodes))]
	switch kind := rng.IntN(7); {
	case kind == 0 && n.index > 0 && n.up:
		n.crash()
	case kind == 1 && !n.up && !n.left:
		n.restartNode()
	case kind == 2 && n.up:
		n.hang()
	case kind == 3 && n.hung:
		n.wake()
	case kind == 4 && len(w.nodes) < 6:
		w.add(nodeConfig{divisor: 1 + core.Time(rng.IntN(2))})
	case kind == 5 && n.index > 0 && n.up && !n.hung:
		n.leave()
	case kind == 6:
		var side []*node
		for _, n := range w.nodes {
			if rng.IntN(2) == 0 {
				side = append(side, n)
			}
		}
		w.partition(side...)
	}
}

// calm ends whatever is still disturbed.
func (w *world) calm() {
	for _, n := range w.nodes {
		if n.hung {
			n.wake()
		}
		if !n.up && !n.left {
			n.restartNode()
		}
	}
	w.partition()
}
