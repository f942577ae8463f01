package sim

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// memberLies are what a member may do in a random world: all that is known not to win.
var memberLies = []Attack{
	{Kind: SignFlip, Times: 1}, {Kind: Zero}, {Kind: Noise, Times: 1}, {Kind: Garbage}, {Kind: Unfinite},
	{Kind: Equivocate}, {Kind: LateProof, Times: 3}, {Kind: OneProof, Times: 4}, {Kind: ShownToHalf}, {Kind: WindowsEdge},
	{Kind: FalseBeats}, {Kind: WithholdAll}, {Kind: WithholdSome}, {Kind: WrongPayloads}, {Kind: WrongChunks}, {Kind: ShortChunks},
	{Kind: FalseStates}, {Kind: StallRepairs},
}

// strangersLies are what one may do that never trains.
var strangersLies = []Attack{
	{Kind: StaleRounds}, {Kind: PayloadMissing, Times: 3}, {Kind: FreshBeats, Times: 20}, {Kind: FalseBeats},
	{Kind: BareHeaders, Times: 2}, {Kind: IdleCrowd, Times: 20}, {Kind: StallRepairs}, {Kind: WrongChunks},
}

// guestsLies are what one may do that came by an invite for guests: that, what members may do, and what wins in open runs.
var guestsLies = slices.Concat(strangersLies, memberLies, []Attack{
	{Kind: SignFlip, Times: 10}, {Kind: Scale, Times: 1000}, {Kind: Copy}, {Kind: Inflate, Times: -1}, {Kind: FarRounds}, {Kind: InventedRun, Ahead: 200},
	{Kind: SybilRun, Times: 6, Ahead: 200}, {Kind: ClaimRun, Times: 6, Ahead: 200}, {Kind: OneClaim}, {Kind: BurstRounds, Times: 40}, {Kind: LastRound},
})

// liarSeeds are few: worlds of many with a liar take seconds.
const liarSeeds = 8

// lied is what Explore draws from a seed, with a member that lies, a stranger or a guest, in a run that is open or admits by
// invitation. It reports whether enough are honest for that.
func lied(seed uint64) (s Scenario, ok bool) {
	s = Explore(seed)
	if len(s.Founders) < enoughFounders {
		return s, false
	}
	rng := rand.New(rand.NewPCG(seed, 11))
	pick := func(from []Attack) Attack {
		a := from[rng.IntN(len(from))]
		a.From = rng.Int64N(max(s.CalmMs, 1))
		return a
	}
	s.Invited, s.Params.Agreement = rng.IntN(2) == 0, rng.IntN(2) == 0
	s.Params.Alike = s.Params.Agreement && rand.New(rand.NewPCG(seed, 12)).IntN(4) > 0 // most: new runs have both
	liar := &s.Founders[len(s.Founders)-1]
	if rng.IntN(2) == 0 {
		liar.Attack = pick(memberLies)
	} else {
		liar.Attack, liar.Observer, liar.Outsider = pick(strangersLies), true, s.Invited
	}
	if s.Invited && rng.IntN(2) == 0 {
		liar.Attack, liar.Guest, liar.Outsider = pick(guestsLies), true, false
	}
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Node == len(s.Founders)-1 })
	return s, true
}

// liarsFail are schedules that are known to fail, and the checker that finds it.
var liarsFail = map[uint64]string{
	// Answers that are late ring the next round, whose answers are late again: rounds follow each other three times as
	// fast as they should, and who lost its disk does not catch up. No liar is needed.
	8369: "converges",
}

// liarsFailedOnce are schedules that broke a promise. In the first ones a member that withholds payloads kept nodes apart, or nodes
// waited for a learner that may not sign. Beats of twenty strangers filled uplinks of 1 Mbit/s and left nothing for answers. In 7475 and 10512 an
// observer kept a chain that had lost, as long as a liar said that more was to come. In 14261 a checker had a leaver wait
// for a guest. In 15181 a node that had lost its disk met nobody but a newcomer that had met nobody. In 16612 two chains lasted
// as one had folded a delta of a pair and could not leave it out. In 16819 a link named nobody but an outsider, and in 19255 the
// world forgot guests. In 19781 one was ahead of all others alone, and neither side took anything.
var liarsFailedOnce = []uint64{483, 1149, 1379, 2292, 3252, 7475, 10512, 14261, 15181, 16612, 16819, 19255, 19781}

// Random worlds keep every promise to those who are honest while a member or a stranger lies. ATOLL_SIM_SEEDS says which.
func TestLiarSchedules(t *testing.T) {
	t.Parallel()
	few := uint64(liarSeeds)
	if testing.Short() {
		few /= 2
	}
	from, to := seedsUnder(t, few)
	for seed := from; seed < to; seed++ {
		s, ok := lied(seed)
		if ok {
			playLied(t, s)
		}
	}
}

// playLied fails unless every promise to those who are honest is kept, or what is known of the seed happens.
func playLied(t *testing.T, s Scenario) {
	t.Helper()
	switch r := played(t, s); {
	case r.Err != nil && r.Check != liarsFail[s.Seed]:
		t.Errorf("seed %d, %s, by invitation %v, agreement %v: %v",
			s.Seed, s.Founders[len(s.Founders)-1].Attack.Kind, s.Invited, s.Params.Agreement, r.Err)
	case r.Err == nil && liarsFail[s.Seed] != "":
		t.Errorf("seed %d does not fail any more by %q: take it off the list", s.Seed, liarsFail[s.Seed])
	}
}

// Schedules that failed once fail no more. They take half a minute: ATOLL_LONG=1.
func TestLiarSchedulesThatFailedOnce(t *testing.T) {
	t.Parallel()
	if !longMode() {
		t.Skip("takes half a minute: ATOLL_LONG=1 runs it")
	}
	for _, seed := range liarsFailedOnce {
		s, _ := lied(seed)
		playLied(t, s)
	}
}

// heldUp are schedules in which a stranger that signs for closed rounds once held up the end for ever.
var heldUp = []uint64{707, 922, 3623}

// togetherSeed is one in which it did so with a member of false beats.
const togetherSeed = 10

// A stranger keeps no run from its end, nor does one together with a member.
func TestStrangersHoldUpNoEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, seed := range heldUp {
		s, _ := lied(seed)
		playLied(t, s)
	}
	s, _ := lied(togetherSeed)
	member := &s.Founders[len(s.Founders)-1]
	stranger := *member
	member.Attack.Kind, member.Observer = FalseBeats, false
	stranger.Attack.Kind, stranger.Observer, stranger.Outsider = StaleRounds, true, s.Invited
	s.Founders = append(s.Founders, stranger)
	playLied(t, s)
}

// outweighedSeed is a world in which faults leave two slow learners with a fast one that was trusted and now flips its sign.
// It has 53 % of the weight, and rounds of three judge nobody.
const outweighedSeed = 4914

// inARowSeed is one in which it is so for 17 rounds, and then two have 59 % of the weight together.
const inARowSeed = 16104

func TestTooManyWon(t *testing.T) {
	rounds := func(from, n int, yes bool) (all []won) {
		for i := range n {
			all = append(all, won{uint32(from + i), yes})
		}
		return all
	}
	for name, c := range map[string]struct {
		spoiled []won
		end     uint32
		want    bool
	}{
		"half of them":             {slices.Concat(rounds(1, 4, false), rounds(5, 4, true)), 8, false},
		"most of them":             {slices.Concat(rounds(1, 4, false), rounds(5, 5, true)), 500, true},
		"a row, at the end":        {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow, true)), 40 + lostInARow, true},
		"a shorter row":            {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow-1, true)), 40 + lostInARow - 1, false},
		"a row with a gap":         {slices.Concat(rounds(1, 40, false), rounds(41, lostInARow/2, true), rounds(42+lostInARow/2, lostInARow/2, true)), 60, false},
		"a row that others break":  {slices.Concat(rounds(1, 40, false), rounds(41, 10, true), rounds(51, 1, false), rounds(52, 10, true)), 62, false},
		"a row, not long before":   {slices.Concat(rounds(1, lostInARow, true), rounds(1+lostInARow, 40, false)), lostPart * lostInARow, true},
		"a row, long before":       {slices.Concat(rounds(1, lostInARow, true), rounds(1+lostInARow, 40, false)), lostPart*lostInARow + 1, false},
		"a longer row, some later": {slices.Concat(rounds(1, lostInARow+1, true), rounds(2+lostInARow, 40, false)), lostPart*lostInARow + lostPart, true},
	} {
		if got := tooManyWon(c.spoiled, c.end); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// hopeless is a task that nobody ever learns.
type hopeless struct{ quadraticTask }

func (hopeless) Learned([]float32) error { return errors.New("nothing is learned") }

// A world promises no loss where a liar outweighs the honest in rounds that judge nobody, and promises it in all others.
func TestLossIsPromisedUnlessLiarsOutweigh(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{outweighedSeed, inARowSeed} {
		s, _ := lied(seed)
		if r := played(t, s); r.Err != nil || r.Loss >= r.LossStart { // before three were judged it won
			t.Errorf("loss %g of %g: %v", r.Loss, r.LossStart, r.Err)
		}
	}
	for name, change := range map[string]func(s *Scenario, liar *NodeSpec){
		"rounds of five are judged":          func(s *Scenario, _ *NodeSpec) { s.Faults = nil },
		"a slow liar has less than half":     func(_ *Scenario, liar *NodeSpec) { liar.Slow = 3 },
		"it lies when the run has ended":     func(s *Scenario, liar *NodeSpec) { liar.Attack.From = s.LimitMs },
		"what it makes is what it publishes": func(_ *Scenario, liar *NodeSpec) { liar.Attack = Attack{Kind: FalseBeats} },
		"its record has no trust left":       func(_ *Scenario, liar *NodeSpec) { liar.Attack.From = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := lied(outweighedSeed)
			s.Task = hopeless{quadraticTask{s.Seed}}
			change(&s, &s.Founders[len(s.Founders)-1])
			if r := played(t, s); r.Check != "learns" {
				t.Errorf("a loss that does not fall comes to %q: %v", r.Check, r.Err)
			}
		})
	}
}
