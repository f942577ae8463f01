package tune

// With fewer, models of four learners were more than some 2 % behind data parallelism with the same tokens
// (optimizer/outer/DESIGN.md):
//
//	model  H   rounds  tokens a parameter  more bits per byte
//	mini   64  32      18 and more         3.5 %
//	mini   48  42      18 and more         3.3 %
//	mini   24  85      18 and more         1.6 %
//	mini   64  128     18 and more         1.5 %
//	tiny   24  85      5                   6.7 %
//	tiny   24  341     20                  1.3 %
//
// So 80 rounds lies between the 42 that are too few and the 85 that are not. With more learners, or sparse codecs,
// more can be too few.
const (
	EnoughRounds = 80
	EnoughTokens = 18 // for each parameter
)

// ManyPasses is how often a text may be read: up to 4 times is about as good as new text, and beyond some
// 40 more reading of it brings nothing (Muennighoff et al., Scaling Data-Constrained Language Models,
// NeurIPS 2023).
const ManyPasses = 40

// littleH is the H below which little is gained (optimizer/outer/DESIGN.md).
const littleH = 4

// Run is what the length of a run follows from.
type Run struct {
	Params     int    // values of the model
	Budget     uint64 // tokens
	StepTokens int    // of one inner step of a usual learner
	H          int
	Fixed      bool // the links fix H
	Learners   int  // of equal speed
	Text       int  // tokens to train on
}

// Length is how far a budget goes.
type Length struct {
	Learners int     `json:"learners"` // that were counted on, of equal speed
	Steps    int     `json:"steps"`    // of each
	Rounds   int     `json:"rounds"`   // of a fragment
	PerParam float64 `json:"tokens_per_parameter"`
	Passes   float64 `json:"passes"`                 // over the text to train on
	Short    bool    `json:"short"`                  // for a model as good as with data parallelism
	Least    float64 `json:"least_tokens,omitempty"` // with which a short run is not

	SmallerH bool `json:"-"` // it is short, and a smaller H would help
}

// LengthOf returns how far the budget of a run goes.
func LengthOf(r Run) Length {
	budget, params := float64(r.Budget), float64(r.Params)
	steps := max(1, r.Budget/uint64(r.StepTokens)/uint64(r.Learners))
	l := Length{Learners: r.Learners, Steps: int(steps), Rounds: max(1, int(steps)/r.H), PerParam: budget / params, Passes: budget / float64(r.Text)}
	l.Short = r.Learners > 1 && (l.FewRounds() || l.FewTokens()) // one alone averages nothing
	if l.Short {
		l.Least = float64(r.Enough())
		l.SmallerH = !r.Fixed && r.H > littleH
	}
	return l
}

// Enough is the smallest budget, to two digits, with which the run is not short.
func (r Run) Enough() uint64 {
	ofRounds := EnoughRounds * float64(r.H) * float64(r.Learners) * float64(r.StepTokens)
	return uint64(RoundUp(max(ofRounds, EnoughTokens*float64(r.Params)), 2))
}

// Worn says that the text is read too often to bring anything more.
func (l Length) Worn() bool { return l.Passes > ManyPasses }

// FewRounds says that there are fewer than EnoughRounds.
func (l Length) FewRounds() bool { return l.Rounds < EnoughRounds }

// FewTokens says that there are fewer than EnoughTokens for each parameter.
func (l Length) FewTokens() bool { return l.PerParam < EnoughTokens }
