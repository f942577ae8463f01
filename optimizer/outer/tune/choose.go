package tune

import (
	"fmt"
	"math"
	"strconv"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Means is what the nodes of a run have to spend on its outer steps.
type Means struct {
	Params                int        // values of the model
	Tensors               int        // of the model: more fragments than that there cannot be
	Learners              int        // that are expected, 1 or more
	LearnersPerRound      int        // whose deltas a round has, as outer.Params has it; 0 = all of them
	LeastLearnersPerRound int        // as few as Choose may make them where links or cores carry no more; 0 = it leaves them as they are
	StepSeconds           float64    // of an inner step of a usual learner
	BytesPerSecond        float64    // that each node's link carries, each way
	Codec                 codec.Kind // 0 = what suits the links
	FreeCores             bool       // cores do not train, as beside a GPU: outer steps may take half of one
}

// Choice is how often a run of such means can merge, and what that takes at most: a round takes about one step more than H, so
// runs in the simulator took 0.86 to 0.97 of LinkShare (testnet/lab/thin).
type Choice struct {
	Codec            codec.Kind
	H, Fragments     int
	LearnersPerRound int     // as the means have it, or fewer
	SweepSeconds     float64 // in which the whole link carries what a node receives in H steps
	BytesPerSecond   float64 // of payloads, that a node receives and about as much sends
	LinkShare        float64 // of the link, which that takes
	CoreShare        float64 // of one core, which encoding, folding and adopting take
}

// What Choose goes by. Quality falls with H (DESIGN.md), so it takes the least H that
// links and cores allow.
const (
	// maxLinkShare leaves room for heartbeats, repair, joiners, and for the owner of the link.
	maxLinkShare = 0.5
	// maxCoreShare is what a learner gives of a core: training loses less than it
	// gains by merging more often.
	maxCoreShare = 0.1
	// freeCoreShare is what outer steps may take of a core that does not train. One thread folds, and proposals come
	// unevenly: at half of its time a fold seldom waits for another.
	freeCoreShare = 0.5
	// paperFragments is the number beyond which smaller payloads only add headers.
	paperFragments = 24
	// leastValues is the smallest fragment of use, and leastPayload its bytes in int4: below,
	// headers of 170 bytes and signatures cost as much as payloads do.
	leastValues  = 4096
	leastPayload = leastValues * int4Bytes
	// What outer steps take of a core, measured. CPUs without AVX-512 take half as much again.
	//
	// roundSeconds is the time for one value of a round: encoding the own delta, folding, hashing and adopting.
	roundSeconds = 16e-9
	// valueSeconds is that for one value of each delta of it: checking, adding, and the distances and moves of a second pass.
	valueSeconds = 4e-9
	// partialSeconds is what sparse codecs add for a value of a round: the choice of the part that travels, and
	// holding the rest.
	partialSeconds = 5e-9
)

// What a value takes of a payload, entropy-coded, measured on deltas. The first deltas of the model small took 0.424 bytes
// in int4 and 0.099 in sparse8.
const (
	f32Bytes     = 3.2
	int4Bytes    = 0.43
	sparse8Bytes = 0.103
	sparseBytes  = 0.0222
)

// BytesOf is what a value takes in a payload of the codec, entropy-coded, and 0 where that is none.
func BytesOf(k codec.Kind) float64 {
	return map[codec.Kind]float64{
		codec.F32: f32Bytes, codec.Int4: int4Bytes, codec.Sparse8: sparse8Bytes, codec.Sparse: sparseBytes,
	}[k]
}

// candidates are the codecs that Choose takes where it may. Choose takes the first of them with which a run fits the means,
// unless that would need an H above thinFrom and the next at most half of that H. Where int4 needs 48, sparse8 is as good
// or better at its bytes with a quarter of that H; where sparse8 needs 48, sparse is (DESIGN.md).
var candidates = []codec.Kind{codec.Int4, codec.Sparse8, codec.Sparse}

const thinFrom = 48

// most is the largest H that Choose takes with the codec.
func (m Means) most() float64 { return float64(outer.Params{Codec: m.Codec}.MostH()) }

// Choose picks H, the number of fragments and, where it may, the codec for a run. The error
// names the first impossible value of the means. Or it says that even the largest H is more
// than links or cores carry, and what to do about it.
func Choose(m Means) (Choice, error) {
	if err := m.validate(); err != nil {
		return Choice{}, err
	}
	open := m
	if m = m.completed(); !m.fits() {
		m = open.withFewer().completed()
	}
	if !m.fits() {
		return Choice{}, open.completed().tooLittle(open)
	}
	perSweep, work, h := m.perSweep(), m.work(), m.least()
	c := Choice{H: int(h), Codec: m.Codec, LearnersPerRound: m.LearnersPerRound, SweepSeconds: perSweep / m.BytesPerSecond}
	c.Fragments = max(1, min(c.H, paperFragments, m.Tensors, m.Params/leastValues, int(float64(m.Params)*BytesOf(m.Codec)/leastPayload)))
	c.BytesPerSecond = perSweep / (h * m.StepSeconds)
	c.LinkShare = c.BytesPerSecond / m.BytesPerSecond
	c.CoreShare = work / (h * m.StepSeconds)
	return c, nil
}

// withFewer are the means with the most sampled learners that links and cores allow, of those that Choose may take; with the
// fewest, if none do.
func (m Means) withFewer() Means {
	if m.LeastLearnersPerRound == 0 {
		return m
	}
	for n := m.deltas(m.Learners) - 1; n >= m.LeastLearnersPerRound; n-- {
		if m.LearnersPerRound = n; m.completed().fits() {
			break
		}
	}
	return m
}

// completed are the means with the codec that suits them, where it is open.
func (m Means) completed() Means {
	if m.Codec == 0 {
		return m.suited()
	}
	return m
}

// suited are the means with the codec that suits them best. Where none fits, it is the one that asks least more of links
// among those for which cores are fast enough. It is the first if cores are too slow for all.
func (m Means) suited() Means {
	with := make([]Means, len(candidates))
	for i, k := range candidates {
		m.Codec = k
		with[i] = m.completed()
	}
	for i, own := range with {
		h := own.least()
		thinner := i+1 < len(with) && with[i+1].fits() && 2*with[i+1].least() <= h
		if own.fits() && !(h > thinFrom && thinner) {
			return own
		}
	}
	best := with[0]
	for _, own := range with[1:] {
		enough := own.byCore() <= own.most()
		if enough && (best.byCore() > best.most() || own.byLink()/own.most() < best.byLink()/best.most()) {
			best = own
		}
	}
	return best
}

// Int4BytesPerSecond is what links must carry for Choose to take int4, if cores do not ask for a larger H than that.
func (m Means) Int4BytesPerSecond() float64 {
	m.Codec = codec.Int4
	return m.BytesPerSecond * m.byLink() / thinFrom
}

func (m Means) fits() bool { return m.least() <= m.most() }

// perSweep is the bytes of payloads that a node receives for each H steps. Where learners publish in rotation, that is a
// node with no delta in the round.
func (m Means) perSweep() float64 {
	return float64(m.deltas(m.Learners-1)) * float64(m.Params) * BytesOf(m.Codec)
}

// work is the time of one core for a round of all fragments.
func (m Means) work() float64 {
	return CoreSeconds(m.Codec, float64(m.Params), float64(m.deltas(m.Learners)))
}

// CoreSeconds is about what a round of so many values takes of a core that has so many deltas: encoding the own one, checking,
// folding, hashing and adopting.
func CoreSeconds(k codec.Kind, values, deltas float64) float64 {
	round := roundSeconds
	if k.Partial() {
		round += partialSeconds
	}
	return values * (round + deltas*valueSeconds)
}

// deltas is how many a round has of so many learners: more of them publish in rotation.
func (m Means) deltas(learners int) int {
	if m.LearnersPerRound > 0 {
		return min(learners, m.LearnersPerRound)
	}
	return learners
}

// byLink is the H at which payloads take as much of the link as they may.
func (m Means) byLink() float64 {
	return m.perSweep() / (maxLinkShare * m.BytesPerSecond * m.StepSeconds)
}

// byCore is the H at which outer steps take as much of a core as they may.
func (m Means) byCore() float64 { return m.work() / (m.coreShare() * m.StepSeconds) }

// coreShare is what outer steps may take of a core.
func (m Means) coreShare() float64 {
	if m.FreeCores {
		return freeCoreShare
	}
	return maxCoreShare
}

// leastStep is from how many seconds of a step on cores would carry the largest H.
func (m Means) leastStep() float64 { return m.work() / (m.coreShare() * m.most()) }

// least is the H that links and cores allow.
func (m Means) least() float64 { return max(1, math.Ceil(max(m.byLink(), m.byCore()))) }

func (m Means) validate() error {
	switch {
	case m.Codec != 0 && !m.Codec.Valid():
		return fmt.Errorf("codec %d is unknown", m.Codec)
	case m.Params < 1:
		return fmt.Errorf("a model of %d values; use at least 1", m.Params)
	case m.Tensors < 1 || m.Tensors > m.Params:
		return fmt.Errorf("a model of %d tensors with %d values; use 1 to that many", m.Tensors, m.Params)
	case m.Learners < 1:
		return fmt.Errorf("%d learners; use at least 1", m.Learners)
	case m.LeastLearnersPerRound < 0 || m.LeastLearnersPerRound > 0 && m.LearnersPerRound > 0 && m.LeastLearnersPerRound > m.LearnersPerRound:
		return fmt.Errorf("at least %d of %d sampled learners; use 1 to that many, or 0 to leave them", m.LeastLearnersPerRound, m.LearnersPerRound)
	case m.LearnersPerRound < 0:
		return fmt.Errorf("%d learners in a round; use at least 1, or 0 for all", m.LearnersPerRound)
	case !(m.StepSeconds > 0) || math.IsInf(m.StepSeconds, 1):
		return fmt.Errorf("steps of %v s; use a time above 0", m.StepSeconds)
	case !(m.BytesPerSecond*m.StepSeconds > 0):
		return fmt.Errorf("links of %v bytes/s; use a rate above 0", m.BytesPerSecond)
	}
	return nil
}

// tooLittle says by how much the means fall short. open are the means with the codec left to Choose.
func (m Means) tooLittle(open Means) error {
	steps := fmt.Sprintf("steps of %.3g s are so short beside the outer steps that they would need H = %.0f", m.StepSeconds, math.Ceil(m.byCore()))
	links := fmt.Sprintf("links of %.3g Mbit/s would need H = %.0f", mbit(m.BytesPerSecond), math.Ceil(m.byLink()))
	limit := fmt.Sprintf("the codec %v allows at most %.0f", m.Codec, m.most())
	if m.byLink() <= m.most() {
		return fmt.Errorf("%s, and %s: %s", steps, limit, m.longer())
	}
	offer := fmt.Sprintf("offer %.3g Mbit/s", RoundUp(mbit(m.BytesPerSecond*m.byLink()/m.most()), 3))
	if m.byCore() <= m.most() {
		return fmt.Errorf("%s, and %s: %s, or take a larger batch, %s or a smaller model%s", links, limit, offer, m.fewer(), open.thinner())
	}
	return fmt.Errorf("%s, %s, and %s: %s; and %s, or less with a larger batch", steps, links, limit, m.longer(), offer)
}

// fewer is what to have less of: deltas in a round, to which more learners in rotation add none.
func (m Means) fewer() string {
	if m.LearnersPerRound > 0 && m.Learners > m.LearnersPerRound {
		return fmt.Sprintf("fewer sampled learners than %d", m.LearnersPerRound)
	}
	return "fewer learners"
}

// longer is what to do about steps that are too short.
func (m Means) longer() string {
	hint := fmt.Sprintf("take a larger batch (steps of %.3g s)", RoundUp(m.leastStep(), 2))
	fewer := m
	fewer.Learners = min(2, m.Learners)
	if fewer.byCore() <= m.most() {
		hint += " or " + m.fewer()
	}
	return hint
}

// thinner is a hint at the codec with which the run would fit the means, if there is one.
func (m Means) thinner() string {
	m.Codec = 0
	if m = m.completed(); !m.fits() {
		return ""
	}
	return fmt.Sprintf(", or the codec %v, whose deltas fit these links", m.Codec)
}

func mbit(bytesPerSecond float64) float64 { return bytesPerSecond * 8 / 1e6 }

// RoundUp returns the least number of so many decimal digits that is no less than x: what is asked for must be enough. It
// returns x where x is not positive or not finite.
func RoundUp(x float64, digits int) float64 {
	if !(x > 0) || math.IsInf(x, 1) {
		return x
	}
	nearest := func(x float64) float64 {
		y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64)
		if err != nil {
			return math.Inf(1) // beyond the largest number
		}
		return y
	}
	y := nearest(x)
	if y < x {
		y = nearest(y + math.Pow(10, math.Floor(math.Log10(y))+1-float64(digits)))
	}
	return y
}
