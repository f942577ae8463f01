package sim

import (
	"testing"

	"atoll/tensor/codec"
)

// longRounds has what eight learners of a billion values in int4 meet on links of 100 Mbit/s: what each receives of a round
// takes 293 s, and a round of 24 steps 480. Bytes and rates are smaller by as much.
func longRounds(graceMax Time) Scenario {
	const nodes, scale, sweepMs = 8, 300, 293_000
	p := Params(3, 0, codec.F32)
	p.H, p.HMin, p.GraceMaxMs, p.Budget = 24, 6, graceMax, 1<<40
	rate := (nodes - 1) * bytesAt(scale) / sweepMs
	return Scenario{
		Seed: 1, Params: p, Founders: make([]NodeSpec, nodes), Link: Link{LatencyMs: 40, BytesMs: rate, DownMs: rate},
		StepMs: 20_000, TickMs: 500, BeatMs: 2000, CalmMs: 1, LimitMs: 3 * 3_600_000, Scale: scale, Rounds: 6,
	}
}

// With the grace that atoll new chooses by bytes and links, deltas of long rounds are seldom late; with a minute nearly all
// are, and every round is folded again.
func TestLongRoundsWaitForTheirBytes(t *testing.T) {
	late := func(graceMax Time) (float64, int) {
		r, err := Run(longRounds(graceMax))
		if err != nil || r.Err != nil {
			t.Fatal(err, r.Err)
		}
		return r.Fit.Late, r.Did.Refolds
	}
	share, refolds := late(2 * 293_000)
	if share > mostLate {
		t.Errorf("%.2f of the deltas are late, %d rounds folded again", share, refolds)
	}
	if testing.Short() {
		return
	}
	if short, more := late(60_000); short < 0.5 || more < 2*refolds {
		t.Errorf("with a minute %.2f are late and %d rounds folded again, %d with what bytes take: this tests nothing", short, more, refolds)
	}
}
