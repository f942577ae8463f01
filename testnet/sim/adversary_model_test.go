package sim

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// modelRun is a run of a small language model in which learners fold in step, so
// that outer steps are all that differs: no rounds, no network.
type modelRun struct {
	params   outer.Params
	plan     outer.Plan
	tips     []*outer.Tip
	learners []*trainer.Builtin
	liars    int     // the last so many
	times    float64 // by what they scale their progress
}

const (
	modelLearners = 8
	modelRounds   = 24
	modelRate     = 2e-3
)

var modelSize = llama.Config{
	Vocab: 256, Hidden: 48, Layers: 2, Heads: 2, KVHeads: 2, Intermediate: 128, Context: 64, RopeTheta: 10000, NormEps: 1e-5, Tied: true,
}

func newModelRun(t *testing.T, data *corpus.Corpus, step outerStep, liars int, times float64, seed uint64) *modelRun {
	t.Helper()
	r := &modelRun{params: Params(4, 1<<40, codec.Int4), liars: liars, times: times}
	r.params.MaxShare, r.params.Quorum = 0.5, 3
	step.set(&r.params)
	for i := range modelLearners {
		l, err := trainer.New(trainer.Config{
			Model: modelSize, Batch: 4, Optim: trainer.DefaultOptim(), Seed: seed, Author: [32]byte{byte(i)}, Threads: 1,
		}, data)
		if err != nil {
			t.Fatal(err)
		}
		r.learners = append(r.learners, l)
	}
	slab := r.learners[0].Slab()
	r.plan = outer.NewPlan(slab.Views, r.params.Fragments)
	for _, f := range r.plan {
		global := make([]float32, f.Len)
		f.Gather(slab.Data, global)
		r.tips = append(r.tips, outer.Genesis(f, global, r.params))
	}
	return r
}

// round takes H steps of each learner and folds what they made.
func (r *modelRun) round(t *testing.T) {
	t.Helper()
	for _, l := range r.learners {
		for range r.params.H {
			if _, err := l.Step(t.Context(), modelRate); err != nil && !strings.Contains(err.Error(), "diverged") {
				t.Fatal(err)
			}
		}
	}
	for p := range r.plan {
		r.fold(t, p)
	}
}

// fold merges a fragment, and moves learners as an adoption does: what a payload
// lost stays with its learner. A liar's own parameters are honest.
func (r *modelRun) fold(t *testing.T, p int) {
	t.Helper()
	f, tip := r.plan[p], r.tips[p]
	var set []outer.Contribution
	rest := make([][]float32, len(r.learners))
	for i, l := range r.learners {
		u := make([]float32, f.Len)
		f.Gather(l.Params(), u)
		for k := range u {
			u[k] -= tip.Global[k]
		}
		c, q := r.contribute(t, p, i, u)
		set = append(set, c)
		for k := range u {
			u[k] -= q[k]
		}
		rest[i] = u
	}
	next, _, err := outer.Fold(r.params, f, tip, tip.Round+1, set)
	if err != nil {
		t.Fatal(err)
	}
	r.tips[p] = next
	for i, l := range r.learners {
		for k := range rest[i] {
			rest[i][k] += next.Global[k]
		}
		f.Scatter(rest[i], l.Params())
	}
}

// contribute encodes the progress of learner i, or the lie, and returns what the
// honest payload decodes to.
func (r *modelRun) contribute(t *testing.T, p, i int, u []float32) (outer.Contribution, []float32) {
	t.Helper()
	payload, err := codec.Encode(r.params.Codec, u)
	if err != nil {
		t.Fatal(err)
	}
	q := make([]float32, len(u))
	if err := codec.Decode(payload, len(q), q); err != nil {
		t.Fatal(err)
	}
	if i >= modelLearners-r.liars {
		lie := make([]float32, len(q))
		for k, x := range q {
			lie[k] = float32(r.times * float64(x))
		}
		if payload, err = codec.Encode(r.params.Codec, lie); err != nil {
			t.Fatal(err)
		}
	}
	steps := uint32(r.params.H)
	d := outer.Delta{
		ID: outer.ID{byte(i)}, Author: outer.Author{byte(i)}, Fragment: p, Round: r.tips[p].Round + 1, Base: r.tips[p].Round,
		Steps: steps, Tokens: uint64(steps) * 4 * uint64(modelSize.Context), Codec: r.params.Codec, Size: len(payload),
	}
	return outer.Contribution{Delta: d, Payload: payload}, q
}

// bits are those per held-out byte of the global parameters; infinite if the run diverged.
func (r *modelRun) bits(t *testing.T, data *corpus.Corpus) float64 {
	t.Helper()
	slab := r.learners[0].Slab().Like()
	for p, f := range r.plan {
		f.Scatter(r.tips[p].Global, slab.Data)
	}
	bits, err := trainer.BitsPerByte(t.Context(), modelSize, slab, data.HeldOutSample(16<<10, modelSize.Context))
	if err != nil {
		return math.Inf(1)
	}
	return bits
}

// modelBits are those at the end of a run.
func modelBits(t *testing.T, data *corpus.Corpus, m outerStep, liars int, seed uint64) float64 {
	t.Helper()
	r := newModelRun(t, data, m, liars, -10, seed)
	for range modelRounds {
		r.round(t)
	}
	return r.bits(t, data)
}

// Bits per byte of a small language model with 0 (three seeds), 1 and 2 of 8 learners
// that flip the sign of ten times what they made. It takes some minutes: ATOLL_LONG=1.
func TestOuterStepsOfAModel(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" {
		t.Skip("takes minutes: ATOLL_LONG=1 runs it")
	}
	data, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Skip(err)
	}
	for _, m := range outerSteps {
		t.Run(m.name, func(t *testing.T) {
			row := ""
			for seed := range uint64(3) {
				row += fmt.Sprintf(" %.3f", modelBits(t, data, m, 0, seed+1))
			}
			for liars := 1; liars <= 2; liars++ {
				row += fmt.Sprintf(" | %.3f", modelBits(t, data, m, liars, 1))
			}
			t.Logf("| %s |%s |", m.name, row)
		})
	}
}
