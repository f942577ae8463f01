package sweep

import (
	"errors"

	"atoll/testnet/sim"
)

// heartbeatMs is the shortest heartbeat period: four times that of real runs, as only waits follow from it.
const heartbeatMs = 2000

// ticksPerStep is how often a machine ticks in a step, or 50 times a second where
// steps are short: as real nodes do.
const (
	ticksPerStep = 20
	leastTickMs  = 20
)

// patience is how many times longer a run may take than its steps, and quietLimitMs
// how long its end may take besides.
const (
	patience     = 4
	quietLimitMs = 1_000_000
)

// atoll runs the protocol in virtual time.
func (b *bench) atoll(t *Trial) error {
	scenario, err := b.scenario()
	if err != nil {
		return err
	}
	w, err := sim.New(scenario)
	if err != nil {
		return err
	}
	var broken error
	w.Watch(b.stepMs(), func() {
		if broken == nil {
			broken = b.look(folded(w), w.Globals)
		}
	})
	w.Finish()
	var over *sim.Broken
	if err := w.Err(); errors.As(err, &over) && over.Check == "budget" {
		t.Note = over.Text // tables tell trials that are not at equal tokens
	} else if err != nil {
		return err
	}
	if broken != nil {
		return broken
	}
	t.Folded = folded(w)
	t.VirtualSteps = float64(w.Now()-sim.Start) / float64(b.stepMs())
	b.count(t, w)
	return b.judge(t, w.Globals())
}

// scenario is the world.
func (b *bench) scenario() (sim.Scenario, error) {
	p, err := b.params(b.P, b.Tokens)
	if err != nil {
		return sim.Scenario{}, err
	}
	slow, err := b.slow()
	if err != nil {
		return sim.Scenario{}, err
	}
	faults, err := b.faults()
	if err != nil {
		return sim.Scenario{}, err
	}
	s := sim.Scenario{
		Seed: b.seed, Params: p, StepMs: b.stepMs(), TickMs: max(leastTickMs, b.stepMs()/ticksPerStep), HeartbeatMs: heartbeatMs, Lean: true, Faults: faults, Task: task{b},
		Link: sim.Link{LatencyMs: b.ms(b.Latency), BytesMs: b.Rate / float64(b.stepMs())},
	}
	perStep := 0.0
	for _, d := range slow {
		s.Founders = append(s.Founders, sim.NodeSpec{Slow: d})
		perStep += float64(b.stepTokens(b.model)) / float64(d)
	}
	s.LimitMs = b.ms(patience*float64(b.Tokens)/perStep) + quietLimitMs
	for _, f := range faults {
		s.CalmMs = max(s.CalmMs, f.At+1)
	}
	return s, nil
}

// folded is what the world's first node has folded.
func folded(w *sim.World) uint64 {
	for _, n := range w.Nodes() {
		if n.Up() {
			return n.Machine().View().FoldedTokens()
		}
	}
	return 0
}

// count takes over what the world counted.
func (b *bench) count(t *Trial, w *sim.World) {
	var in int64
	reports, _ := w.Reports()
	for _, r := range reports {
		t.Trained += r.Trained
		t.Steps = max(t.Steps, r.Did.Steps)
		t.Late += int(r.Late)
		in += r.Did.BytesIn
	}
	c, ok := w.Chain()
	if !ok {
		return
	}
	t.Rounds, t.Deltas, t.Stale, t.DeltaSteps = c.Rounds, c.Deltas, c.Stale, c.Steps
	t.BytesPerToken = float64(in) / float64(t.Folded)
	t.PayloadPerToken = float64(c.PayloadBytes) * float64(len(reports)-1) / float64(t.Folded)
}
