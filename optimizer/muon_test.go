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

var usualMuon = Muon{Momentum: 0.95, AdamW: usual}

// mixed is a model of each kind of block: an embedding, a gain, a wide matrix, a
// tall one and another gain.
func mixed() []Block {
	return []Block{
		{Span: Span{0, 12}, Decay: true}, {Span: Span{12, 3}}, {Span: Span{15, 15}, Rows: 3},
		{Span: Span{30, 28}, Rows: 7}, {Span: Span{58, 4}},
	}
}

const mixedLen = 62

// muonJudge is the formula of Muon in float64.
type muonJudge struct {
	rest *judge
	p, m []float64
}

func newMuonJudge(params []float32) *muonJudge {
	rest := newJudge(params)
	return &muonJudge{rest: rest, p: slices.Clone(rest.p), m: make([]float64, len(params))}
}

func (j *muonJudge) step(o Muon, grads []float32, blocks []Block, t int64, lr float64) {
	var decay []Span
	for _, b := range blocks {
		if b.Decay {
			decay = append(decay, b.Span)
		}
	}
	j.rest.step(o.AdamW, grads, decay, t, lr)
	for _, b := range blocks {
		if b.Rows == 0 {
			copy(j.p[b.Offset:], j.rest.p[b.Offset:b.Offset+b.Len])
			continue
		}
		j.matrix(o, grads, b, lr)
	}
}

func (j *muonJudge) matrix(o Muon, grads []float32, b Block, lr float64) {
	cols := b.Len / b.Rows
	u := newDense(b.Rows, cols)
	for k := range b.Len {
		g, m := float64(grads[b.Offset+k]), &j.m[b.Offset+k]
		*m = o.Momentum**m + (1-o.Momentum)*g
		u[k/cols][k%cols] = o.Momentum**m + (1-o.Momentum)*g
	}
	u = u.schulz()
	for k := range b.Len {
		p := &j.p[b.Offset+k]
		*p -= lr * (0.2*math.Sqrt(float64(max(b.Rows, cols)))*u[k/cols][k%cols] + o.AdamW.WeightDecay**p)
	}
}

func TestMuonAgainstJudge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		o := Muon{Momentum: rapid.Float64Range(0, 0.99).Draw(t, "momentum"), AdamW: usual}
		params, blocks := normals(rng, mixedLen), mixed()
		want, state, work := newMuonJudge(params), NewMuonState(blocks, tensor.F32), NewWorkspace(blocks)
		for step := int64(1); step <= 4; step++ {
			grads := normals(rng, mixedLen)
			lr := rapid.Float64Range(0, 0.01).Draw(t, "lr")
			o.Step(params, grads, blocks, state, work, lr)
			want.step(o, grads, blocks, step, lr)
		}
		for i := range params {
			if !(math.Abs(float64(params[i])-want.p[i]) < 1e-4) {
				t.Fatalf("parameter %d is %v, want %v", i, params[i], want.p[i])
			}
		}
	})
}

// TestMuonUpdateSize: the update's root mean square is what the factor is for.
func TestMuonUpdateSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, shape := range [][2]int{{16, 48}, {48, 16}, {8, 8}, {32, 100}} {
		blocks := onlyMatrix(shape[0], shape[1])
		n := shape[0] * shape[1]
		params, o := make([]float32, n), usualMuon
		o.Step(params, normals(rng, n), blocks, NewMuonState(blocks, tensor.F32), NewWorkspace(blocks), 1)
		if rms := math.Sqrt(tensor.SumSquares(params) / float64(n)); rms < 0.13 || rms > 0.25 {
			t.Errorf("%v: root mean square %v, want about 0.2", shape, rms)
		}
	}
}

// TestMuonWithoutMatrices is AdamW.
func TestMuonWithoutMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	blocks := []Block{{Span: Span{0, 30}, Decay: true}, {Span: Span{30, 10}}}
	a, grads := normals(rng, 40), normals(rng, 40)
	b := slices.Clone(a)
	adam, state, work := NewAdamState(40, tensor.F32), NewMuonState(blocks, tensor.F32), NewWorkspace(blocks)
	for range 3 {
		usual.Step(a, grads, []Span{{0, 30}}, adam, 0.01)
		usualMuon.Step(b, grads, blocks, state, work, 0.01)
	}
	if !slices.Equal(a, b) {
		t.Error("the parameters that Muon leaves to AdamW take other steps")
	}
}

// TestMuonThreadsAgree uses a matrix of several pieces.
func TestMuonThreadsAgree(t *testing.T) {
	defer tensor.SetThreads(tensor.Threads())
	const rows, cols = 70, 1000
	blocks := []Block{{Span: Span{0, 8}}, {Span: Span{8, rows * cols}, Rows: rows}}
	run := func(threads int) []float32 {
		tensor.SetThreads(threads)
		rng := rand.New(rand.NewPCG(4, 4))
		params, state, work := normals(rng, 8+rows*cols), NewMuonState(blocks, tensor.F32), NewWorkspace(blocks)
		for range 2 {
			usualMuon.Step(params, normals(rng, len(params)), blocks, state, work, 0.01)
		}
		return params
	}
	one := run(1)
	for _, threads := range []int{2, 5} {
		if !slices.Equal(one, run(threads)) {
			t.Errorf("the result with %d threads is another than with one", threads)
		}
	}
}

// TestMuonDropsTinyMomentum: it must not end as denormal numbers.
func TestMuonDropsTinyMomentum(t *testing.T) {
	blocks := onlyMatrix(1, 2)
	state := NewMuonState(blocks, tensor.F32)
	state.M.set(0, []float32{-0x1.01p-100, 0x1p-90})
	usualMuon.Step(make([]float32, 2), make([]float32, 2), blocks, state, NewWorkspace(blocks), 0.1)
	if m := state.M.wide; m[0] != 0 || m[1] == 0 {
		t.Errorf("momentum is %v", state.M)
	}
}

func TestMuonPanics(t *testing.T) {
	blocks := mixed()
	for _, c := range []struct {
		want   string
		params int
		blocks []Block
	}{
		{"63 parameters in blocks of 62", 63, blocks},
		{"62 parameters in blocks of 58", 62, blocks[:4]},
		{"at 12, after one that ends at 0", 62, blocks[1:]},
		{"28 values in 5 rows", 28, []Block{{Span: Span{0, 28}, Rows: 5}}},
		{"moments of 62 and 19", 62, []Block{{Span: Span{0, 62}, Rows: 2}}},
	} {
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, c.want) {
					t.Errorf("panic %q, want %q", text, c.want)
				}
			}()
			usualMuon.Step(make([]float32, c.params), make([]float32, c.params), c.blocks, NewMuonState(blocks, tensor.F32), NewWorkspace(blocks), 0.1)
		}()
	}
}

func TestMuonValidate(t *testing.T) {
	if err := usualMuon.Validate(); err != nil {
		t.Error(err)
	}
	for field, o := range map[string]Muon{
		"Momentum is 1":   {Momentum: 1, AdamW: usual},
		"Momentum is NaN": {Momentum: math.NaN(), AdamW: usual},
		"Momentum is -1":  {Momentum: -1, AdamW: usual},
		"Eps":             {Momentum: 0.9},
	} {
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: error %v", field, err)
		}
	}
}
