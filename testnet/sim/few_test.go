package sim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
)

// fewMember is a learner of a run of few.
type fewMember struct {
	text   *corpus.Corpus // nil is prose
	slow   int            // it takes H steps in so many rounds; 0 is 1
	batch  int            // sequences a step; 0 is fewBatch
	frozen bool           // it makes no progress in the second tensor of each fragment
	fault  fewFault       // nil where it is honest
	claims float64        // the tokens that it claims, in units of those it made; 0 is 1
}

const (
	fewRounds = 12
	fewBatch  = 4
	fewRate   = 8e-3
	fewSeeds  = 3
)

// fewRun is a run of a small language model in which few learners fold in step, by the rules of a new run. The network,
// the self-check and the schedule of the rate have no part in it.
type fewRun struct {
	params   outer.Params
	plan     outer.Plan
	tips     []*outer.Tip
	learners []*fewLearner
	made     uint64 // honest tokens
	share    float64
	folds    int // that share is the sum of: the last member's part of all weight
}

type fewLearner struct {
	*trainer.Builtin
	fewMember
	rng      *rand.Rand
	owed     float64           // steps
	steps    []uint32          // that no delta of the fragment has
	base     []uint32          // of these
	fixed    map[int][]float32 // by fragment, of the fault of that name
	sent     map[int][][]float32
	round    int
	fragment int
}

func newFewRun(t *testing.T, members []fewMember, seed uint64) *fewRun {
	t.Helper()
	const h = 24
	r := &fewRun{params: outer.Spec{
		Fragments: 4, H: h, Learners: len(members), StepTokens: fewTokens, Budget: 3 * uint64(fewRounds*len(members)*h) * fewTokens, CreatedMs: Start,
	}.Params()}
	for i, m := range members {
		r.learners = append(r.learners, newFewLearner(t, m, i, r.params.Fragments, seed))
	}
	slab := r.learners[0].Slab()
	r.plan = outer.NewPlan(slab.Views, r.params.Fragments)
	r.tips = r.plan.Genesis(slab.Data, r.params)
	return r
}

// fewTokens are those of a usual step.
var fewTokens = uint64(fewBatch * modelSize.Context)

func newFewLearner(t *testing.T, m fewMember, i, fragments int, seed uint64) *fewLearner {
	t.Helper()
	m.slow, m.claims = max(m.slow, 1), max(m.claims, 1)
	if m.batch == 0 {
		m.batch = fewBatch
	}
	if m.text == nil {
		m.text = prose(t)
	}
	optim := trainer.DefaultOptim()
	optim.Name = optimizer.NameMuon
	b, err := trainer.New(trainer.Config{
		Model: modelSize, Batch: m.batch, Optim: optim, Seed: seed, Author: [32]byte{byte(i)}, Threads: 1,
	}, m.text)
	if err != nil {
		t.Fatal(err)
	}
	return &fewLearner{
		Builtin: b, fewMember: m, rng: rand.New(rand.NewPCG(seed, uint64(i))),
		steps: make([]uint32, fragments), base: make([]uint32, fragments), fixed: map[int][]float32{}, sent: map[int][][]float32{},
	}
}

func prose(t *testing.T) *corpus.Corpus {
	t.Helper()
	data, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Skip(err)
	}
	return data
}

// playOn goes on for some rounds, in each of which the fastest takes H steps.
func (r *fewRun) playOn(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		for _, l := range r.learners {
			l.train(t, r.params.H)
		}
		for p := range r.plan {
			r.fold(t, p)
		}
	}
}

// train takes a round's steps. What diverged by the global parameters of others goes on.
func (l *fewLearner) train(t *testing.T, h int) {
	t.Helper()
	for l.owed += float64(h) / float64(l.slow); l.owed >= 1; l.owed-- {
		if _, err := l.Step(t.Context(), fewRate); err != nil && !strings.Contains(err.Error(), "diverged") {
			t.Fatal(err)
		}
		for p := range l.steps {
			l.steps[p]++
		}
	}
	l.round++
}

// fold merges a fragment and moves the learners as an adoption does.
func (r *fewRun) fold(t *testing.T, p int) {
	t.Helper()
	f, tip := r.plan[p], r.tips[p]
	var set []outer.Contribution
	rest := make([][]float32, len(r.learners))
	for i, l := range r.learners {
		c, u := r.contribute(t, p, i)
		if rest[i] = u; c != nil {
			set = append(set, *c)
		} else if l.steps[p] == 0 {
			l.base[p] = tip.Round + 1
		}
	}
	next, result, err := outer.Fold(r.params, f, tip, tip.Round+1, set)
	if err != nil {
		t.Fatal(err)
	}
	r.addShare(result)
	r.tips[p] = next
	for i, l := range r.learners {
		for k := range rest[i] {
			rest[i][k] += next.Global[k]
		}
		f.Scatter(rest[i], l.Params())
	}
}

// addShare adds the last member's share of a fold to the sum.
func (r *fewRun) addShare(result outer.Result) {
	total, last := 0.0, 0.0
	for k, id := range result.Folded {
		total += result.Weights[k]
		if int(id[0]) == len(r.learners)-1 {
			last = result.Weights[k]
		}
	}
	if r.folds++; total > 0 {
		r.share += last / total
	}
}

// contribute is the delta of learner i for the open round, nil where it has too few steps or its fault sends none, and
// what the learner has beside the global parameters once it is published.
func (r *fewRun) contribute(t *testing.T, p, i int) (*outer.Contribution, []float32) {
	t.Helper()
	l, f, tip := r.learners[i], r.plan[p], r.tips[p]
	u := make([]float32, f.Len)
	f.Gather(l.Params(), u)
	for k := range u {
		u[k] = finite(u[k] - tip.Global[k])
	}
	l.freeze(f, u)
	if int(l.steps[p]) < r.params.HMin {
		return nil, u
	}
	payload, q := encoded(t, r.params.Codec, u)
	if l.fault != nil {
		l.fragment = p
		lie := l.fault(l, f, q)
		if lie == nil {
			return nil, u
		}
		payload, _ = encoded(t, r.params.Codec, lie)
	}
	for k := range u {
		u[k] -= q[k]
	}
	made := uint64(l.steps[p]) * uint64(l.batch*modelSize.Context)
	r.made += made
	d := outer.Delta{
		ID: outer.ID{byte(i), byte(p), byte(tip.Round)}, Author: outer.Author{byte(i)}, Fragment: p, Round: tip.Round + 1, Base: l.base[p],
		Steps: l.steps[p], Tokens: uint64(float64(made) * l.claims), Codec: r.params.Codec, Size: len(payload),
	}
	l.steps[p], l.base[p] = 0, tip.Round+1
	return &outer.Contribution{Delta: d, Payload: payload}, u
}

// freeze takes the progress in one tensor away.
func (l *fewLearner) freeze(f outer.Fragment, u []float32) {
	if l.frozen && len(f.Tensors) > 1 {
		first := f.Tensors[0].Len
		clear(u[first : first+f.Tensors[1].Len])
	}
}

// finite is x where the model is broken: a number that a codec takes.
func finite(x float32) float32 {
	if x != x {
		return 0
	}
	return min(max(x, -1e36), 1e36)
}

// encoded is the payload of v, and what it decodes to.
func encoded(t *testing.T, k codec.Kind, v []float32) (payload []byte, q []float32) {
	t.Helper()
	payload, err := codec.Encode(k, v)
	if err != nil {
		t.Fatal(err)
	}
	q = make([]float32, len(v))
	if err := codec.Decode(payload, len(q), q); err != nil {
		t.Fatal(err)
	}
	return payload, q
}

// fewResult is what a run of few came to.
type fewResult struct {
	bits    float64 // for each held-out byte; infinite where the model is broken
	share   float64 // of the last member, in the weight of a fold
	trust   float64 // of the last member at the end, over fragments
	counted float64 // tokens that count, in units of those that were made
	ended   bool    // before its end
}

func (r *fewRun) result(t *testing.T) (out fewResult) {
	t.Helper()
	slab := r.learners[0].Slab().Like()
	var counted uint64
	last := outer.Author{byte(len(r.learners) - 1)}
	for p, f := range r.plan {
		f.Scatter(r.tips[p].Global, slab.Data)
		counted += r.tips[p].Tokens
		out.ended = out.ended || r.tips[p].EndRound != 0
		out.trust += r.tips[p].Trust(last) / float64(len(r.plan))
	}
	out.share, out.counted = r.share/float64(r.folds), float64(counted)/float64(r.made)
	bits, err := trainer.BitsPerByte(t.Context(), modelSize, slab, prose(t).HeldOutSample(16<<10, modelSize.Context))
	if out.bits = bits; err != nil {
		out.bits = math.Inf(1)
	}
	return out
}

// playFew is the mean of runs of so many seeds.
func playFew(t *testing.T, seeds int, members ...fewMember) (mean fewResult) {
	t.Helper()
	for seed := range seeds {
		r := newFewRun(t, members, uint64(seed+1))
		r.playOn(t, fewRounds)
		one := r.result(t)
		mean.bits += one.bits / float64(seeds)
		mean.share += one.share / float64(seeds)
		mean.trust += one.trust / float64(seeds)
		mean.counted += one.counted / float64(seeds)
		mean.ended = mean.ended || one.ended
	}
	return mean
}

func (r fewResult) String() string {
	end := ""
	if r.ended {
		end = ", ENDS EARLY"
	}
	return fmt.Sprintf("%.3f bits, share %.2f, trust %.2f, counted %.2f%s", r.bits, r.share, r.trust, r.counted, end)
}
