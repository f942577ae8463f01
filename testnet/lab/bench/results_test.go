package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"atoll/tensor"
	"atoll/tensor/llama"
)

// names returns the fields of the JSON object that v marshals to, in order.
func names(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	_, err = d.Token() // the brace
	var fields []string
	for err == nil && d.More() {
		var name json.Token
		var value json.RawMessage
		name, err = d.Token()
		err = errors.Join(err, d.Decode(&value))
		fields = append(fields, fmt.Sprint(name))
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(fields, " ")
}

// The names are what programs read.
func TestFieldNames(t *testing.T) {
	for _, c := range []struct {
		result any
		want   string
	}{
		{Peak{CopyGBPerS: 1, CopyMiBEach: 1}, "bench threads kernel precision gflop_per_s copy_gb_per_s copy_mib"},
		{Peak{}, "bench threads kernel precision gflop_per_s"},
		{Gemm{}, "bench form m k n threads precision gflop_per_s of_peak best_gflop_per_s spread"},
		{GemmComparison{CoreType: "x"}, "bench with form m k n threads precision rounds openblas_coretype gflop_per_s blas_gflop_per_s ratio ratio_min ratio_max ratio_best"},
		{Step{RSSBytes: 1}, "bench model threads params batch context kernel precision optimizer steps tokens_per_s ms_per_step flops_fraction peak_gflop_per_s rss_bytes"},
		{Comparison{CoreType: "x"}, "bench with model threads precision params rounds openblas_coretype tokens_per_s torch_tokens_per_s ratio ratio_min ratio_max ratios flops_fraction"},
		{Codec{}, "bench codec bytes_per_param encode_gparam_per_s encode_best_gparam_per_s encode_spread decode_add_gparam_per_s decode_add_best_gparam_per_s decode_add_spread"},
		{Fold{}, "bench deltas params codec ms_per_fold fold_spread ms_decode fold_over_decode fold_over_decode_spread"},
		{Adopt{}, "bench params ms_per_adopt gparam_per_s spread"},
		{State{}, "bench model params outer_momentum trainer_bytes_per_param outer_bytes_per_param bytes_per_param"},
		{Outer{}, "bench model params threads batch h fragments deltas codec momentum pairs tokens_per_s tokens_per_s_without ratio ratio_min ratio_max ratio_best ms_draft ms_fold ms_adopt"},
		{Disk{}, "bench writes_per_s ms_per_write write_spread mb_per_s mb_spread delta_bytes ms_per_own_delta own_delta_spread ms_per_delta delta_spread"},
		{Link{}, "bench transport response_bytes streams ms_per_call mb_per_s spread"},
	} {
		if got := names(t, c.result); got != c.want {
			t.Errorf("%T: %s\nwant %s", c.result, got, c.want)
		}
	}
}

func TestGemms(t *testing.T) {
	shapes := []Product{{"NN", 3, 4, 5}, {"NT", 3, 4, 5}, {"TN", 3, 4, 5}}
	got, err := Gemms(t.Context(), Meter{}, Peak{Threads: 1, Precision: tensor.BF16, GFLOPPerS: 2}, shapes)
	if err != nil || len(got) != len(shapes) {
		t.Fatal(got, err)
	}
	for i, g := range got {
		if g.Form != shapes[i].Form || g.Precision != tensor.BF16 || g.M != 3 || g.K != 4 || g.N != 5 || g.GFLOPPerS <= 0 || g.OfPeak != g.GFLOPPerS/2 || g.Best < g.GFLOPPerS {
			t.Errorf("%+v", g)
		}
	}
	if flops := shapes[0].FLOPs(); flops != 120 {
		t.Errorf("%v operations in 3 x 4 x 5", flops)
	}
}

// The products end with the products of tiny's steps at the shared batch.
func TestProductsAreThoseOfTiny(t *testing.T) {
	c := llama.Tiny
	rows := SharedBatch(c) * c.Context
	for _, want := range []Product{
		{"NT", rows, c.Hidden, 2 * c.Intermediate}, {"NN", rows, 2 * c.Intermediate, c.Hidden}, {"TN", 2 * c.Intermediate, rows, c.Hidden},
		{"NT", rows, c.Intermediate, c.Hidden}, {"NN", rows, c.Hidden, c.Intermediate}, {"TN", c.Hidden, rows, c.Intermediate},
	} {
		if !slices.Contains(Products, want) {
			t.Errorf("%v is not measured", want)
		}
	}
}

func TestPeakAndCopy(t *testing.T) {
	p, err := MeasurePeak(t.Context(), 1, tensor.F32)
	if err != nil || p.Bench != "peak" || p.Threads != 1 || p.GFLOPPerS <= 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if err := p.MeasureCopy(t.Context()); err != nil || p.CopyGBPerS <= 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestCodecs(t *testing.T) {
	results, err := Codecs(t.Context(), Meter{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	most := map[string]float64{"f32": 4.001, "int4": 0.52, "sparse": 0.021, "sparse8": 0.105}
	for _, r := range results {
		kinds = append(kinds, r.Codec)
		if r.BytesPerParam <= 0 || r.BytesPerParam > most[r.Codec] || r.EncodePerS <= 0 || r.DecodePerS <= 0 {
			t.Errorf("%+v", r)
		}
	}
	if strings.Join(kinds, " ") != "f32 int4 sparse sparse8" {
		t.Errorf("codecs %v", kinds)
	}
}

func TestFolds(t *testing.T) {
	results, err := Folds(t.Context(), Meter{}, []int{2})
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	if r := results[0]; r.Deltas != 2 || r.Params != 1<<20 || r.Codec != "int4" || r.MsDecode <= 0 || r.MsPerFold <= 0 || r.OverDecode <= 1 {
		t.Errorf("%+v", r)
	}
	a, err := Adoptions(t.Context(), Meter{})
	if err != nil || a.Params != 1<<20 || a.MsPerAdopt <= 0 {
		t.Errorf("%+v, %v", a, err)
	}
}

// Parameters, gradients and two moments take 16 bytes, global parameters 4, outer momentum 4; buffers for
// the largest fragment come on top, and what Go's size classes add.
func TestMeasureState(t *testing.T) {
	for momentum, least := range map[bool]float64{false: 4, true: 8} {
		s, err := MeasureState(t.Context(), Meter{}, "tiny", momentum)
		if err != nil || s.Trainer < 15.9 || s.Trainer > 17 || s.Outer < least || s.Outer > least+4 || s.Training != s.Trainer+s.Outer {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if _, err := MeasureState(t.Context(), Meter{}, "none", false); err == nil {
		t.Error("a model that there is none of was measured")
	}
}

func TestDisks(t *testing.T) {
	dir := t.TempDir()
	d, err := Disks(t.Context(), Meter{}, dir)
	if err != nil || d.WritesPerS <= 0 || d.MBPerS <= 0 || d.MsPerOwn <= 0 || d.MsPerDelta <= 0 {
		t.Errorf("%+v, %v", d, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := Disks(t.Context(), Meter{}, dir+"/absent"); err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("error %v", err)
	}
}

func TestLinks(t *testing.T) {
	results, err := Links(t.Context(), Meter{}, []Transfer{{1, 1}, {100_000, 3}})
	if err != nil || len(results) != 2 {
		t.Fatal(results, err)
	}
	if r := results[1]; r.Transport != "tcp" || r.ResponseBytes != 100_000 || r.Streams != 3 || r.MBPerS <= 0 || r.MsPerCall <= 0 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Links(ctx, Meter{}, nil); err == nil {
		t.Error("hosts were connected after the end")
	}
}
