package sweep

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Trial is what became of a setting with one seed.
type Trial struct {
	Setting
	Seed         uint64  `json:"seed"`
	DataSHA256   string  `json:"data_sha256"`
	Params       int     `json:"params"`
	Folded       uint64  `json:"tokens_folded"`
	Trained      uint64  `json:"tokens_trained"`
	ValBPB       float64 `json:"val_bpb,omitempty"` // bits per held-out byte, absent if the trial failed
	ValBytes     int     `json:"val_bytes"`         // how many were scored
	Steps        int     `json:"steps"`             // of the learner that took most
	VirtualSteps float64 `json:"virtual_steps"`     // the run's time, in steps of speed 1

	Rounds     int     `json:"rounds,omitempty"`      // of the fragment with the fewest
	Deltas     int     `json:"deltas,omitempty"`      // folded
	Late       int     `json:"late,omitempty"`        // that reached a node after it closed their round
	Stale      float64 `json:"stale_mean,omitempty"`  // rounds that a base is older than the round before
	DeltaSteps float64 `json:"delta_steps,omitempty"` // of a folded delta, mean
	// PayloadPerToken are the bytes of payloads that all learners together receive
	// for a folded token. Those of dp and diloco are computed, of a ring all-reduce in
	// bf16.
	PayloadPerToken float64 `json:"payload_per_token,omitempty"`
	// BytesPerToken are all bytes, heartbeats and headers with them.
	BytesPerToken float64 `json:"bytes_per_token,omitempty"`

	Curve   []Point `json:"curve,omitempty"`
	Seconds float64 `json:"seconds"`          // that it took to compute
	Note    string  `json:"note,omitempty"`   // what is to be known of it
	Failed  string  `json:"failed,omitempty"` // why it came to nothing
}

// Run plays one trial. What a setting does badly, as to diverge, is part of the
// trial; the error is for a setting that cannot be, or a text that cannot be read.
func (l *Lab) Run(s Setting, seed uint64) (Trial, error) {
	b, err := l.bench(s, seed)
	if err != nil {
		return Trial{}, err
	}
	began := time.Now()
	t := Trial{Setting: s, Seed: seed, DataSHA256: b.sha256(), Params: b.model.Params()}
	run := map[string]func(*Trial) error{Atoll: b.atoll, DP: b.dp, DiLoCo: b.diloco, Local: b.local, Aggregated: b.aggregated}[s.Baseline]
	if err := run(&t); err != nil {
		t.ValBPB = 0
		t.Failed, _, _ = strings.Cut(err.Error(), "\n") // the rest shows the whole world
	}
	t.Curve, t.Seconds = b.curve, math.Round(1000*time.Since(began).Seconds())/1000
	return t, nil
}

// judge scores the parameters that a trial ended with.
func (b *bench) judge(t *Trial, params []float32) error {
	for _, w := range b.windows(finalBytes) {
		t.ValBytes += len(w) - 1
	}
	bits, err := b.bits(params, finalBytes)
	if err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	t.ValBPB = bits
	return nil
}
