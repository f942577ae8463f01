package genesis

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Limits on what a stranger's genesis may ask for.
const (
	maxName  = 200     // characters: it is printed
	MaxBatch = 1 << 12 // rows per step: more does not fit any one machine
	maxWay   = 10_000  // ms: ten seconds are no link, not even over satellites

	// maxLayers bounds the tensors that are listed before anything is known of
	// a model: ten times the deepest in use.
	maxLayers = 1 << 10
	// maxSnapshot bounds the tips of all fragments together: their chunks' digests
	// must fit one manifest (wire.MaxManifest), and some room is for the links that lead to them.
	maxSnapshot = 28 << 30
	// maxHistory is the room for the links that lead to a tip: 256 rounds of a
	// thousand deltas each are half of it.
	maxHistory = 16 << 20
	// maxTip bounds the tip of one fragment: with the links that lead to it, it
	// travels as wire.MaxChunks chunks. 16 MiB is room for the links.
	maxTip = wire.MaxChunks*wire.ChunkSize - maxHistory
)

// sha256Hex is the length of a SHA-256 in hex.
const sha256Hex = 64

// isDigest says that a text is a SHA-256 in hex, in lower case.
func isDigest(text string) bool {
	b, err := hex.DecodeString(text)
	return err == nil && 2*len(b) == sha256Hex && strings.ToLower(text) == text
}

// Validate returns an error that names the first field out of range. It costs
// no more than milliseconds and megabytes, whatever the genesis asks for.
func (g Genesis) Validate() error {
	if err := g.validateFields(); err != nil {
		return err
	}
	if err := g.validateFirstSize(); err != nil {
		return err
	}
	return g.validatePlan()
}

// validateFields checks each field by itself. What they make of the model together
// is for validatePlan.
func (g Genesis) validateFields() error {
	if g.Rules != Rules {
		return fmt.Errorf("genesis: Rules is %d, this program knows %d; use the version of atoll that made the run", g.Rules, Rules)
	}
	if err := cmp.Or(g.validateOwners(), g.validateGiven()); err != nil {
		return err
	}
	if err := g.validateTexts(); err != nil {
		return err
	}
	if err := g.validateCorpus(); err != nil {
		return err
	}
	if err := g.validateModel(); err != nil {
		return err
	}
	if err := g.Outer.Validate(); err != nil {
		return fmt.Errorf("genesis: Outer: %w", err)
	}
	if g.Outer.Fragments > wire.MaxFragments {
		return fmt.Errorf("genesis: Outer.Fragments is %d; a heartbeat has room for %d", g.Outer.Fragments, wire.MaxFragments)
	}
	if err := g.validateNumbers(); err != nil {
		return err
	}
	return g.Inner.validate()
}

// validateOwners makes sure that no key is there twice.
func (g Genesis) validateOwners() error {
	if n := len(g.Owners); n > member.MaxOwners {
		return fmt.Errorf("genesis: Owners has %d keys; use at most %d", n, member.MaxOwners)
	}
	for i, o := range g.Owners {
		if slices.Contains(g.Owners[:i], o) {
			return fmt.Errorf("genesis: Owners has %v twice", o)
		}
	}
	return nil
}

// validateGiven makes sure that a model that is not built in brings its values, and that no other has a recipe.
func (g Genesis) validateGiven() error {
	switch {
	case len(g.First) > maxFirst:
		return fmt.Errorf("genesis: First has %d digests; use at most %d", len(g.First), maxFirst)
	case !g.Given() && !g.BuiltIn():
		return fmt.Errorf("genesis: First is empty; it has digests of the first values of a Layout")
	case g.BuiltIn() && g.Recipe != "":
		return fmt.Errorf("genesis: Recipe is %.80q; that of a built-in model follows from the other fields", g.Recipe)
	}
	return cmp.Or(g.validateFirst(), g.validateFiles())
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
		return fmt.Errorf("genesis: Data.SHA256 is %.80q; use %d hex digits, or nothing", g.Data.SHA256, sha256Hex)
	}
	return nil
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }

// validateBuiltIn checks a model that this program knows.
func (g Genesis) validateBuiltIn() error {
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
	if err := g.OuterParams().CheckPlan(plan); err != nil {
		return fmt.Errorf("genesis: Outer: %w", err)
	}
	if all := g.TipsSize(plan); all > maxSnapshot {
		return fmt.Errorf("genesis: Model has %d parameters, whose snapshot takes %d bytes; joiners can be given at most %d: use a smaller model", g.Params(), all, maxSnapshot)
	}
	for p, f := range plan {
		if !g.travels(f) {
			return fmt.Errorf("genesis: Outer.Fragments is %d: fragment %d has %d values in %d tensors, too many for a payload of %d bytes in %v or a tip of %d bytes; use more Fragments",
				g.Outer.Fragments, p, f.Len, len(f.Tensors), wire.MaxPayload, g.Outer.Codec, maxTip)
		}
	}
	return nil
}

// travels tells whether a delta and a tip of the fragment are within the limits of what peers exchange.
func (g Genesis) travels(f outer.Fragment) bool {
	size := codec.MaxSize(g.Outer.Codec, f.Len) // 0 = more values than any payload has
	return size > 0 && size <= wire.MaxPayload && outer.TipSize(f, g.OuterParams()) <= maxTip
}

// splitToFit doubles the fragments until deltas and tips of each can travel, or no more can be made. Outer.Fragments must be 1
// to what the model can be cut into.
func (g *Genesis) splitToFit() {
	tooLarge := func(f outer.Fragment) bool { return !g.travels(f) }
	for most := g.MostFragments(); g.Outer.Fragments < most && slices.ContainsFunc(g.Plan(), tooLarge); {
		g.Outer.Fragments = min(2*g.Outer.Fragments, most)
	}
}

// LargestTip is the most bytes that a snapshot source may say a fragment has.
func (g Genesis) LargestTip() uint64 {
	size := 0
	for _, f := range g.Plan() {
		size = max(size, outer.TipSize(f, g.OuterParams()))
	}
	return uint64(size + maxHistory)
}

// snapshotFits says whether joiners can be given the tips of all fragments.
func (g Genesis) snapshotFits() bool { return g.TipsSize(g.Plan()) <= maxSnapshot }

// TipsSize is the size of the encoded tips of all fragments.
func (g Genesis) TipsSize(plan outer.Plan) (all int) {
	for _, f := range plan {
		all += outer.TipSize(f, g.OuterParams())
	}
	return all
}

func (g Genesis) validateNumbers() error {
	for _, f := range []struct {
		name          string
		value, lo, hi float64
	}{
		{"Batch", float64(g.Batch), 1, MaxBatch},
		{"Batch x Model.Context", float64(g.StepTokens()), 1, outer.MaxStepTokens},
		{"Inner.LR", g.Inner.LR, 0, 10},
		{"WayMs", float64(g.WayMs), 1, maxWay},
	} {
		if err := inRange(f.name, f.value, f.lo, f.hi); err != nil {
			return err
		}
	}
	return nil
}

// inRange refuses a number out of range, and what is none.
func inRange(name string, value, lo, hi float64) error {
	if value >= lo && value <= hi {
		return nil
	}
	return fmt.Errorf("genesis: %s is %v; use %v to %v", name, value, lo, hi)
}
