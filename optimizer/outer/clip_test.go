package outer

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"atoll/tensor"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// judge is the specification of a fold's arithmetic, written for reading: every delta
// decoded at once, one tensor at a time, no lanes. It returns global parameters and reference.
func judge(m *medians, t testing.TB, p Params, f Fragment, prev *Tip, set []Contribution, weights []float64) (global, ref []float64) {
	f.each(func(k, at, n int) {
		var vs [][]float64
		for _, c := range set {
			all := make([]float32, f.Len)
			if err := codec.Decode(c.Payload, f.Len, all); err != nil {
				t.Fatal(err)
			}
			v := make([]float64, n)
			for i := range v {
				v[i] = float64(all[at+i])
			}
			vs = append(vs, v)
		}
		spoken, vs, ws := judgeSilence(m, p, float64(prev.Ref[k]), norm32(prev.Global[at:at+n]), set, vs, weights)
		r, u := float64(prev.Ref[k]), make([]float64, n)
		if len(vs) > 0 {
			r, u = judgeTensor(m, p, r, spoken, vs, ws, prev.Round+1)
		}
		ref = append(ref, r)
		for i := range u {
			m := u[i]
			if p.Mu != 0 {
				m += p.Mu * float64(prev.Momentum[at+i])
			}
			global = append(global, float64(prev.Global[at+i])+p.Eta*(u[i]+p.Mu*m))
		}
	})
	return global, ref
}

// judgeSilence leaves out who says nothing in a tensor of so much length.
func judgeSilence(m *medians, p Params, ref, global float64, set []Contribution, vs [][]float64, weights []float64) (spoken []Contribution, out [][]float64, ws []float64) {
	var norms, ones []float64
	unit := func(i int) float64 { return length(vs[i]) * math.Sqrt(float64(p.H)/float64(set[i].Delta.Steps)) }
	most := 0.0
	for i := range vs {
		if n := unit(i); n > 0 {
			norms, ones, most = append(norms, n), append(ones, 1), max(most, n)
		}
	}
	usual := m.of(norms, ones)
	if ref > 0 {
		usual = min(ref, most)
	} else if len(norms) == 2 {
		usual = min(most, global/8)
	}
	for i := range vs {
		if n := unit(i); n > 0 && n >= usual/16 {
			spoken, out, ws = append(spoken, set[i]), append(out, vs[i]), append(ws, weights[i])
		}
	}
	return spoken, out, ws
}

func judgeTensor(m *medians, p Params, ref float64, set []Contribution, vs [][]float64, weights []float64, round uint32) (float64, []float64) {
	perH := func(i int) float64 { return math.Sqrt(float64(p.H) / float64(set[i].Delta.Steps)) }
	median := func() float64 {
		var norms, ws []float64
		for i, v := range vs {
			if n := length(v); n > 0 {
				norms, ws = append(norms, n*perH(i)), append(ws, weights[i])
			}
		}
		return m.of(norms, ws)
	}
	limit, moving := ref, 0
	for _, v := range vs {
		if length(v) > 0 {
			moving++
		}
	}
	switch {
	case ref == 0:
		limit = median()
	case round <= youngRounds && moving > 1:
		limit = max(ref, min(median(), youngGrowth*ref))
	}
	for i, v := range vs {
		if most := p.ClipFactor * limit / perH(i); length(v) > most {
			scale(v, most/length(v))
		}
	}
	switch m := median(); {
	case ref == 0:
		ref = m
	case m != 0:
		ref = p.RefDecay*ref + (1-p.RefDecay)*m
	}
	return ref, judgeClip(m, vs, weights)
}

func length(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x * x
	}
	return math.Sqrt(s)
}

func scale(v []float64, a float64) {
	for i := range v {
		v[i] *= a
	}
}

func TestFoldAgreesWithTheJudge(t *testing.T) {
	f := toyFragment()
	folds, torn := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt)
		tip := Genesis(f, vector(7, f.Len), p)
		tip.Round = rapid.SampledFrom([]uint32{0, youngRounds - 1}).Draw(rt, "rounds before")
		for end := tip.Round + 3; tip.Round < end; {
			round := tip.Round + 1
			set := drawSet(rt, t, p, f, round)
			next, r, err := Fold(p, f, tip, round, set)
			if err != nil || len(r.Refused) > 0 {
				rt.Fatal(err, r.Refused)
			}
			if len(set) > 0 && slices.Max(r.Weights) > 0 {
				var m medians
				global, ref := judge(&m, t, p, f, tip, set, r.Weights)
				if folds++; m.torn {
					torn++
				} else {
					near(rt, "global parameters", next.Global, global, 1e-4)
					near(rt, "ref", next.Ref, ref, 1e-4)
				}
			}
			tip = next
		}
	})
	// It is one fold in ten thousand, so one may be among the few of a short run.
	if torn > max(1, folds/100) {
		t.Errorf("%d of %d folds were not judged", torn, folds)
	}
}

// medians are weighted lower medians, added up as a fold does. Values that differ only
// by rounding may come in any order, and weights that come to half of all may differ in
// the last bit. torn is where that leads to other medians, which no judge can know.
type medians struct{ torn bool }

func (m *medians) of(values, weights []float64) float64 {
	alike := func(a, b float64) int {
		if math.Abs(a-b) < 1e-5*max(a, b) {
			return 0
		}
		return cmp.Compare(a, b)
	}
	up := medianBy(values, weights, func(a, b int) int { return cmp.Or(alike(values[a], values[b]), a-b) })
	down := medianBy(values, weights, func(a, b int) int { return cmp.Or(alike(values[a], values[b]), b-a) })
	m.torn = m.torn || alike(up, down) != 0
	return up
}

func medianBy(values, weights []float64, compare func(a, b int) int) float64 {
	order, total, sum := make([]int, len(values)), 0.0, 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	slices.SortFunc(order, compare)
	for n, i := range order {
		sum += weights[i]
		if 2*sum >= total || n == len(order)-1 {
			return values[i]
		}
	}
	return 0
}

func near(t *rapid.T, what string, got []float32, want []float64, tolerance float64) {
	for i, x := range got {
		if math.Abs(float64(x)-want[i]) > tolerance*(1+math.Abs(want[i])) {
			t.Fatalf("%s value %d: got %v, the judge says %v", what, i, x, want[i])
		}
	}
}

func TestMergeOfEqualDeltasIsThatDelta(t *testing.T) {
	p, f := toyParams(), toyFragment()
	v := vector(3, f.Len)
	var set []Contribution
	for author := range byte(5) {
		c := contribution(t, p, author, 1, v)
		c.Delta.Tokens -= uint64(author) * 1000
		set = append(set, c)
	}
	tip := mustFold(t, p, f, Genesis(f, make([]float32, f.Len), p), set...)
	for i, a := range tip.Global {
		if math.Abs(float64(a-v[i])) > 1e-6*math.Abs(float64(v[i])) {
			t.Fatalf("value %d: %v became %v", i, v[i], a)
		}
	}
}

func TestClipBoundsAnyDelta(t *testing.T) {
	p, f := toyParams(), toyFragment()
	tip := mustFold(t, p, f, Genesis(f, make([]float32, f.Len), p), contribution(t, p, 1, 1, vector(1, f.Len)))
	huge := vector(2, f.Len)
	tensor.Scale(1e6, huge)
	c := contribution(t, p, 1, 2, huge)
	c.Delta.Steps = 4 * uint32(p.H)
	next := mustFold(t, p, f, tip, c)
	f.each(func(k, at, n int) {
		moved := make([]float32, n)
		for i := range moved {
			moved[i] = next.Global[at+i] - tip.Global[at+i]
		}
		want := p.ClipFactor * float64(tip.Ref[k]) * 2 // sqrt(steps/H)
		if got := norm32(moved); math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s moved by %v, the clip is %v", f.Tensors[k].Name, got, want)
		}
		if got, want := float64(next.Ref[k]), float64(tip.Ref[k])*1.2; math.Abs(got-want) > 1e-4*want {
			t.Errorf("%s: reference %v, want 0.9 + 0.1 x 3 = 1.2 of %v", f.Tensors[k].Name, got, tip.Ref[k])
		}
	})
}

// The first round has no reference from before and yet one delta does not decide it.
func TestFirstRoundClipsByItsMedian(t *testing.T) {
	p, f := toyParams(), toyFragment()
	huge := vector(9, f.Len)
	tensor.Scale(1e6, huge)
	tip := mustFold(t, p, f, Genesis(f, make([]float32, f.Len), p),
		contribution(t, p, 1, 1, vector(1, f.Len)), contribution(t, p, 2, 1, vector(2, f.Len)), contribution(t, p, 3, 1, huge))
	f.each(func(k, at, n int) {
		if got, most := norm32(tip.Global[at:at+n]), 2*float64(tip.Ref[k]); got > most {
			t.Errorf("%s moved by %v with a reference of %v", f.Tensors[k].Name, got, tip.Ref[k])
		}
	})
}

// While a fragment is young its reference is too low. Deltas that all grew tenfold are
// not clipped. A delta that grew alone is, and so are two that agree on more.
func TestYoungRoundsFollowTheirMedian(t *testing.T) {
	p, f := toyParams(), toyFragment()
	grown := func(author byte, round uint32, by float32) Contribution {
		v := vector(uint64(author), f.Len)
		tensor.Scale(by, v)
		return contribution(t, p, author, round, v)
	}
	start := Genesis(f, make([]float32, f.Len), p)
	first := mustFold(t, p, f, start, grown(1, 1, 1), grown(2, 1, 1))
	// moved is by how much a round of these deltas moves the global parameters, where the reference
	// is of a tenth of their norms.
	moved := func(round uint32, set ...Contribution) float64 {
		tip := Genesis(f, make([]float32, f.Len), p)
		tip.Round = round - 1
		for i := range tip.Ref {
			tip.Ref[i] = first.Ref[i] / 10
		}
		return norm32(mustFold(t, p, f, tip, set...).Global)
	}
	free := norm32(first.Global)
	const old = youngRounds + 1
	for _, c := range []struct {
		name        string
		got         float64
		least, most float64 // of free
	}{
		{"two in round 2", moved(2, grown(1, 2, 1), grown(2, 2, 1)), 0.99, 1},
		{"two in the last young round", moved(youngRounds, grown(1, youngRounds, 1), grown(2, youngRounds, 1)), 0.99, 1},
		{"two in an old round", moved(old, grown(1, old, 1), grown(2, old, 1)), 0, 0.5},
		{"one alone", moved(2, grown(1, 2, 1)), 0, 0.5},
		{"one beside a delta of zeros", moved(2, grown(1, 2, 1e6), grown(2, 2, 0)), 0, 0.5},
		{"one of three that grew a million times", moved(2, grown(1, 2, 1), grown(2, 2, 1), grown(3, 2, 1e6)), 0, 4},
		{"two that did", moved(2, grown(1, 2, 1e6), grown(2, 2, 1e6)), 0, 2},
	} {
		if x := c.got / free; x < c.least || x > c.most {
			t.Errorf("%s: moved by %.3f of what is free, want %v to %v", c.name, x, c.least, c.most)
		}
	}
}

func TestZeroDeltas(t *testing.T) {
	p, f := toyParams(), toyFragment()
	start := Genesis(f, vector(1, f.Len), p)
	zero := make([]float32, f.Len)
	still := mustFold(t, p, f, start, contribution(t, p, 1, 1, zero), contribution(t, p, 2, 1, zero))
	if !slices.Equal(still.Global, start.Global) || !slices.Equal(still.Ref, start.Ref) {
		t.Error("deltas of zero move the global parameters or the reference")
	}
	v := vector(5, f.Len)
	moved := mustFold(t, p, f, still, contribution(t, p, 1, 2, zero), contribution(t, p, 2, 2, v))
	for i, a := range moved.Global {
		if want := float64(start.Global[i]) + float64(v[i]); math.Abs(float64(a)-want) > 1e-5 {
			t.Fatalf("value %d: got %v, want %v: beside a delta of zero all of the other is kept", i, a, want)
		}
	}
	if got, want := float64(moved.Ref[1]), norm32(v[32:332]); math.Abs(got-want) > 1e-5*want {
		t.Errorf("reference %v, want %v: a delta of zero has no vote", got, want)
	}
}

func TestLowerMedian(t *testing.T) {
	for _, c := range []struct {
		values, weights []float64
		want            float64
	}{
		{nil, nil, 0},
		{[]float64{7}, []float64{1}, 7},
		{[]float64{3, 1}, []float64{1, 1}, 1},
		{[]float64{3, 1, 2}, []float64{1, 1, 1}, 2},
		{[]float64{3, 1, 2}, []float64{5, 1, 1}, 3},
		{[]float64{4, 3, 2, 1}, []float64{1, 1, 1, 1}, 2},
	} {
		if got := lowerMedian(c.values, c.weights); got != c.want {
			t.Errorf("%v with %v: got %v, want %v", c.values, c.weights, got, c.want)
		}
	}
}
