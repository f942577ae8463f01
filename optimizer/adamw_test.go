package optimizer

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"atoll/tensor"

	"pgregory.net/rapid"
)

var usual = AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1}

// judge is the formula of AdamW in float64, one parameter at a time.
type judge struct{ p, m, v []float64 }

func newJudge(params []float32) *judge {
	j := &judge{p: make([]float64, len(params)), m: make([]float64, len(params)), v: make([]float64, len(params))}
	for i, p := range params {
		j.p[i] = float64(p)
	}
	return j
}

func (j *judge) step(o AdamW, grads []float32, decay []Span, t int64, lr float64) {
	correct1, correct2 := 1-math.Pow(o.Beta1, float64(t)), 1-math.Pow(o.Beta2, float64(t))
	for i := range j.p {
		g := float64(grads[i])
		j.m[i] = o.Beta1*j.m[i] + (1-o.Beta1)*g
		j.v[i] = o.Beta2*j.v[i] + (1-o.Beta2)*g*g
		change := j.m[i] / correct1 / (math.Sqrt(j.v[i]/correct2) + o.Eps)
		if slices.ContainsFunc(decay, func(s Span) bool { return i >= s.Offset && i < s.Offset+s.Len }) {
			change += o.WeightDecay * j.p[i]
		}
		j.p[i] -= lr * change
	}
}

func TestAdamWByHand(t *testing.T) {
	// The first step moves each parameter by lr against its gradient's sign,
	// whatever the gradient's size; decay takes lr x 0.1 of the first one.
	params, state := []float32{1, 1, -1}, NewAdamState(3, tensor.F32)
	usual.Step(params, []float32{5, -0.25, 0}, []Span{{0, 1}}, state, 0.5)
	for i, want := range []float64{1 - 0.5 - 0.05, 1.5, -1} {
		if math.Abs(float64(params[i])-want) > 1e-6 {
			t.Errorf("parameter %d is %v, want %v", i, params[i], want)
		}
	}
	if state.Step != 1 {
		t.Errorf("step is %d, want 1", state.Step)
	}
}

func TestAdamWAgainstJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 100).Draw(t, "n")
		values := rapid.SliceOfN(rapid.Float32Range(-2, 2), n, n)
		params := values.Draw(t, "params")
		from := rapid.IntRange(0, n).Draw(t, "from")
		decay := []Span{{from, rapid.IntRange(0, n-from).Draw(t, "len")}}
		want, state := newJudge(params), NewAdamState(n, tensor.F32)
		for step := int64(1); step <= 5; step++ {
			grads := values.Draw(t, "grads")
			lr := rapid.Float64Range(0, 0.01).Draw(t, "lr")
			usual.Step(params, grads, decay, state, lr)
			want.step(usual, grads, decay, step, lr)
		}
		for i := range params {
			if math.Abs(float64(params[i])-want.p[i]) > 1e-5 {
				t.Fatalf("parameter %d is %v, want %v", i, params[i], want.p[i])
			}
		}
	})
}

// TestAdamWThreadsAgree uses vectors of several pieces.
func TestAdamWThreadsAgree(t *testing.T) {
	defer tensor.SetThreads(tensor.Threads())
	run := func(threads int) ([]float32, float64) {
		tensor.SetThreads(threads)
		params, grads := make([]float32, 3*pieceLen+5), make([]float32, 3*pieceLen+5)
		for i := range params {
			params[i], grads[i] = float32(i%7)-3, float32(i%11)-5
		}
		norm := ClipNorm(grads, 1)
		usual.Step(params, grads, []Span{{3, 2*pieceLen + 1}}, NewAdamState(len(params), tensor.F32), 0.01)
		return params, norm
	}
	one, norm1 := run(1)
	three, norm3 := run(3)
	if !slices.Equal(one, three) || norm1 != norm3 {
		t.Error("the result depends on the number of threads")
	}
}

func TestAdamWPanicsOnLengths(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.Contains(r.(string), "2 parameters, 3 gradients") {
			t.Errorf("panic is %v", r)
		}
	}()
	usual.Step(make([]float32, 2), make([]float32, 3), nil, NewAdamState(2, tensor.F32), 0.1)
}

func TestAdamWValidate(t *testing.T) {
	if err := usual.Validate(); err != nil {
		t.Error(err)
	}
	for field, o := range map[string]AdamW{
		"Beta1":       {Beta1: 1, Beta2: 0.9, Eps: 1},
		"Beta2":       {Beta1: 0.9, Beta2: math.NaN(), Eps: 1},
		"Eps":         {Beta1: 0.9, Beta2: 0.9},
		"WeightDecay": {Beta1: 0.9, Beta2: 0.9, Eps: 1, WeightDecay: -1},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}

func TestClipNorm(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tc := range []struct {
		grads []float32
		norm  float64
		want  []float32
	}{
		{[]float32{3, 4}, 5, []float32{1.5, 2}},
		{[]float32{0.3, 0.4}, 0.5, []float32{0.3, 0.4}},
		{[]float32{0, 0}, 0, []float32{0, 0}},
		{[]float32{1, inf}, math.Inf(1), []float32{1, inf}},
		{nil, 0, nil},
	} {
		grads := slices.Clone(tc.grads)
		norm := ClipNorm(grads, 2.5)
		if math.Abs(norm-tc.norm) > 1e-7 || !slices.Equal(grads, tc.want) {
			t.Errorf("%v: norm %v and %v, want %v and %v", tc.grads, norm, grads, tc.norm, tc.want)
		}
	}
}

// TestScaledStepsAreStepsOfClippedGradients compares bits, with either optimizer.
func TestScaledStepsAreStepsOfClippedGradients(t *testing.T) {
	blocks := mixed()
	rng := rand.New(rand.NewPCG(6, 6))
	params, grads := normals(rng, mixedLen), normals(rng, mixedLen)
	clipped := slices.Clone(grads)
	norm := ClipNorm(clipped, 0.3)
	again, scale := ClipScale(grads, 0.3)
	if norm != again || scale >= 1 {
		t.Fatalf("norms %v and %v, factor %v", norm, again, scale)
	}
	want, got := slices.Clone(params), slices.Clone(params)
	usual.Step(want, clipped, []Span{{0, 12}}, NewAdamState(mixedLen, tensor.F32), 0.01)
	usual.StepScaled(got, grads, []Span{{0, 12}}, NewAdamState(mixedLen, tensor.F32), 0.01, scale)
	if !slices.Equal(got, want) {
		t.Error("AdamW: a scaled step leads elsewhere")
	}
	want, got = slices.Clone(params), slices.Clone(params)
	usualMuon.Step(want, clipped, blocks, NewMuonState(blocks, tensor.F32), NewWorkspace(blocks), 0.01)
	usualMuon.StepScaled(got, grads, blocks, NewMuonState(blocks, tensor.F32), NewWorkspace(blocks), 0.01, scale)
	if !slices.Equal(got, want) {
		t.Error("Muon: a scaled step leads elsewhere")
	}
}

func TestClipNormBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		grads := rapid.SliceOf(rapid.Float32Range(-1e6, 1e6)).Draw(t, "grads")
		bound := rapid.Float64Range(1e-3, 1e3).Draw(t, "max")
		before := ClipNorm(grads, bound)
		after := math.Sqrt(sumSquares(grads))
		if after > min(before, bound)*(1+1e-5) {
			t.Fatalf("norm is %v after clipping %v to %v", after, before, bound)
		}
	})
}
