package sim

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
)

// The learners of an unlikeRun that are not like the others.
const (
	otherKind   = iota // reads Go code where the others read prose
	otherPart          // reads a tenth of their text
	tenthSpeed         // makes a tenth of the steps
	coarse             // its arithmetic rounds to bf16
	roundLate          // its deltas come a round late
	unlikeKinds        // those after these are alike
)

// unlikeRun is a modelRun whose folds judge deltas.
type unlikeRun struct {
	*modelRun
	flight []*outer.Contribution  // by fragment: what roundLate has published and nobody has yet
	trusts [modelLearners]float64 // the least of each
	weight [modelLearners]float64 // in all folds
	claims [modelLearners]float64 // what it would be if nobody judged
}

const (
	unlikeRounds = 16
	judgedAfter  = 4 // rounds from which on a liar has to have lost its trust
	unlikeSeeds  = 4
)

// newUnlikeRun has the steps, the merge and the judgement of a new run.
func newUnlikeRun(t *testing.T, data *corpus.Corpus, others [2]*corpus.Corpus, liars int, seed uint64) *unlikeRun {
	t.Helper()
	r := &unlikeRun{modelRun: newModelRun(t, data, outerStep{set: func(p *outer.Params) {
		*p = ParamsOf(outer.Spec{Fragments: 4, H: 24, Learners: modelLearners, Budget: 1 << 40})
	}}, liars, -1, seed)}
	for i, text := range others {
		l, err := trainer.New(trainer.Config{
			Model: modelSize, Batch: 4, Optim: trainer.DefaultOptim(), Seed: seed, Author: [32]byte{byte(i)}, Threads: 1,
		}, text)
		if err != nil {
			t.Fatal(err)
		}
		r.learners[i] = l
	}
	r.flight = make([]*outer.Contribution, len(r.plan))
	for i := range r.trusts {
		r.trusts[i] = 1
	}
	return r
}

// play returns the bits at the end.
func (r *unlikeRun) play(t *testing.T, data *corpus.Corpus) float64 {
	t.Helper()
	for round := range unlikeRounds {
		for i, l := range r.learners {
			for range r.steps(i) {
				if _, err := l.Step(t.Context(), modelRate); err != nil {
					t.Fatal(err)
				}
			}
		}
		for p := range r.plan {
			r.foldUnlike(t, p)
			for i := range r.trusts {
				if liar := i >= modelLearners-r.liars; !liar || round >= judgedAfter {
					r.trusts[i] = min(r.trusts[i], r.tips[p].Trust(outer.Author{byte(i)}))
				}
			}
		}
	}
	return r.bits(t, data)
}

func (r *unlikeRun) steps(i int) int {
	if i == tenthSpeed {
		return r.params.H / 10
	}
	return r.params.H
}

// foldUnlike is fold, where some are unlike.
func (r *unlikeRun) foldUnlike(t *testing.T, p int) {
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
		c, kept := r.publish(t, p, i, u)
		if c != nil {
			set = append(set, *c)
		}
		rest[i] = kept
	}
	next, result, err := outer.Fold(r.params, f, tip, tip.Round+1, set)
	if err != nil {
		t.Fatal(err)
	}
	unjudged := r.params
	unjudged.OwnText = true
	_, claimed, err := outer.Fold(unjudged, f, tip, tip.Round+1, set)
	if err != nil {
		t.Fatal(err)
	}
	r.tips[p] = next
	for k, id := range result.Folded {
		r.weight[id[0]] += result.Weights[k]
		r.claims[id[0]] += claimed.Weights[k]
	}
	for i, l := range r.learners {
		for k := range rest[i] {
			rest[i][k] += next.Global[k]
		}
		f.Scatter(rest[i], l.Params())
	}
}

// publish is the delta of learner i that comes in this round, if one does, and what stays in its parameters.
func (r *unlikeRun) publish(t *testing.T, p, i int, u []float32) (c *outer.Contribution, rest []float32) {
	t.Helper()
	if i == roundLate {
		c = r.flight[p]
		if c != nil {
			before := make([]float32, len(u))
			if err := codec.Decode(c.Payload, len(before), before); err != nil {
				t.Fatal(err)
			}
			for k := range u {
				u[k] -= before[k]
			}
			c.Delta.Round, c.Delta.ID[1] = r.tips[p].Round+1, byte(r.tips[p].Round)
		}
		now, _ := r.contribute(t, p, i, u)
		r.flight[p] = &now
		return c, u
	}
	if i == coarse {
		for k := range u {
			u[k] = math.Float32frombits(math.Float32bits(u[k]) &^ 0xffff)
		}
	}
	now, q := r.contribute(t, p, i, u)
	now.Delta.Steps = uint32(r.steps(i))
	now.Delta.Tokens = uint64(now.Delta.Steps) * 4 * uint64(modelSize.Context)
	for k := range u {
		u[k] -= q[k]
	}
	return &now, u
}

// kept is the part of its claims that each learner weighs, in units of one like the others.
func (r *unlikeRun) kept() (kept [modelLearners]float64) {
	like := r.weight[unlikeKinds] / r.claims[unlikeKinds]
	for i, w := range r.weight {
		kept[i] = w / r.claims[i] / like
	}
	return kept
}

// Honest learners keep four fifths of their weight at least, on average over seeds, with part of the text, a tenth of
// the speed, another precision, or always late, while liars among these lose theirs within a few rounds. One whose text
// is of another kind altogether leads away from the others' and loses some. It takes a minute: ATOLL_LONG=1. Learners
// are, in the order of the log: Go code, a tenth of the text, a tenth of the speed, bf16, a round late, three others.
func TestUnlikeMembers(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" {
		t.Skip("takes a minute: ATOLL_LONG=1 runs it")
	}
	data, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Skip(err)
	}
	code, err := corpus.Open(corpus.GoCode)
	if err != nil {
		t.Skip(err)
	}
	part := filepath.Join(t.TempDir(), "part.txt")
	if err := os.WriteFile(part, data.Train()[:len(data.Train())/10], 0o600); err != nil {
		t.Fatal(err)
	}
	tenth, err := corpus.Open(part)
	if err != nil {
		t.Fatal(err)
	}
	var kept [modelLearners][]float64
	for seed := range uint64(unlikeSeeds) {
		for liars := range 3 {
			r := newUnlikeRun(t, data, [2]*corpus.Corpus{code, tenth}, liars, seed+1)
			bits := r.play(t, data)
			t.Logf("seed %d, %d liars: %.4f bits per byte; least trusts %.2f; of their weight they keep %.2f", seed+1, liars, bits, r.trusts, r.kept())
			for i, part := range r.kept() {
				if i < modelLearners-liars {
					kept[i] = append(kept[i], part)
				} else if r.trusts[i] > 0.1 {
					t.Errorf("liar %d has a trust of %.2f", i, r.trusts[i])
				}
			}
		}
	}
	for i, parts := range kept {
		least, mean := 0.8, 0.0
		for _, part := range parts {
			mean += part / float64(len(parts))
		}
		if i == otherKind {
			least = 0.6
		}
		t.Logf("learner %d keeps %.2f of its weight, %.2f to %.2f", i, mean, slices.Min(parts), slices.Max(parts))
		if mean < least || slices.Min(parts) < 0.5 {
			t.Errorf("learner %d keeps %.2f of its weight, want %.2f, and 0.5 in each run", i, mean, least)
		}
	}
}
