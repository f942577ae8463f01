package genesis

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"atoll/tensor/llama"
)

// ModelLabel is how a run is called that was given no name.
func ModelLabel(model string) string {
	return strings.TrimSuffix(filepath.Base(model), ".json")
}

// maxModelFile bounds a file of model sizes: it is a handful of numbers.
const maxModelFile = 1 << 16

// ErrModelName says that a name is none of a model and of no file of sizes.
var ErrModelName = errors.New("use tiny, small, base or a file of sizes that ends in .json")

// ModelConfig returns the sizes of a model: tiny, small, base, or a JSON file
// with the fields of llama.Config. RopeTheta, NormEps and Tied may be left out
// there.
func ModelConfig(model string) (llama.Config, error) {
	if c, ok := llama.Named(model); ok {
		return c, nil
	}
	if !strings.HasSuffix(model, ".json") {
		return llama.Config{}, fmt.Errorf("model %.80q: %w", model, ErrModelName)
	}
	b, err := os.ReadFile(model)
	if err != nil {
		return llama.Config{}, fmt.Errorf("model sizes: %w: use tiny, small, base or a file that exists", err)
	}
	if len(b) > maxModelFile {
		return llama.Config{}, fmt.Errorf("model sizes in %s: %d bytes; at most %d", model, len(b), maxModelFile)
	}
	return parseModel(model, b)
}

func parseModel(name string, b []byte) (llama.Config, error) {
	c := llama.Config{RopeTheta: llama.Tiny.RopeTheta, NormEps: llama.Tiny.NormEps, Tied: true}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return llama.Config{}, fmt.Errorf("model sizes in %s: %w; write them like %s", name, err, exampleSizes)
	}
	if err := c.Validate(); err != nil {
		return llama.Config{}, fmt.Errorf("model sizes in %s: %w", name, err)
	}
	return c, nil
}

// exampleSizes shows what a file of sizes looks like, in errors and help.
const exampleSizes = `{"vocab":256,"hidden":128,"layers":4,"heads":4,"kvheads":4,"intermediate":344,"context":128}`

// ModelName is the name of the model's sizes, or how large it is.
func ModelName(c llama.Config) string {
	if name := nameOf(c); name != "" {
		return name
	}
	return fmt.Sprintf("%d parameters", c.Params())
}

// nameOf is the name of sizes that have one, otherwise "".
func nameOf(c llama.Config) string {
	for _, name := range []string{"tiny", "small", "base"} {
		if known, ok := llama.Named(name); ok && known == c {
			return name
		}
	}
	return ""
}

func hasName(c llama.Config) bool { return nameOf(c) != "" }
