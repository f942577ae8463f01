package oracle_test

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/optimizer/outer/oracle"
	"atoll/optimizer/outer/outertest"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// rig is a learner of one small fragment and its oracle.
type rig struct {
	t       *testing.T
	params  outer.Params
	f       outer.Fragment
	tip     *outer.Tip
	local   []float32
	learner *outer.Learner
	oracle  *oracle.Oracle
	steps   int
}

func newRig(t *testing.T, k codec.Kind) *rig {
	t.Helper()
	views := tensor.NewSlab([]tensor.Spec{{Name: "a.weight", Shape: []int{40, 30}}}).Views
	plan := outer.NewPlan(views, 1)
	r := &rig{t: t, params: outertest.Plain(1, 1<<40, 0), f: plan[0], local: make([]float32, 40*30)}
	r.params.Codec = k
	for i := range r.local {
		r.local[i] = float32(i%7) / 8
	}
	tips := plan.Genesis(r.local, r.params)
	r.tip = tips[0]
	r.learner = outer.NewLearner(r.params, plan, r.local, tips, func(uint64) ([]byte, error) { panic("all payloads are in memory") })
	r.oracle = oracle.New(r.f, k, r.tip)
	return r
}

// step trains a step that the oracle sees.
func (r *rig) step() {
	before := slices.Clone(r.local)
	r.steps++
	for i := range r.local {
		r.local[i] += float32((i*r.steps)%11-5) / 256
	}
	r.learner.Stepped(512, []uint32{r.tip.Round})
	r.oracle.Moved(before, r.local)
}

// draft publishes what is unpublished, and returns what the oracle must know of it.
func (r *rig) draft() (seq uint64, q []float32) {
	r.t.Helper()
	d, err := r.learner.Draft(0)
	if err != nil {
		r.t.Fatal(err)
	}
	q = make([]float32, r.f.Len)
	if err := codec.Decode(d.Payload, r.f.Len, q); err != nil {
		r.t.Fatal(err)
	}
	return d.Seq, q
}

// adopt moves the learner to a tip that has a round more and those own deltas.
func (r *rig) adopt(fold []uint64) outer.Adopt {
	r.t.Helper()
	global := slices.Clone(r.tip.Global)
	for i := range global {
		global[i] += float32(i%5) / 64
	}
	next := outer.Genesis(r.f, global, r.params)
	next.Round = r.tip.Round + 1
	a := outer.Adopt{Tip: next, Changes: folded(fold)}
	loss, err := r.learner.Follow(a)
	if err != nil || !loss.None() {
		r.t.Fatal(err, loss)
	}
	r.tip = next
	return a
}

func folded(seqs []uint64) (changes []outer.Change) {
	for _, seq := range seqs {
		changes = append(changes, outer.Change{Own: outer.Own{Seq: seq}, Fate: outer.Folded})
	}
	return changes
}

// slack is what rounding makes of the local parameters in a few steps.
const slack = 1e-5

func (r *rig) follows() bool { return r.oracle.Off(r.local) <= slack }

func TestShadowFollowsALearner(t *testing.T) {
	for _, k := range codec.Kinds() {
		r := newRig(t, k)
		for range 3 { // steps, a delta, steps, and its fold when the next delta has left
			r.step()
			first, q := r.draft()
			r.oracle.Published(r.params, first, q)
			r.step()
			second, q := r.draft()
			r.oracle.Published(r.params, second, q)
			r.step()
			r.oracle.Adopted(r.adopt([]uint64{first}), false)
			if err := r.learner.Return(0, outer.Own{Seq: second, Steps: 1, Tokens: 512}); err != nil {
				t.Fatal(err)
			}
			r.oracle.Returned([]uint64{second})
			if off := r.oracle.Off(r.local); off > slack {
				t.Fatalf("%v: the local parameters are %g off after %d steps", k, off, r.steps)
			}
		}
	}
}

// Whatever a learner would forget or count twice must show.
func TestShadowSeesWhatIsWrong(t *testing.T) {
	for what, wrong := range map[string]func(*rig){
		"a value that moved by itself": func(r *rig) { r.local[7] += 1. / 64 },
		"a step that was not taken":    func(r *rig) { r.oracle.Moved(r.local, make([]float32, len(r.local))) },
		"a delta in flight that the local parameters lack": func(r *rig) {
			seq, q := r.draft()
			r.oracle.Published(r.params, seq, q)
			for i, x := range q {
				r.local[i] -= x
			}
		},
		"what is held, in the local parameters": func(r *rig) {
			before := slices.Clone(r.local)
			seq, q := r.draft()
			r.oracle.Published(r.params, seq, q)
			copy(r.local, before)
		},
		"a fold that left a delta in the local parameters": func(r *rig) {
			seq, q := r.draft()
			r.oracle.Published(r.params, seq, q)
			a := r.adopt(nil)
			a.Changes = folded([]uint64{seq})
			r.oracle.Adopted(a, false)
		},
		"global parameters that the local ones did not follow": func(r *rig) { r.adopt(nil) },
	} {
		r := newRig(t, codec.Sparse)
		r.step()
		if !r.follows() {
			t.Fatal("the local parameters are off before anything went wrong")
		}
		if wrong(r); r.follows() {
			t.Errorf("%s is not seen", what)
		}
	}
}
