package bench

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// miniFile is a file with the sizes of mini.
func miniFile(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(mini())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mini.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Every fragment has a round in H steps, and each is adopted: then local parameters stand on as
// many rounds as were folded.
func TestOuterRig(t *testing.T) {
	r, err := newOuterRig(OuterConfig{Model: miniFile(t), Threads: 1, Batch: 1, H: 5, Fragments: 3, Deltas: 4, Codec: codec.Int4})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		with, without, err := r.pair(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		if with <= 0 || without <= 0 {
			t.Fatalf("with %v, without %v", with, without)
		}
		for p, tip := range r.tips {
			if int(tip.Round) != i+1 || r.closed[p] != tip.Round || tip.Tokens == 0 {
				t.Errorf("after %d pairs fragment %d is at round %d, %d adopted, with %d tokens", i+1, p, tip.Round, r.closed[p], tip.Tokens)
			}
		}
	}
	if r.rounds != 5*len(r.plan) || r.begun != r.rounds || len(r.own) != 0 {
		t.Errorf("%d rounds of %d begun were adopted, %d own deltas are left", r.rounds, r.begun, len(r.own))
	}
	// Unpublished are the steps after the first one of the last turn with the loop, and the
	// steps of the turn without.
	if steps, _ := r.learner.Pending(0); steps != 4+5 {
		t.Errorf("%d steps are pending, want 9", steps)
	}
}

func TestMeasureOuter(t *testing.T) {
	o, err := MeasureOuter(t.Context(), Meter{}, OuterConfig{Model: miniFile(t), Threads: 1, Batch: 2, H: 3, Fragments: 2, Deltas: 2, Codec: codec.F32})
	if err != nil {
		t.Fatal(err)
	}
	if o.Pairs != leastParts || o.Params != mini().Params() || o.Batch != 2 || o.H != 3 || o.Fragments != 2 || o.Deltas != 2 || o.Codec != "f32" {
		t.Errorf("%+v", o)
	}
	if o.Momentum != 0 {
		t.Errorf("H = 3 has momentum %v", o.Momentum)
	}
	if !(o.RatioMin <= o.Ratio && o.Ratio <= o.RatioMax && o.RatioMin > 0) || o.TokensPerS <= 0 || o.AlonePerS <= 0 || o.MsFold <= 0 || o.RatioBest <= 0 || o.RatioBest >= 1 {
		t.Errorf("%+v", o)
	}
}

func TestMeasureOuterRefuses(t *testing.T) {
	for name, c := range map[string]OuterConfig{
		"model": {Model: "none", Deltas: 1, Codec: codec.Int4},
		"codec": {Model: miniFile(t), Deltas: 1, Codec: 99},
	} {
		if _, err := MeasureOuter(t.Context(), Meter{}, c); err == nil {
			t.Errorf("a wrong %s was measured", name)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := MeasureOuter(ctx, Meter{}, OuterConfig{Model: miniFile(t), Threads: 1, Batch: 1, Deltas: 1, Codec: codec.Int4}); err == nil {
		t.Error("nothing was measured, without an error")
	}
}

// A step of 10 ms, and for each of two fragments rounds of 1 + 2 + 3 ms: in 4 steps, 12 ms.
func TestBestRatio(t *testing.T) {
	tensor.SetThreads(1)
	r := outerRig{plan: make(outer.Plan, 2)}
	r.g.Outer.H = 4
	for _, ms := range []time.Duration{3, 1, 2} {
		for of, least := range map[*timings]time.Duration{&r.step: 10, &r.draft: 1, &r.fold: 2, &r.adopt: 3} {
			of.add(ms * least * time.Millisecond)
		}
	}
	if got, want := r.bestRatio(), 40.0/52; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	if mean := r.fold.mean(); math.Abs(mean-4) > 1e-9 {
		t.Errorf("the mean of 2, 4 and 6 ms is %v", mean)
	}
}
