package genesis

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/tensor/safetensors"
)

// Layout is the trained tensors of a run whose model is not built in, in the order of the
// parameter slab. Names are the canonical ones of Hugging Face or PEFT.
type Layout []Tensor

// Tensor is one tensor of a layout.
type Tensor struct {
	Name  string
	Shape []int  `json:",omitempty"` // nothing for a scalar
	DType string `json:",omitempty"` // of the file that it came from, for exports: F64, BF16 or F16; nothing for F32
}

// Limits of a layout.
const (
	maxTensors = 8192    // several times what the largest models have
	maxTensor  = 256     // bytes of a name
	maxDims    = 8       // no layer has more
	maxValues  = 1 << 36 // of all tensors: 256 GiB of float32
	maxRecipe  = 64 << 10
)

// MarshalJSON writes the empty list where there is none, as documents always had it.
func (l Layout) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]Tensor(l))
}

// UnmarshalJSON is the inverse.
func (l *Layout) UnmarshalJSON(b []byte) error {
	if string(b) == "[]" {
		*l = nil
		return nil
	}
	return json.Unmarshal(b, (*[]Tensor)(l))
}

// validate names what is wrong with the first tensor that no run can have.
func (l Layout) validate() error {
	if len(l) > maxTensors {
		return fmt.Errorf("the model has %d tensors; use at most %d", len(l), maxTensors)
	}
	seen, all := make(map[string]bool, len(l)), 0
	for i, t := range l {
		n, err := t.values()
		if err != nil {
			return fmt.Errorf("tensor %d: %w", i, err)
		}
		if seen[t.Name] {
			return fmt.Errorf("two tensors are named %q", t.Name)
		}
		seen[t.Name] = true
		if all += n; all > maxValues {
			return fmt.Errorf("the model has more than %d values at tensor %q", int64(maxValues), t.Name)
		}
	}
	return nil
}

// values counts them, or says what is wrong.
func (t Tensor) values() (n int, err error) {
	if t.Name == "__metadata__" {
		return 0, fmt.Errorf("the name %q: files of tensors have something else under it", t.Name)
	}
	if t.Name == "" || len(t.Name) > maxTensor || !utf8.ValidString(t.Name) || strings.ContainsFunc(t.Name, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return 0, fmt.Errorf("the name %.80q: use 1 to %d printable bytes without blanks", t.Name, maxTensor)
	}
	if len(t.Shape) > maxDims {
		return 0, fmt.Errorf("%q has %d dimensions; use at most %d", t.Name, len(t.Shape), maxDims)
	}
	if t.DType != "" && (t.DType == "F32" || safetensors.Width(t.DType) == 0) {
		return 0, fmt.Errorf("%q has the type %.20q; use F64, BF16 or F16, or nothing for F32", t.Name, t.DType)
	}
	n = 1
	for _, d := range t.Shape {
		if d < 1 || d > math.MaxInt32 || n > maxValues/d {
			return 0, fmt.Errorf("%q has the shape %v; use dimensions of 1 or more with at most %d values", t.Name, t.Shape, int64(maxValues))
		}
		n *= d
	}
	return n, nil
}

// BuiltIn says that the run trains a model that this program knows.
func (g Genesis) BuiltIn() bool { return len(g.Layout) == 0 }

// Views are the trained tensors in the parameter slab.
func (g Genesis) Views() []tensor.View {
	if g.BuiltIn() {
		return tensor.Layout(g.Model.Specs())
	}
	specs := make([]tensor.Spec, len(g.Layout))
	for i, t := range g.Layout {
		specs[i] = tensor.Spec{Name: t.Name, Shape: t.Shape}
	}
	return tensor.Layout(specs)
}

// Params is how many values are trained.
func (g Genesis) Params() int {
	n := 0
	for _, v := range g.Views() {
		n += v.Len
	}
	return n
}

// Plan is the fragment plan of the run.
func (g Genesis) Plan() outer.Plan {
	views := g.Views()
	if !g.cutsRows(views) {
		return outer.NewPlan(views, g.Outer.Fragments)
	}
	return outer.NewRowPlan(views, g.Outer.Fragments)
}

// cutsRows says that tensors are cut between rows: those of a Layout, and those of a large built-in model where whole ones make no
// even fragments. Each fragment costs memory, and a payload, by its own size.
func (g Genesis) cutsRows(views []tensor.View) bool {
	if !g.BuiltIn() || g.Params() <= largeParams {
		return !g.BuiltIn()
	}
	if g.Outer.Fragments > len(views) {
		return true
	}
	whole, all := outer.NewPlan(views, g.Outer.Fragments), g.Params()
	return slices.ContainsFunc(whole, func(f outer.Fragment) bool { return f.Len > 2*(all/len(whole)) })
}

// MostFragments is the most that the run can be cut into.
func (g Genesis) MostFragments() int {
	if g.BuiltIn() && !g.Large() {
		return len(g.Model.Specs())
	}
	return wire.MaxFragments
}

// validateModel checks what is trained: a built-in model, or a layout and nothing of one.
func (g Genesis) validateModel() error {
	if g.BuiltIn() {
		return g.validateBuiltIn()
	}
	if only := (llama.Config{Context: g.Model.Context}); g.Model != only {
		return fmt.Errorf("genesis: Model is %+v beside a Layout; set its Context alone, the tokens of a row", g.Model)
	}
	if c := g.Model.Context; c < 1 || c > maxContext {
		return fmt.Errorf("genesis: Model.Context is %d; use 1 to %d tokens of a row", c, maxContext)
	}
	if n := len(g.Recipe); n > maxRecipe || n > 0 && !json.Valid([]byte(g.Recipe)) {
		return fmt.Errorf("genesis: Recipe has %d bytes of %.80q; use JSON of at most %d bytes", n, g.Recipe, maxRecipe)
	}
	if err := g.Layout.validate(); err != nil {
		return fmt.Errorf("genesis: Layout: %w", err)
	}
	return nil
}

// maxContext bounds the tokens of a row.
const maxContext = 1 << 20

// ModelLabel is the name of the model's sizes, or how large it is.
func (g Genesis) ModelLabel() string {
	if g.BuiltIn() {
		return ModelName(g.Model)
	}
	return fmt.Sprintf("%d tensors of %d parameters", len(g.Layout), g.Params())
}
