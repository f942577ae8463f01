package node

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"atoll/gossip/wire"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// GenesisFormat is the version of the genesis document that this program
// reads and writes.
const GenesisFormat = 1

// Genesis is the immutable document that the nodes of a run share. Everything
// that decides bits is in here or in the ledger. Its canonical bytes are the
// compact JSON of this struct; the RunID is their hash.
type Genesis struct {
	Format    int          // GenesisFormat
	Name      string       // for people
	Model     llama.Config // sizes
	Tokenizer string       // "byte"
	Seed      uint64       // of initial parameters and of every learner's batches
	Batch     int          // rows of one inner step of a learner of usual speed
	Inner     Inner        // inner optimizer
	Outer     outer.Params // outer step, windows, budget, creation time
	BeatMs    int64        // beat period for small runs, milliseconds
	QuietMs   int64        // how long all live beats must agree before the run counts as over
	Data      Data         // what the run's makers trained on: advice to joiners
}

// Inner is the inner optimizer, AdamW or Muon, with linear warm-up and cosine
// decay over the token budget. See optimizer.Muon for what Muon makes of the
// learning rate. Fields that AdamW does not need are left out of the canonical
// bytes where they are zero: runs that were made before there was a choice keep
// their RunID.
type Inner struct {
	LR             float64 // peak learning rate
	Beta1, Beta2   float64
	Eps            float64
	WeightDecay    float64 // on matrices
	Clip           float64 // global gradient norm
	WarmupFraction float64 // of the token budget
	FinalFraction  float64 // of the peak, at the end
	Optimizer      string  `json:",omitempty"` // optimizer.NameMuon, or "" for AdamW, which has no second name
	Momentum       float64 `json:",omitempty"` // of Muon
}

// Data names a corpus.
type Data struct {
	Name   string
	SHA256 string
}

// Limits on what a stranger's genesis may ask for.
const (
	maxName  = 200     // characters: it is printed
	maxBatch = 1 << 12 // rows per step: more does not fit any one machine
	minBeat  = 20      // ms: more often is traffic without news
	maxBeat  = 60_000  // ms: silence of ten beats must still be noticed within minutes
	maxQuiet = 600_000 // ms

	// maxLayers bounds the tensors that are listed before anything is known of
	// a model: ten times the deepest in use.
	maxLayers = 1 << 10
	// maxTips bounds the tips of all fragments together: their chunks' digests
	// must fit one manifest (wire.MaxManifest).
	maxTips = 7 << 30
	// maxHistory is the room for the links that lead to a tip: 256 rounds of a
	// thousand deltas each are half of it.
	maxHistory = 16 << 20
	// maxTip bounds the tip of one fragment: with the links that lead to it, it
	// travels as wire.MaxChunks chunks. 16 MiB is room for the links.
	maxTip = wire.MaxChunks*wire.ChunkSize - maxHistory
)

// sha256Hex is the length of a SHA-256 in hex.
const sha256Hex = 64

// Validate returns an error that names the first field out of range. It costs
// no more than milliseconds and megabytes, whatever the genesis asks for.
func (g Genesis) Validate() error {
	if err := g.validateFields(); err != nil {
		return err
	}
	return g.validatePlan()
}

// validateFields is Validate but for what the fields make of the model together.
func (g Genesis) validateFields() error {
	if g.Format != GenesisFormat {
		return fmt.Errorf("genesis: Format is %d, this program reads %d; use the version of atoll that made the run", g.Format, GenesisFormat)
	}
	if err := g.validateTexts(); err != nil {
		return err
	}
	if err := g.validateModel(); err != nil {
		return err
	}
	if err := g.Outer.Validate(); err != nil {
		return fmt.Errorf("genesis: Outer: %w", err)
	}
	if g.Outer.Fragments > wire.MaxFragments {
		return fmt.Errorf("genesis: Outer.Fragments is %d; a beat has room for %d", g.Outer.Fragments, wire.MaxFragments)
	}
	if err := g.validateNumbers(); err != nil {
		return err
	}
	return g.Inner.validateOptimizer()
}

// validateTexts refuses what would not print on one line.
func (g Genesis) validateTexts() error {
	for _, f := range []struct{ name, value string }{{"Name", g.Name}, {"Data.Name", g.Data.Name}} {
		if n := len(f.value); n > maxName {
			return fmt.Errorf("genesis: %s has %d bytes; use at most %d", f.name, n, maxName)
		}
		if !utf8.ValidString(f.value) || strings.ContainsFunc(f.value, unprintable) {
			return fmt.Errorf("genesis: %s is %q; use printable characters only", f.name, f.value)
		}
	}
	if _, err := hex.DecodeString(g.Data.SHA256); err != nil || g.Data.SHA256 != "" && len(g.Data.SHA256) != sha256Hex {
		return fmt.Errorf("genesis: Data.SHA256 is %q; use %d hex digits, or nothing", clip(g.Data.SHA256), sha256Hex)
	}
	if g.Tokenizer != "byte" {
		return fmt.Errorf("genesis: Tokenizer is %q; this version knows %q", clip(g.Tokenizer), "byte")
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

func (g Genesis) validateModel() error {
	if err := g.Model.Validate(); err != nil {
		return fmt.Errorf("genesis: Model: %w", err)
	}
	if g.Model.Layers > maxLayers {
		return fmt.Errorf("genesis: Model.Layers is %d; use at most %d", g.Model.Layers, maxLayers)
	}
	if g.Model.Vocab < 256 {
		return fmt.Errorf("genesis: Model.Vocab is %d; the byte tokenizer needs at least 256", g.Model.Vocab)
	}
	return nil
}

// validatePlan makes sure that deltas and tips of the fragments can travel.
func (g Genesis) validatePlan() error {
	plan := g.Plan()
	if err := g.Outer.CheckPlan(plan); err != nil {
		return fmt.Errorf("genesis: Outer: %w", err)
	}
	if all := g.tipsSize(plan); all > maxTips {
		return fmt.Errorf("genesis: Model has %d parameters, whose tips take %d bytes; joiners can be given at most %d: use a smaller model%s", g.Model.Params(), all, maxTips, g.withoutMomentum(plan))
	}
	for p, f := range plan {
		if !g.travels(f) {
			return fmt.Errorf("genesis: Outer.Fragments is %d: fragment %d has %d values in %d tensors, too many for a payload of %d bytes in %v or a tip of %d bytes; use more Fragments, and where a fragment is one tensor a smaller model",
				g.Outer.Fragments, p, f.Len, len(f.Tensors), wire.MaxPayload, g.Outer.Codec, maxTip)
		}
	}
	return nil
}

// travels tells whether a delta and a tip of the fragment are within the limits of what peers exchange.
func (g Genesis) travels(f outer.Fragment) bool {
	size := codec.MaxSize(g.Outer.Codec, f.Len) // 0 = more values than any payload has
	return size > 0 && size <= wire.MaxPayload && outer.TipSize(f, g.Outer) <= maxTip
}

// SplitToFit doubles the fragments until deltas and tips of each can travel, or each is one tensor. Outer.Fragments
// must be 1 to the tensors of the model.
func (g *Genesis) SplitToFit() {
	tooLarge := func(f outer.Fragment) bool { return !g.travels(f) }
	for most := len(g.Model.Specs()); g.Outer.Fragments < most && slices.ContainsFunc(g.Plan(), tooLarge); {
		g.Outer.Fragments = min(2*g.Outer.Fragments, most)
	}
}

// withoutMomentum is what helps tips that are too large, if it does.
func (g Genesis) withoutMomentum(plan outer.Plan) string {
	if g.Outer.Mu = 0; g.tipsSize(plan) > maxTips {
		return ""
	}
	return ", or no outer momentum, as with the merge rda"
}

// tipsSize is the size of the encoded tips of all fragments.
func (g Genesis) tipsSize(plan outer.Plan) int {
	all := 0
	for _, f := range plan {
		all += outer.TipSize(f, g.Outer)
	}
	return all
}

func (g Genesis) validateNumbers() error {
	for _, f := range []struct {
		name          string
		value, lo, hi float64
	}{
		{"Batch", float64(g.Batch), 1, maxBatch},
		{"Batch x Model.Context", float64(g.Batch) * float64(g.Model.Context), 1, float64(g.Outer.MaxTokensPerStep)},
		{"Inner.LR", g.Inner.LR, 0, 10},
		{"Inner.Beta1", g.Inner.Beta1, 0, math.Nextafter(1, 0)},
		{"Inner.Beta2", g.Inner.Beta2, 0, math.Nextafter(1, 0)},
		{"Inner.Eps", g.Inner.Eps, 1e-30, 1},
		{"Inner.WeightDecay", g.Inner.WeightDecay, 0, 10},
		{"Inner.Clip", g.Inner.Clip, 1e-6, 1e6},
		{"Inner.WarmupFraction", g.Inner.WarmupFraction, 0, 1},
		{"Inner.FinalFraction", g.Inner.FinalFraction, 0, 1},
		{"Inner.Momentum", g.Inner.Momentum, 0, math.Nextafter(1, 0)},
		{"BeatMs", float64(g.BeatMs), minBeat, maxBeat},
		{"QuietMs", float64(g.QuietMs), float64(g.BeatMs), maxQuiet},
	} {
		if !(f.value >= f.lo && f.value <= f.hi) {
			return fmt.Errorf("genesis: %s is %v; use %v to %v", f.name, f.value, f.lo, f.hi)
		}
	}
	return nil
}

// validateOptimizer makes sure that one optimizer has one encoding.
func (in Inner) validateOptimizer() error {
	switch {
	case in.Optimizer == optimizer.NameMuon:
		return nil
	case in.Optimizer == optimizer.NameAdamW:
		return fmt.Errorf("genesis: Inner.Optimizer is %q; leave it out, which means the same", in.Optimizer)
	case in.Optimizer != "":
		return fmt.Errorf("genesis: Inner.Optimizer is %q; this version knows %q, and AdamW where it is left out", clip(in.Optimizer), optimizer.NameMuon)
	case in.Momentum != 0:
		return fmt.Errorf("genesis: Inner.Momentum is %v; it is of %s alone, leave it out", in.Momentum, optimizer.NameMuon)
	}
	return nil
}

// Peak learning rates that measured best (testnet/bench/RESULTS.md). Muon's is that of a hidden size of muonWidth without outer steps.
const (
	adamWRate = 2e-3
	muonRate  = 8e-3
	muonWidth = 64
)

// SetOptimizer gives the run an inner optimizer by its name, "" being AdamW. The rate that suits it comes with SetRate.
func (g *Genesis) SetOptimizer(name string) error {
	in := &g.Inner
	switch name {
	case "", optimizer.NameAdamW:
		in.Optimizer, in.Momentum = "", 0
	case optimizer.NameMuon:
		in.Optimizer, in.Momentum = name, trainer.DefaultMomentum
	default:
		return fmt.Errorf("optimizer %q: use %s or %s", clip(name), optimizer.NameAdamW, optimizer.NameMuon)
	}
	return nil
}

// SetRate gives the run the peak learning rate that suits its inner optimizer, its model and its outer steps: it goes after all of
// them. outerSteps says that it has such steps. An average of what learners made is short, as they differ, and wants a higher rate;
// with momentum it goes further than it was made, and wants a lower one. Tiny came to the fewest bits with 4e-3 in data parallelism,
// 8e-3 with the mean of 4 steps and 4e-3 with momentum after 24, each the best of three rates on two seeds.
func (g *Genesis) SetRate(outerSteps bool) {
	switch {
	case g.Inner.OptimizerName() == optimizer.NameAdamW:
		g.Inner.LR = adamWRate
	case !outerSteps:
		g.Inner.LR = muonRateOf(g.Model.Hidden, 1)
	case g.Outer.Mu > 0:
		g.Inner.LR = muonRateOf(g.Model.Hidden, 1/math.Sqrt2)
	default:
		g.Inner.LR = muonRateOf(g.Model.Hidden, math.Sqrt2)
	}
}

// muonRateOf returns Muon's rate for matrices of so many columns, to two digits, so many times the usual. Entries of its updates have one size,
// so that their spectral norm grows with the root of the width, where models of all widths want the same
// (G. Yang, J. Simon, J. Bernstein, A spectral condition for feature learning, 2023).
// Measured best were, in data parallelism, 8e-3 and 1.1e-2 at a width of 64 and 4e-3 at 128 and 384; the rule is between these.
func muonRateOf(hidden int, times float64) float64 {
	rate := times * muonRate * math.Sqrt(muonWidth/float64(hidden))
	digits := math.Pow(10, math.Floor(math.Log10(rate))-1)
	return math.Round(rate/digits) / math.Round(1/digits)
}

// OptimizerName is what the inner optimizer is called.
func (in Inner) OptimizerName() string {
	if in.Optimizer == "" {
		return optimizer.NameAdamW
	}
	return in.Optimizer
}

// Optim is the inner optimizer as trainers take it.
func (in Inner) Optim() trainer.OptimConfig {
	return trainer.OptimConfig{
		Name:     in.OptimizerName(),
		AdamW:    optimizer.AdamW{Beta1: in.Beta1, Beta2: in.Beta2, Eps: in.Eps, WeightDecay: in.WeightDecay},
		Momentum: in.Momentum,
		Clip:     in.Clip,
	}
}

// Schedule is the learning rate over the run.
func (in Inner) Schedule() optimizer.Schedule {
	return optimizer.Schedule{Peak: in.LR, FinalFraction: in.FinalFraction, WarmupFraction: in.WarmupFraction}
}

// Encode returns the canonical bytes.
func (g Genesis) Encode() []byte {
	b, err := json.Marshal(g)
	if err != nil {
		panic("encode genesis: " + err.Error()) // only a NaN could fail, and Validate refuses it
	}
	return b
}

// RunID is the hash of the canonical bytes.
func (g Genesis) RunID() wire.RunID { return wire.RunID(wire.Sum(g.Encode())) }

// DecodeGenesis reads canonical bytes and validates them.
func DecodeGenesis(b []byte) (Genesis, error) {
	if len(b) > wire.MaxGenesis {
		return Genesis{}, fmt.Errorf("genesis: %d bytes; the limit is %d", len(b), wire.MaxGenesis)
	}
	var g Genesis
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&g); err != nil {
		return Genesis{}, fmt.Errorf("genesis: %w; is this a genesis of another version?", err)
	}
	if err := g.Validate(); err != nil {
		return Genesis{}, err
	}
	if !bytes.Equal(g.Encode(), b) {
		return Genesis{}, fmt.Errorf("genesis: the bytes are not in canonical form; copy the file unchanged from a node of the run")
	}
	return g, nil
}
