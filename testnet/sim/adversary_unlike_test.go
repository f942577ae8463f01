package sim

import (
	"math"
	"os"
	"path/filepath"
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
}

const (
	unlikeRounds = 16
	judgedAfter  = 4 // rounds from which on a liar has to have lost its trust
)

// newUnlikeRun has the steps, the merge and the judgement of a new run.
func newUnlikeRun(t *testing.T, data *corpus.Corpus, others [2]*corpus.Corpus, liars int) *unlikeRun {
	t.Helper()
	r := &unlikeRun{modelRun: newModelRun(t, data, mergeOf{set: func(p *outer.Params) {
		p.SetH(24)
		p.Agreement, p.Alike = true, true
	}}, liars, -1, 1)}
	for i, text := range others {
		l, err := trainer.New(trainer.Config{
			Model: modelSize, Batch: 4, Optim: trainer.DefaultOptim(), Seed: 1, Author: [32]byte{byte(i)}, Threads: 1,
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
			u[k] -= tip.Anchor[k]
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
	r.tips[p] = next
	for k, id := range result.Folded {
		r.weight[id[0]] += result.Weights[k]
	}
	for i, l := range r.learners {
		for k := range rest[i] {
			rest[i][k] += next.Anchor[k]
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
	if i == coarse {
		now.Delta.Precision = outer.PrecisionBF16
	}
	now.Delta.Steps = uint32(r.steps(i))
	now.Delta.Tokens = uint64(now.Delta.Steps) * 4 * uint64(modelSize.Context)
	for k := range u {
		u[k] -= q[k]
	}
	return &now, u
}

// shares are the weights of learners, in units of one like the others.
func (r *unlikeRun) shares() (shares [modelLearners]float64) {
	for i, w := range r.weight {
		shares[i] = w / r.weight[unlikeKinds]
	}
	return shares
}

// Honest learners keep four fifths of their weight at least, with part of the text, a tenth of the speed, another
// precision, or always late, while liars among these lose theirs within a few rounds. One whose text is of another
// kind altogether leads away from the others' and loses some. It takes a minute: ATOLL_LONG=1.
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
	for liars := range 3 {
		r := newUnlikeRun(t, data, [2]*corpus.Corpus{code, tenth}, liars)
		bits := r.play(t, data)
		t.Logf("%d liars: %.4f bits per byte; least trust of one with Go code, with a tenth of the text, a tenth of the speed, bf16, a round late, and three others: %.2f; weights, of a learner like the others: %.2f", liars, bits, r.trusts, r.shares())
		if kept := r.shares()[otherKind]; kept < 0.5 {
			t.Errorf("%d liars: whoever reads Go code keeps %.2f of the weight", liars, kept)
		}
		for i, trust := range r.trusts {
			if liar := i >= modelLearners-liars; !liar && i != otherKind && trust < 0.8 || liar && trust > 0.1 {
				t.Errorf("%d liars: learner %d has a trust of %.2f", liars, i, trust)
			}
		}
	}
}
