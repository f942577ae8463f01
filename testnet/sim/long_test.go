package sim

import (
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// longRounds has what eight learners of a billion values in int4 meet on links of 100 Mbit/s: what each receives of a round
// takes 293 s, and a round of 24 steps 480. Bytes and rates are smaller by as much.
func longRounds(seed uint64, graceMax Time) Scenario {
	const nodes, scale, sweepMs = 8, 300, 293_000
	p := ParamsOf(outer.Spec{Fragments: 3, Codec: codec.F32, H: 24, Learners: nodes, Budget: 1 << 40})
	p.GraceMaxMs = graceMax
	rate := (nodes - 1) * bytesAt(scale) / sweepMs
	return Scenario{
		Seed: seed, Params: p, Founders: make([]NodeSpec, nodes), Link: Link{LatencyMs: 40, BytesMs: rate, DownMs: rate},
		StepMs: 20_000, TickMs: 500, HeartbeatMs: 2000, CalmMs: 1, LimitMs: 3 * 3_600_000, Scale: scale, Rounds: 6,
	}
}

// lateOf is the share of deltas that were late, and how many rounds were folded again.
func lateOf(t *testing.T, s Scenario) (share float64, refolds int) {
	t.Helper()
	r, err := Run(s)
	if err != nil || r.Err != nil {
		t.Fatal(err, r.Err)
	}
	return r.Fit.Late, r.Did.Refolds
}

// chosenGrace is the grace that atoll new chooses by the bytes and links of longRounds.
const chosenGrace = 2 * 293_000

// With the grace that atoll new chooses no delta of long rounds is late, whoever proposes first. With a minute nearly all
// are, and every round is folded again.
func TestLongRoundsWaitForTheirBytes(t *testing.T) {
	seeds := uint64(1)
	if longMode() {
		seeds = 4
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		if share, refolds := lateOf(t, longRounds(seed, chosenGrace)); share > 0 || refolds > 0 {
			t.Errorf("seed %d: %.3f of the deltas are late, %d rounds folded again", seed, share, refolds)
		}
	}
	if !longMode() {
		return
	}
	if share, refolds := lateOf(t, longRounds(1, 60_000)); share < 0.5 || refolds < 10 {
		t.Errorf("with a minute %.2f are late and %d rounds folded again: this tests nothing", share, refolds)
	}
}

// Steps that are so short that links carry no round in 24 of them make rounds longer. What is late then is of the time
// before that is known.
func TestShortStepsWaitForTheirBytes(t *testing.T) {
	if !longMode() {
		t.Skip("takes seconds: ATOLL_LONG=1 runs it")
	}
	s := longRounds(1, chosenGrace)
	s.StepMs = 5_000
	if share, _ := lateOf(t, s); share > mostLate {
		t.Errorf("%.3f of the deltas are late", share)
	}
}
