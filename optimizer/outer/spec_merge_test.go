package outer_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"pgregory.net/rapid"
)

// Clauses of F whose arithmetic a few numbers show, worked out by hand.

// plainRun is a run over one value: no momentum, no caps below a half.
func plainRun() (outer.Params, outer.Fragment) {
	p := plain()
	p.Eta, p.Mu, p.ClipFactor = 1, 0, 2
	return p, fragment("w", 1)
}

// after is the tip after a round of deltas of one value each, by authors 1, 2, ... From a tip of that round
// and reference, with the global parameters 0.
func after(t testing.TB, p outer.Params, round uint32, ref float32, values ...float32) *outer.Tip {
	t.Helper()
	f := fragment("w", 1)
	tip := zeroTip(p, f)
	tip.Round, tip.Ref = round-1, []float32{ref}
	var set []outer.Contribution
	for i, v := range values {
		set = append(set, delta(t, p, byte(i+1), round, v))
	}
	tip, _ = agree(t, p, f, tip, set...)
	return tip
}

// beside is where the first value is after a round of deltas that have 1 as their second one, so that none is silent.
func beside(t testing.TB, p outer.Params, values ...float32) float32 {
	t.Helper()
	f := fragment("w", 2)
	var set []outer.Contribution
	for i, v := range values {
		set = append(set, delta(t, p, byte(i+1), 1, v, 1))
	}
	tip, _ := agree(t, p, f, zeroTip(p, f), set...)
	return tip.Global[0]
}

// near fails unless x is y up to the rounding of a few sums.
func near(t testing.TB, what string, x float32, y float64) {
	t.Helper()
	if math.Abs(float64(x)-y) > 1e-6*math.Abs(y) {
		t.Errorf("%s: %v, want %v", what, x, y)
	}
}

// Of 1e30, -1e30 and 1 a sum in this order leaves 1, and in others 0.
func specOrder(t *testing.T, s *spectest.Spec) {
	p, f := plainRun()
	f = fragment("w", 2)
	fold := func(authors [3]byte, ids [3]byte) float32 {
		var set []outer.Contribution
		for i, v := range []float32{1e30, -1e30, 1} {
			c := delta(t, p, authors[i], 1, v, 1e30) // the second value makes none of them silent
			c.Delta.ID = outer.ID{ids[i]}
			set = append(set, c)
		}
		slices.Reverse(set)
		tip, _ := agree(t, p, f, zeroTip(p, f), set...)
		return tip.Global[0]
	}
	near(t, "by author", fold([3]byte{1, 2, 3}, [3]byte{3, 2, 1}), 1.0/3)
	near(t, "by id", fold([3]byte{1, 1, 1}, [3]byte{1, 2, 3}), 1.0/3)
	for _, other := range [][3]byte{{1, 3, 2}, {2, 3, 1}, {3, 1, 2}} {
		if x, y := fold(other, [3]byte{1, 2, 3}), fold([3]byte{1, 1, 1}, other); x != 0 || y != 0 {
			t.Errorf("in the order %d: %v by author, %v by id", other, x, y)
		}
	}
}

// In binary32 nothing of the smallest would be left.
func specWide(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	p.ClipFactor = 1e6
	if x := beside(t, p, 1, 0x1p-30, -1); x <= 0x1p-32 || x >= 0x1p-30 { // 0 if sums were of 32 bits
		t.Errorf("1, 2^-30 and -1 come to %v", x)
	}
}

func specSumsInOrder(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	p.ClipFactor = 1e6
	near(t, "1, -1 and 2^-60", beside(t, p, 1, -1, 0x1p-60), 0x1p-60/3)
	if x := beside(t, p, 1, 0x1p-60, -1); x != 0 {
		t.Errorf("1, 2^-60 and -1: %v", x)
	}
}

// Package and text take the root of 200 bits, rounded once.
func specRoot(t *testing.T, s *spectest.Spec) {
	r := rand.New(rand.NewPCG(4, 5))
	for range 1000 {
		x := r.Float64() * math.Ldexp(1, r.IntN(600)-300)
		if want, _ := new(big.Float).Sqrt(new(big.Float).SetPrec(200).SetFloat64(x)).Float64(); math.Sqrt(x) != want {
			t.Fatalf("the root of %v is %v, want %v", x, math.Sqrt(x), want)
		}
	}
	p, _ := plainRun()
	f := fragment("w", 2)
	if tip, _ := agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, 3, 4)); tip.Ref[0] != 5 {
		t.Errorf("the norm of 3 and 4 is %v", tip.Ref[0])
	}
}

// specLanes holds the lanes that the package sums in to the text.
func specLanes(t *testing.T, s *spectest.Spec) {
	differ := false
	for _, n := range []int{1, 16, 17, 500} {
		v := random(uint64(n), n)
		var got tensor.Lanes
		got.AddSquares(0, v[:n/2])
		got.AddSquares(n/2, v[n/2:])
		for lane := range 16 {
			sum, backward := 0.0, 0.0
			for i, x := range v {
				if i%16 == lane {
					sum += float64(float64(x) * float64(x))
				}
				if j := len(v) - 1 - i; j%16 == lane {
					backward += float64(float64(v[j]) * float64(v[j]))
				}
			}
			if differ = differ || backward != sum; got[lane] != sum {
				t.Errorf("lane %d of %d values is %v, by the text %v", lane, n, got[lane], sum)
			}
		}
	}
	if !differ {
		t.Error("no lane of this test tells an order")
	}
}

func specNorm(t *testing.T, s *spectest.Spec) {
	differ := false
	for _, n := range []int{0, 1, 15, 16, 17, 31, 33, 100, 1000} {
		v := random(uint64(n), n)
		var lanes tensor.Lanes
		lanes.AddSquares(0, v)
		inTurn := 0.0
		for _, x := range lanes {
			inTurn += x
		}
		want := norm(widen(v))
		differ = differ || math.Sqrt(inTurn) != want
		if got := math.Sqrt(lanes.Sum()); got != want || math.Abs(got-math.Sqrt(inTurn)) > 1e-12*got {
			t.Errorf("the norm of %d values is %v, by the text %v", n, got, want)
		}
		p, f := plain(), fragment("w", max(n, 1))
		agree(t, p, f, zeroTip(p, f), delta(t, p, 1, 1, random(uint64(n), max(n, 1))...))
	}
	if !differ {
		t.Error("no norm of this test tells how lanes are added")
	}
}

func specCapped(t *testing.T, s *spectest.Spec) {
	p := plain()
	p.MaxShare = 0.5
	var set []outer.Delta
	for _, tokens := range []uint64{1, 100, 2, 1} {
		set = append(set, outer.Delta{Round: 1, Steps: 1, Tokens: tokens})
	}
	if got := outer.Weights(p, set); !slices.Equal(got, []float64{1, 6, 4, 1}) { // of 1, 10000, 4 and 1
		t.Errorf("weights %v", got)
	}
	two := set[:2]
	two[0].Steps, two[0].Tokens, two[1].Steps, two[1].Tokens = 4, 40, 1, 10
	if got := outer.Weights(p, two); !slices.Equal(got, []float64{400, 100}) { // four of five steps
		t.Errorf("weights of work %v", got)
	}
	two[1].Tokens = 1000
	if got := outer.Weights(p, two); !slices.Equal(got, []float64{400, 400}) { // a claim, up to a half
		t.Errorf("weights beside a claim %v", got)
	}
}

// Where each may have no more than its even share, rounding hides S now and then.
func specNoShare(t *testing.T, s *spectest.Spec) {
	r := rand.New(rand.NewPCG(6, 7))
	none := 0
	for range 2000 {
		p := plain()
		p.MaxShare = 1e-6
		var set []outer.Delta
		var weights, caps []float64
		var members []int
		for i := range 2 + r.IntN(11) {
			tokens := 1 + r.Uint64N(1<<16)
			set = append(set, outer.Delta{Round: 1, Steps: 1, Tokens: tokens})
			weights, members = append(weights, float64(tokens)*float64(tokens)), append(members, i)
		}
		for range set {
			caps = append(caps, 1/float64(len(set)))
		}
		if _, found := sumByText(members, weights, caps); !found {
			none++
		}
		got := outer.Weights(p, set)
		if !slices.Equal(got, cappedByText(p, set, weights)) || slices.Max(got) > slices.Min(weights)*(1+1e-9) {
			t.Fatalf("of %v become %v", weights, got)
		}
	}
	if none == 0 {
		t.Error("there is such a k for all weights")
	}
}

func specTotal(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	if x.total != 64+64 {
		t.Errorf("Total is %v", x.total)
	}
}

func specScaled(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "scaled ", perTensor("scaled", x.scaled))
	p, f := plainRun()
	for steps, want := range map[uint32]float32{6: 8, 24: 4, 96: 2} {
		c := delta(t, p, 1, 1, 4)
		p.H, c.Delta.Steps = 24, steps
		if tip, _ := agree(t, p, f, zeroTip(p, f), c); tip.Ref[0] != want {
			t.Errorf("4 in %d steps is %v in 24, want %v", steps, tip.Ref[0], want)
		}
	}
}

// With ClipFactor 2 a limit shows as what is left of a large delta.
func specOldLimit(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	for _, round := range []uint32{2, 9, 100} {
		if x := after(t, p, round, 3, 100).Global[0]; x != 6 {
			t.Errorf("round %d: 100 counts for %v, the reference is 3", round, x)
		}
	}
	near(t, "two of them", after(t, p, 9, 3, 100, 5).Global[0], centred(2, 6, 5))
}

func specFirstLimit(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "limit ", map[string]float64{"limit embed": x.limits[0], "limit w": x.limits[1]})
	p, _ := plainRun()
	for _, round := range []uint32{1, 5, 50} {
		near(t, "of 3, 3 and 100", after(t, p, round, 0, 3, 3, 100).Global[0], centred(2, 3, 3, 6))
	}
}

func specYoungLimit(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	for _, c := range []struct {
		round  uint32
		values []float32
		want   float64
	}{
		{2, []float32{2, 3, 100}, centred(2, 2, 3, 6)},         // the median 3
		{8, []float32{2, 3, 100}, centred(2, 2, 3, 6)},         // until then
		{9, []float32{2, 3, 100}, 2},                           // the reference 1
		{2, []float32{0.3, 0.5, 100}, centred(2, 0.3, 0.5, 2)}, // it is larger
		{2, []float32{50, 50, 100}, 8},                         // four times it
		{2, []float32{50, 0, 0}, 2},                            // one only is not 0
		{2, []float32{50, 50, 0}, 8},                           // two are
		{8, []float32{3, 3.9, 7}, centred(2, 3, 3.9, 7)},       // below four times it
		{8, []float32{4, 4.5, 100}, centred(2, 4, 4.5, 8)},     // above
	} {
		near(t, "a young round", after(t, p, c.round, 1, c.values...).Global[0], c.want)
	}
}

func specClip(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "clip ", perTensor("clip", func(i, t int) float64 { return x.clips[i][t] }))
	p, _ := plainRun()
	for v, want := range map[float32]float32{1.5: 1.5, -2: -2, 2.5: 2, -100: -2} {
		if x := after(t, p, 9, 1, v).Global[0]; x != want {
			t.Errorf("with the limit 2 %v counts for %v, want %v", v, x, want)
		}
	}
}

func specMedianOf(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	for _, c := range []struct {
		values []float32
		want   float32
	}{{[]float32{0, 0, 7}, 7}, {[]float32{0, 0}, 0}, {[]float32{0, 5, 0, 9, 0}, 5}} {
		if x := after(t, p, 1, 0, c.values...).Ref[0]; x != c.want {
			t.Errorf("of %v the median is %v, want %v", c.values, x, c.want)
		}
	}
}

func specHeldNorms(t *testing.T, s *spectest.Spec) {
	p, _ := plainRun()
	p.RefDecay = 0.75
	near(t, "100s at a limit of 2", after(t, p, 9, 1, 100, 100).Ref[0], 0.75+0.25*2)
	near(t, "one of them", after(t, p, 9, 1, 1.5, 1.5, 100).Ref[0], 0.75+0.25*1.5)
	near(t, "below it", after(t, p, 9, 1, 0.5, 0.5, 0.5).Ref[0], 0.75+0.25*0.5)
}

// centredRun is a run of centred clipping over one value.
func centredRun() outer.Params {
	p, _ := plainRun()
	p.ClipFactor = 1e6
	return p
}

// centred makes moves of F-26 over values of equal weights, none of them clipped.
func centred(moves int, values ...float64) (u float64) {
	for range moves {
		distances := make([]float64, len(values))
		for i, v := range values {
			distances[i] = math.Abs(v - u)
		}
		sorted := slices.Sorted(slices.Values(distances))
		tau, pulled, next := sorted[(len(sorted)-1)/2], 0.0, 0.0
		for i, v := range values {
			pull := 1 / float64(len(values))
			if distances[i] > tau {
				pull *= tau / distances[i]
			}
			pulled += pull
			next += pull * v
		}
		u = u*(1-pulled) + next
	}
	return u
}

func specCentred(t *testing.T, s *spectest.Spec) {
	_, _, x := round1(t, s)
	quantities(t, s, "u ", map[string]float64{"u embed 0": x.u[0], "u embed 1": x.u[1], "u w 0": x.u[2], "u w 1": x.u[3], "u w 2": x.u[4]})
	p, f := plain(), fragment("lm_head.weight", 3, "w", 20)
	p.ClipFactor = 1e6
	tip := zeroTip(p, f)
	for round := uint32(1); round <= 4; round++ {
		var set []outer.Contribution
		for author := range byte(5) {
			v := random(uint64(round)*8+uint64(author), f.Len)
			tensor.Scale(float32(author), v)
			set = append(set, delta(t, p, author, round, v...))
		}
		tip, _ = agree(t, p, f, tip, set...)
	}
	near(t, "in two moves", after(t, centredRun(), 1, 0, 2, 5, 30).Global[0], centred(2, 2, 5, 30))
	for _, moves := range []int{1, 3} {
		if x := centred(moves, 2, 5, 30); math.Abs(x-centred(2, 2, 5, 30)) < 1e-3 {
			t.Errorf("%d moves come to %v as well", moves, x)
		}
	}
}

// The distance from what is left of a clipped delta, not from all of it: of 1, 1 and 1000 at
// ClipFactor 3 the last one counts for 3.
func specDistances(t *testing.T, s *spectest.Spec) {
	p := centredRun()
	p.ClipFactor = 3
	near(t, "a delta that is clipped", after(t, p, 9, 1, 1, 2, 1000).Global[0], centred(2, 1, 2, 3))
	near(t, "others on both sides", after(t, p, 9, 1, -1, 2, 1.5).Global[0], centred(2, -1, 2, 1.5))
}

// After the first move two are at distance 0: with tau 0 the third has no pull any more.
func specTau(t *testing.T, s *spectest.Spec) {
	near(t, "1, 1 and 1000", after(t, centredRun(), 9, 1, 1, 1, 1000).Global[0], 1)
	near(t, "an even number", after(t, centredRun(), 9, 1, 1, 2, 4, 9).Global[0], centred(2, 1, 2, 4, 9))
}

func specPulls(t *testing.T, s *spectest.Spec) {
	for _, v := range [][]float32{{1, 2, 3}, {1, 10, 100}, {-4, 1, 20, 3, 2}, {7}} {
		var wide []float64
		for _, x := range v {
			wide = append(wide, float64(x))
		}
		near(t, "pulls", after(t, centredRun(), 9, 1, v...).Global[0], centred(2, wide...))
	}
}

// Where the pulls add up to less than 1 some of u stays. Of 1, 4 and 10 u is (1 + 4 + 4) / 3 = 3 after the first move;
// then tau is 2, of 1 and 4 at distances 2 and 1, and 10 pulls with 2/7 of a third: 3 * (1 - 16/21) + (1 + 4 + 20/7) / 3.
func specStays(t *testing.T, s *spectest.Spec) {
	near(t, "1, 4 and 10", after(t, centredRun(), 9, 1, 1, 4, 10).Global[0], 10.0/3)
}

// A delta of zeros does not pull.
func specMove(t *testing.T, s *spectest.Spec) {
	near(t, "0, 4 and 8", after(t, centredRun(), 9, 1, 0, 4, 8).Global[0], centred(2, 4, 8))
	near(t, "two alike", after(t, centredRun(), 9, 1, 6, 6).Global[0], 6)
	if x := after(t, centredRun(), 9, 1, 0, 0, 5).Global[0]; x != 5 {
		t.Errorf("two zeros and 5 give %v", x)
	}
}

func specCrowds(t *testing.T, _ *spectest.Spec) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plain()
		p.MaxShare = 1
		var set, alone []outer.Delta
		for i := range rapid.IntRange(1, 12).Draw(rt, "n") {
			d := outer.Delta{Author: outer.Author{byte(i)}, Round: 1, Steps: 1, Tokens: rapid.Uint64Range(1, 1<<16).Draw(rt, "tokens")}
			alone = append(alone, d)
			d.Invite[0] = rapid.Byte().Draw(rt, "invite") % 3
			d.Uses = uint32(d.Invite[0]) * 2 // none, two and four
			set = append(set, d)
		}
		plain, got := outer.Weights(p, alone), outer.Weights(p, set)
		for i, d := range set {
			came := 0
			for _, other := range set {
				if other.Invite == d.Invite {
					came++
				}
			}
			want := plain[i]
			if d.Uses > 0 && came > int(d.Uses) {
				want = plain[i] * (float64(d.Uses) / float64(came))
			}
			if got[i] != want {
				rt.Errorf("delta %d of %d by an invite for %d weighs %v, want %v", i, came, d.Uses, got[i], want)
			}
		}
	})
}

// guests makes the deltas of some authors those of guests.
func guests(set []outer.Contribution, is func(i int) bool) []outer.Contribution {
	for i := range set {
		set[i].Delta.Guest = is(i)
	}
	return set
}

// specGuests: however many guests there are and whatever they claim, they move a tenth of a step, and nothing without a
// member. Few whose claims are small weigh what they claim.
func specGuests(t *testing.T, _ *spectest.Spec) {
	rapid.Check(t, func(rt *rapid.T) {
		p := plain()
		p.MaxShare = 1
		var set []outer.Delta
		members, guests := 0.0, 0.0
		for i := range rapid.IntRange(1, 40).Draw(rt, "n") {
			set = append(set, outer.Delta{
				Author: outer.Author{byte(i)}, Round: 1, Steps: 1, Tokens: rapid.Uint64Range(1, 1<<16).Draw(rt, "tokens"), Guest: rapid.Bool().Draw(rt, "guest"),
			})
		}
		for i, w := range outer.Weights(p, set) {
			claimed := float64(set[i].Tokens) * float64(set[i].Tokens)
			if !set[i].Guest && w != claimed || w > claimed {
				rt.Errorf("%+v weighs %v", set[i], w)
			}
			if set[i].Guest {
				guests += w
			} else {
				members += w
			}
		}
		if guests > members/9*(1+1e-12) {
			rt.Errorf("guests weigh %v beside %v", guests, members)
		}
	})
	few := []outer.Delta{{Author: outer.Author{1}, Round: 1, Steps: 1, Tokens: 90}, {Author: outer.Author{2}, Round: 1, Steps: 1, Tokens: 30, Guest: true}}
	if w := outer.Weights(plain(), few); w[1] != 900 {
		t.Errorf("a guest of a ninth of the weight weighs %v", w[1])
	}
}

// specGuestsBesideCap: where one member weighs most, and is capped, guests weigh a ninth of what is left of it.
func specGuestsBesideCap(t *testing.T, _ *spectest.Spec) {
	p := plain()
	p.MaxShare, p.Quorum = 0.5, 3
	for _, tokens := range [][]uint64{{1000}, {1000, 100, 100, 100}, {1000, 10}} {
		var set []outer.Delta
		for i, n := range tokens {
			set = append(set, outer.Delta{Author: outer.Author{byte(i)}, Round: 1, Steps: 1, Tokens: n})
		}
		alone := outer.Weights(p, set)
		for i := range 3 {
			set = append(set, outer.Delta{Author: outer.Author{9, byte(i)}, Round: 1, Steps: 1, Tokens: 1 << 16, Guest: true})
		}
		got, members, guests := outer.Weights(p, set), 0.0, 0.0
		for i, w := range got {
			if i < len(tokens) {
				members += w
				if w != alone[i] {
					t.Errorf("%v: member %d weighs %v, %v without guests", tokens, i, w, alone[i])
				}
			} else {
				guests += w
			}
		}
		near(t, "guests over members", float32(guests/members), 1.0/9)
	}
}

// specGuestsScored: guests weigh something where three members are compared with them, and those that point against these nothing.
func specGuestsScored(t *testing.T, s *spectest.Spec) {
	p, f := compared(), fragment("a", 3000)
	p.MaxShare = 0.5
	for members, want := range map[int]float64{3: 1.0 / 9, 2: 0} {
		factors := slices.Repeat([]float64{1}, members+6)
		factors[members+5] = -1
		_, x := agree(t, p, f, zeroTip(p, f), guests(crowd(t, p, f, 1, 1, factors...), func(i int) bool { return i >= members })...)
		ofMembers, ofGuests := 0.0, 0.0
		for i, w := range x.weights {
			if i < members {
				ofMembers += w
			} else {
				ofGuests += w
			}
		}
		near(t, "guests over members", float32(ofGuests/ofMembers), want)
		if against := x.weights[members+5]; against != 0 {
			t.Errorf("%d members: who points against them weighs %v", members, against)
		}
	}
}

// specGuestReputations: guests have no reputation, be there ever so many, and the reputation of their key is nothing to them.
func specGuestReputations(t *testing.T, s *spectest.Spec) {
	p, f := compared(), fragment("a", 3000)
	tip := *zeroTip(p, f)
	bad := outer.Reputation{Author: crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1)[4].Delta.Author, Score: -2048}
	tip.Reputations = []outer.Reputation{bad}
	next, x := agree(t, p, f, &tip, guests(crowd(t, p, f, 1, 1, 1, 1, 1, 1, 1), func(i int) bool { return i == 4 })...)
	if len(next.Reputations) != 5 || !slices.Contains(next.Reputations, bad) || x.weights[4] == 0 {
		t.Errorf("reputations %v, the guest weighs %v", next.Reputations, x.weights[4])
	}
}
