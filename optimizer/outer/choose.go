package outer

import (
	"fmt"
	"math"

	"atoll/tensor/codec"
)

// Means is what the nodes of a run have to spend on its outer steps.
type Means struct {
	Params         int        // values of the model
	Tensors        int        // of the model: more fragments than that there cannot be
	Learners       int        // that are expected, 1 or more
	StepSeconds    float64    // of an inner step of a usual learner
	BytesPerSecond float64    // that each node's link carries, each way
	Codec          codec.Kind // 0 = what suits the links
	Merge          string     // "" = what SetH chooses; MergeClip takes more of a core
}

// Choice is how often a run of such means can merge, and what that takes.
type Choice struct {
	Codec          codec.Kind
	H, Fragments   int
	BytesPerSecond float64 // of payloads, that a node receives and about as much sends
	LinkShare      float64 // of the link, which that takes
	CoreShare      float64 // of one core, which encoding, folding and adopting take
}

// What Choose goes by. Quality falls with H (DESIGN.md), so it takes the least H that
// links and cores allow.
const (
	// maxLinkShare leaves room for beats, repair, joiners, and for the owner of the link.
	maxLinkShare = 0.5
	// maxCoreShare is what a learner gives of a core: training loses less than it
	// gains by merging more often.
	maxCoreShare = 0.1
	// mostH is the largest H that Choose takes: beyond it nothing was measured.
	mostH = 64
	// paperFragments is the number beyond which smaller payloads only add headers.
	paperFragments = 24
	// leastValues is the smallest fragment of use, and leastPayload its bytes in int4: below,
	// headers of 170 bytes and signatures cost as much as payloads do.
	leastValues  = 4096
	leastPayload = leastValues * int4Bytes
	// What outer steps take of a core, measured, of which CPUs without AVX-512 take half as much again.
	//
	// roundSeconds is the time for one value of a round: encoding the own delta, folding, hashing and adopting.
	roundSeconds = 16e-9
	// valueSeconds is that for one value of each delta of it: checking and adding.
	valueSeconds = 3e-9
	// clipSeconds is what MergeClip adds to that: the distances and moves of a second pass.
	clipSeconds = 1e-9
)

// What a value takes of a payload, entropy-coded, measured on deltas.
const (
	f32Bytes     = 3.2
	bf16Bytes    = 1.4
	int8Bytes    = 0.92
	int4Bytes    = 0.43
	sparse8Bytes = 0.1
	sparseBytes  = 0.021
)

// bytesOf is what a value takes in kind k, and 0 where that is none.
func bytesOf(k codec.Kind) float64 {
	return map[codec.Kind]float64{
		codec.F32: f32Bytes, codec.BF16: bf16Bytes, codec.Int8: int8Bytes, codec.Int4: int4Bytes, codec.Sparse8: sparse8Bytes, codec.Sparse: sparseBytes,
	}[k]
}

// suited are the codecs that Choose takes where it may, the first whose deltas links carry with that H at most. Where
// int4 needs a larger H than 48, sparse8 is as good or better at its bytes with a quarter of that (DESIGN.md).
var suited = []struct {
	kind codec.Kind
	most float64 // H, by the links
}{{codec.Int4, 48}, {codec.Sparse8, mostH}, {codec.Sparse, mostH}}

// Choose picks H, the number of fragments and, where it may, the codec for a run. The error
// names the first of the means that cannot be, or says that even mostH is more
// than links or cores carry, and what to do about it.
func Choose(m Means) (Choice, error) {
	if err := m.validate(); err != nil {
		return Choice{}, err
	}
	open := m
	if m.Codec == 0 {
		m.Codec = m.suitedCodec()
	}
	if m.Merge == "" {
		m.Merge = bestMerge(int(min(m.least(), mostH)), m.Codec)
	}
	perSweep, work, h := m.perSweep(), m.work(), m.least()
	if h > mostH {
		return Choice{}, m.tooLittle(open)
	}
	c := Choice{H: int(h), Codec: m.Codec}
	c.Fragments = max(1, min(c.H, paperFragments, m.Tensors, m.Params/leastValues, int(float64(m.Params)*bytesOf(m.Codec)/leastPayload)))
	c.BytesPerSecond = perSweep / (h * m.StepSeconds)
	c.LinkShare = c.BytesPerSecond / m.BytesPerSecond
	c.CoreShare = work / (h * m.StepSeconds)
	return c, nil
}

// suitedCodec is the first of suited that the links carry, or the last.
func (m Means) suitedCodec() codec.Kind {
	for _, s := range suited {
		m.Codec = s.kind
		if math.Ceil(m.byLink()) <= s.most {
			break
		}
	}
	return m.Codec
}

// perSweep is the bytes of payloads that a node receives for each H steps.
func (m Means) perSweep() float64 {
	return float64(m.Learners-1) * float64(m.Params) * bytesOf(m.Codec)
}

// work is the time of one core for a round of all fragments.
func (m Means) work() float64 {
	value := valueSeconds
	if m.Merge == MergeClip {
		value += clipSeconds
	}
	return float64(m.Params) * (roundSeconds + float64(m.Learners)*value)
}

// byLink is the H at which payloads take as much of the link as they may.
func (m Means) byLink() float64 {
	return m.perSweep() / (maxLinkShare * m.BytesPerSecond * m.StepSeconds)
}

// byCore is the H at which outer steps take as much of a core as they may.
func (m Means) byCore() float64 { return m.work() / (maxCoreShare * m.StepSeconds) }

// least is the H that links and cores allow.
func (m Means) least() float64 { return max(1, math.Ceil(max(m.byLink(), m.byCore()))) }

func (m Means) validate() error {
	switch {
	case m.Codec != 0 && !m.Codec.Valid():
		return fmt.Errorf("outer: codec %d is unknown", m.Codec)
	case m.Params < 1:
		return fmt.Errorf("outer: a model of %d values; use at least 1", m.Params)
	case m.Tensors < 1 || m.Tensors > m.Params:
		return fmt.Errorf("outer: a model of %d tensors with %d values; use 1 to that many", m.Tensors, m.Params)
	case m.Learners < 1:
		return fmt.Errorf("outer: %d learners; use at least 1", m.Learners)
	case !(m.StepSeconds > 0) || math.IsInf(m.StepSeconds, 1):
		return fmt.Errorf("outer: steps of %v s; use a time above 0", m.StepSeconds)
	case !(m.BytesPerSecond > 0):
		return fmt.Errorf("outer: links of %v bytes/s; use a rate above 0", m.BytesPerSecond)
	}
	return nil
}

// tooLittle says by how much the means fall short, of which open left codec or merge to Choose.
func (m Means) tooLittle(open Means) error {
	byLink, byCore := m.byLink(), m.byCore()
	if byLink >= byCore {
		need := m.BytesPerSecond * byLink / mostH
		return fmt.Errorf("outer: links of %.3g Mbit/s would need H = %.0f, and at most %d was measured: offer %.3g Mbit/s, or take a larger batch, fewer learners or a smaller model%s",
			mbit(m.BytesPerSecond), math.Ceil(byLink), mostH, mbit(need), m.thinner())
	}
	hint := ""
	mean := m
	mean.Merge = MergeMean
	if open.Merge == "" && mean.least() <= mostH {
		hint = ", or the merge mean, which takes less but does not withstand liars"
	}
	return fmt.Errorf("outer: steps of %.3g s are so short beside the outer steps that they would need H = %.0f, and at most %d was measured: take a larger batch%s",
		m.StepSeconds, math.Ceil(byCore), mostH, hint)
}

// thinner is a hint at the codec that the links would carry, if there is one.
func (m Means) thinner() string {
	m.Codec = m.suitedCodec()
	if m.byLink() > mostH {
		return ""
	}
	return fmt.Sprintf(", or the codec %v, whose deltas they carry", m.Codec)
}

func mbit(bytesPerSecond float64) float64 { return bytesPerSecond * 8 / 1e6 }
