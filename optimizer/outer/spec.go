package outer

import (
	"cmp"

	"atoll/tensor/codec"
)

// Spec is what is chosen of a run's outer step. Params is all that follows from it, and is made by nothing else. Genesis has it
// with every choice made, see Resolved.
type Spec struct {
	Fragments        int
	Codec            codec.Kind // 0 = codec.Int4
	H                int        // inner steps between two deltas; 0 = DefaultH of the codec
	LearnersPerRound int        // learners that contribute to a round; 0 = UsualLearnersPerRound
	Learners         int        // that the run expects: more than LearnersPerRound publish in rotation; 0 = 1

	StepTokens uint64 `json:"-"` // of one step of a learner of usual speed: genesis has the batch and the context
	Budget     uint64 // tokens
	CreatedMs  int64  // Unix milliseconds

	SweepMs int64  // in which links carry the deltas of all fragments once, milliseconds; 0 = soon
	Window  uint32 // union window in rounds; 0 = as many as are of use

	OwnText    bool // learners have texts of their own
	NoMomentum bool // of the outer step: half of what joiners are given
}

// UsualLearnersPerRound is C of a run that asks for no other. What a node receives and folds grows with it.
const UsualLearnersPerRound = 16

// Times and bounds that all runs have in common. Between them nodes follow what they measure, so that no network needs
// others.
const (
	leastGraceMs = 50 // payloads take longer than that between any two machines that train
	// leastRoundMs is far below the time of honest rounds. It keeps a flood of proposals from using up the windows.
	leastRoundMs = 20
	// minority is the share of a round's weight that one delta may have, and LeastQuorum the least quorum with which that is
	// a minority.
	minority, LeastQuorum = 0.4, 3
	// strongest is how many times the usual tokens of a step the strongest learner may bring.
	strongest = 64
	// MaxStepTokens bounds the tokens of a usual step, so that those of the strongest learner are within MaxTokensLimit.
	MaxStepTokens = MaxTokensLimit / strongest

	clipFactor = 3    // leaves honest deltas alone and stops one from deciding a round
	refDecay   = 0.9  // the last ten rounds make the reference of norms
	leastRoom  = 1024 // steps that a delta may claim, whatever H is

	// Rounds within which gossip takes a delta, and the union window. Its least is long enough for a node
	// that was away for some rounds, and for the links that a snapshot brings.
	usualAccept, usualUnion, leastUnion = 16, 256, 32
)

// Resolved is the spec with what suits the rest wherever nothing was chosen.
func (s Spec) Resolved() Spec {
	s.Codec, s.LearnersPerRound, s.Learners = cmp.Or(s.Codec, codec.Int4), cmp.Or(s.LearnersPerRound, UsualLearnersPerRound), cmp.Or(s.Learners, 1)
	s.H, s.Window = cmp.Or(s.H, DefaultH(s.Codec)), cmp.Or(s.Window, usualUnion)
	return s
}

// Validate refuses choices that no run can have, and what is left open. The error names the field, its value and what is allowed.
func (s Spec) Validate() error {
	return cmp.Or(inRanges([]fieldRange{
		{"Fragments", float64(s.Fragments), 1, MaxFragments},
		{"H", float64(s.H), 1, MaxH},
		{"LearnersPerRound", float64(s.LearnersPerRound), LeastQuorum, MaxLearnersPerRound},
		{"Learners", float64(s.Learners), 1, MaxLearners},
		{"Budget", float64(s.Budget), 1, maxBudget},
		{"CreatedMs", float64(s.CreatedMs), 0, maxCreated},
		{"SweepMs", float64(s.SweepMs), 0, MaxSweepMs},
		{"Window", float64(s.Window), LeastWindow, MaxWindow},
	}), checkBudget(s.Budget), checkCodec(s.Codec))
}

// Params is what the run's genesis fixes of the outer step.
func (s Spec) Params() Params {
	s = s.Resolved()
	p := Params{
		Fragments: s.Fragments, H: s.H, HMin: max(1, s.H/4),
		ClipFactor: clipFactor, RefDecay: refDecay, MaxShare: minority,
		MaxSteps: s.mostSteps(), TokensPerStep: s.StepTokens, MaxTokensPerStep: strongest * s.StepTokens, Codec: s.Codec,
		LearnersPerRound: s.LearnersPerRound, Quorum: LeastQuorum, Budget: s.Budget, MinRoundMs: leastRoundMs, CreatedMs: s.CreatedMs,
		GraceMinMs: leastGraceMs, GraceMaxMs: max(LongGraceMs, GraceSweeps*s.SweepMs),
		WindowAccept: min(usualAccept, s.Window/2), WindowUnion: s.Window, OwnText: s.OwnText,
	}
	p.Eta, p.Mu = s.step()
	p.MaxPace = s.pace(p.MostH())
	if s.rotation() > 1 {
		p.Eta *= float64(s.LearnersPerRound) / float64(s.Learners)
	}
	return p
}

// step is the outer rate and momentum that measured best with the run's H and codec, where all publish in every round.
func (s Spec) step() (eta, mu float64) {
	if s.H > noMomentumUpTo && s.Codec != codec.Sparse && !s.NoMomentum {
		return longEta, longMu
	}
	return 1, 0
}

// rotation is in how many rounds each learner publishes once, where more are expected than publish in one.
//
// A delta then has the progress of all rounds since the author's last one, and each round folds the mean of such deltas. So
// the outer rate is less by the share that publishes, or the model would move too far by the length of the rotation: it loses
// 17 % of its bits with four, and diverges with sixteen (testnet/lab/RESULTS.md, "Past all-to-all").
func (s Spec) rotation() int {
	return max(1, (min(s.Learners, MaxLearners)+s.LearnersPerRound-1)/s.LearnersPerRound)
}

// mostSteps gives deltas room for the steps of a rotation. If more learners join than were expected, their deltas are full
// before they are sampled. Then they publish all the same, and what each node receives begins to grow with their number.
// More room lets a liar claim more, so it is not made for nobody.
func (s Spec) mostSteps() uint32 {
	room := roomInH
	if s.rotation() > 1 {
		room = max(room, longestRotation*s.rotation())
	}
	return uint32(max(leastRoom, min(int64(room)*int64(s.H), MaxStepsLimit)))
}

// pace has deltas count for what honest learners can make in a round: the longest plan that is of use with the codec, twice,
// and the rounds of a rotation.
func (s Spec) pace(mostH int) int {
	most := paceOfPlan * max(s.H, mostH)
	pace := min((most+s.H-1)/s.H, MaxPaceLimit)
	if s.rotation() > 1 {
		pace = max(pace, longestRotation)
	}
	return pace
}

// WindowOf is the union window of nodes that can keep the deltas of so many rounds.
func WindowOf(rounds float64) uint32 { return uint32(min(max(leastUnion, rounds), usualUnion)) }
