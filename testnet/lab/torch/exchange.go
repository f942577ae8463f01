package torch

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"atoll/optimizer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// exchange is all that a training needs besides the arithmetic: two trainers that are given the
// same one must go the same way.
type exchange struct {
	recipe
	params  *tensor.Slab // first parameters
	rates   []float64    // [steps], learning rates
	batches []byte       // [steps, Batch, Context+1], tokens: of a row the first are inputs, the last targets
	heldOut []byte       // text to score
}

// recipe is what of an exchange is not an array.
type recipe struct {
	Model llama.Config
	Batch int // rows of a step
	AdamW optimizer.AdamW
	Clip  float64 // largest norm of a gradient
}

// The file is in the format safetensors: the length of a header in 8 bytes, little-endian, the header in
// JSON, and the arrays. The header has the type, shape and place of each array. Parameters have their
// own names; what else there is has these.
const (
	ratesName   = "learning_rates"
	batchesName = "batches"
	heldOutName = "held_out"
	metaName    = "__metadata__"
	recipeKey   = "recipe" // of the metadata: a recipe in JSON
	digestKey   = "sha256" // of the metadata: of the arrays, in hex
)

// maxHeader bounds a header, which has some 150 bytes for each array: the largest model has 111.
const maxHeader = 1 << 20

// errExchange is wrapped by all refusals of a file.
var errExchange = errors.New("it is no exchange of a training, or it is damaged: write it again")

// array is one entry of a header.
type array struct {
	Type  string `json:"dtype"`
	Shape []int  `json:"shape"`
	Place [2]int `json:"data_offsets"` // from, to
}

// part is an array with its name and values, a slice of fixed-size numbers.
type part struct {
	name   string
	kind   string // its type in the header
	shape  []int
	values any
}

// parts lists the arrays in the order of the file.
func (e *exchange) parts() []part {
	var list []part
	for _, v := range e.params.Views {
		list = append(list, part{v.Name, "F32", v.Shape, e.params.Of(v)})
	}
	return append(list,
		part{ratesName, "F64", []int{len(e.rates)}, e.rates},
		part{batchesName, "U8", []int{len(e.rates), e.Batch, e.Model.Context + 1}, e.batches},
		part{heldOutName, "U8", []int{len(e.heldOut)}, e.heldOut})
}

// encode returns the file.
func (e *exchange) encode() ([]byte, error) {
	var data []byte
	header := map[string]any{}
	for _, p := range e.parts() {
		from := len(data)
		var err error
		if data, err = binary.Append(data, binary.LittleEndian, p.values); err != nil {
			return nil, fmt.Errorf("write %s: %w", p.name, err)
		}
		header[p.name] = array{p.kind, p.shape, [2]int{from, len(data)}}
	}
	recipe, err := json.Marshal(e.recipe)
	if err != nil {
		return nil, fmt.Errorf("write the recipe: %w", err)
	}
	header[metaName] = map[string]string{recipeKey: string(recipe), digestKey: digest(data)}
	head, err := json.Marshal(header)
	if err != nil {
		return nil, fmt.Errorf("write the header: %w", err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	return append(append(file, head...), data...), nil
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// decodeExchange reads a file. Its errors wrap errExchange.
func decodeExchange(file []byte) (*exchange, error) {
	e, err := readExchange(file)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", err, errExchange)
	}
	return e, nil
}

func readExchange(file []byte) (*exchange, error) {
	header, data, err := split(file)
	if err != nil {
		return nil, err
	}
	var meta map[string]string
	if err := json.Unmarshal(header[metaName], &meta); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	if got := digest(data); got != meta[digestKey] {
		return nil, fmt.Errorf("the arrays have the SHA-256 %s, the header says %q", got, meta[digestKey])
	}
	e := &exchange{}
	if err := json.Unmarshal([]byte(meta[recipeKey]), &e.recipe); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	if err := e.allocate(header, len(data)); err != nil {
		return nil, err
	}
	return e, e.fill(header, data)
}

// split takes a file apart.
func split(file []byte) (header map[string]json.RawMessage, data []byte, err error) {
	if len(file) < 8 {
		return nil, nil, fmt.Errorf("it has %d bytes", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > maxHeader || n > uint64(len(file)-8) {
		return nil, nil, fmt.Errorf("a header of %d bytes in a file of %d, of at most %d", n, len(file), maxHeader)
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		return nil, nil, fmt.Errorf("header: %w", err)
	}
	return header, file[8+n:], nil
}

// allocate makes room for the arrays that the recipe asks for, no more than there is data. The header has
// the lengths that the recipe leaves open.
func (e *exchange) allocate(header map[string]json.RawMessage, data int) error {
	if err := e.Model.Validate(); err != nil {
		return err
	}
	switch n := e.Model.Params(); {
	case e.Batch < 1:
		return fmt.Errorf("a batch of %d rows", e.Batch)
	case n > data/4:
		return fmt.Errorf("%d bytes of arrays for a model of %d parameters", data, n)
	}
	sizes := map[string]int{}
	for _, name := range []string{ratesName, batchesName, heldOutName} {
		a, err := arrayOf(header, name)
		if err != nil {
			return err
		}
		if from, to := a.Place[0], a.Place[1]; from < 0 || to < from || to > data {
			return fmt.Errorf("array %s is at %v of %d bytes", name, a.Place, data)
		}
		sizes[name] = a.Place[1] - a.Place[0]
	}
	e.rates, e.batches, e.heldOut = make([]float64, sizes[ratesName]/8), make([]byte, sizes[batchesName]), make([]byte, sizes[heldOutName])
	e.params = llama.NewParams(e.Model)
	return nil
}

func arrayOf(header map[string]json.RawMessage, name string) (a array, err error) {
	if err := json.Unmarshal(header[name], &a); err != nil {
		return a, fmt.Errorf("array %s: %w", name, err)
	}
	return a, nil
}

// fill reads the arrays, which must follow one another in their order and leave nothing over.
func (e *exchange) fill(header map[string]json.RawMessage, data []byte) error {
	parts, at := e.parts(), 0
	if got, want := len(header), len(parts)+1; got != want {
		return fmt.Errorf("the header has %d entries, the recipe asks for %d", got, want)
	}
	for _, p := range parts {
		a, err := arrayOf(header, p.name)
		if err != nil {
			return err
		}
		next := at + binary.Size(p.values)
		if a.Type != p.kind || !slices.Equal(a.Shape, p.shape) || a.Place != [2]int{at, next} || next > len(data) {
			return fmt.Errorf("array %s is %s %v at %v of %d bytes, the recipe asks for %s %v at [%d %d]",
				p.name, a.Type, a.Shape, a.Place, len(data), p.kind, p.shape, at, next)
		}
		if err := binary.Read(bytes.NewReader(data[at:next]), binary.LittleEndian, p.values); err != nil {
			return fmt.Errorf("array %s: %w", p.name, err)
		}
		at = next
	}
	if at != len(data) {
		return fmt.Errorf("%d bytes after the last array", len(data)-at)
	}
	return nil
}
