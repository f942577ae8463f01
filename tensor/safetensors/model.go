package safetensors

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Model is an open model: a folder of Hugging Face's form, or a single file of tensors. It has what transformers would load,
// versions 4 and 5. What no learner could train is refused by file and tensor.
type Model struct {
	Weights           // those tensors that are trained, under the names that the model has for them
	Config   []byte   // JSON that says what the model is: that of the part for text, where it has several; nil where there is none
	Adapters bool     // Config is an adapter_config.json
	Rows     int      // the most tokens of a row; 0 = not said
	Vocab    int      // 0 = not said
	Left     []string // tensors that are not trained, with why
	Note     string   // what learners need, if that is anything special

	config config
	layers map[int]bool // that have tensors
}

// OpenModel opens the model of a path.
func OpenModel(path string) (*Model, error) {
	m := &Model{layers: map[int]bool{}}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return m, m.add(path)
	}
	if err := m.readConfig(path); err != nil {
		return nil, err
	}
	if m.Weights, err = openWeights(path, m.Adapters); err != nil {
		return nil, err
	}
	if err := m.choose(); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Read reads the values of a tensor as float32 into dst [t.Len()]. All are finite.
func (m *Model) Read(t Placed, dst []float32) error {
	if err := t.file.Read(t.Tensor, dst); err != nil {
		return fmt.Errorf("%s: %w", t.file.name, err)
	}
	wrong := 0
	for _, x := range dst {
		if v := float64(x); math.IsNaN(v) || math.IsInf(v, 0) {
			wrong++
		}
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of the %d values of tensor %.200q are infinite or no numbers: nothing can be trained from them; take an earlier checkpoint", t.file.name, wrong, len(dst), t.Name)
	}
	return nil
}

// choose keeps what is trained, under the model's names.
func (m *Model) choose() error {
	var kept []Placed
	for _, t := range m.Tensors {
		why, err := m.judge(&t)
		switch {
		case err != nil:
			return fmt.Errorf("%s: tensor %.200q %w", t.file.name, t.Name, err)
		case why != "":
			m.Left = append(m.Left, t.Name+" ("+why+")")
		default:
			kept = append(kept, t)
		}
	}
	m.Tensors = kept
	for n := 0; n < m.config.layers && len(m.layers) > 0; n++ { // the config may say any number
		if !m.layers[n] {
			return fmt.Errorf("%s says that there are %d layers, and layer %d has no tensors: %s", m.config.path, m.config.layers, n, another)
		}
	}
	m.noteExperts()
	return m.tie()
}

// judge gives a tensor the name of the model, and says why it is not trained, "" if it is. The error says what is wrong with it.
func (m *Model) judge(t *Placed) (why string, err error) {
	name, ofText := m.config.nameOf(t.Name)
	if !ofText {
		return "of another part than the text, which alone is trained and exported", nil
	}
	t.Name = name
	if why := constant(t.Tensor); why != "" {
		return why, nil
	}
	if _, known := widths[t.DType]; !known {
		return "", fmt.Errorf("is in %.20s: %s", t.DType, quantized)
	}
	if n := layerOf(name); n >= 0 && m.config.layers > 0 {
		if n >= m.config.layers {
			return fmt.Sprintf("beyond the %d layers of the config", m.config.layers), nil
		}
		m.layers[n] = true
	}
	return "", m.config.checkShape(t.Tensor)
}

// constant says why a tensor is no parameter: it is of places or masks, or a constant that old files have beside the weights.
func constant(t Tensor) string {
	mask := len(t.Shape) == 4 && t.Shape[0] == 1 && t.Shape[1] == 1 && t.Shape[2] == t.Shape[3]
	switch {
	case mask && isOneOf(t.Name, "bias"), isOneOf(t.Name, "masked_bias", "rotary_emb.inv_freq"):
		return "a constant of the model"
	case t.DType == "I64" || t.DType == "BOOL":
		return "it is in " + t.DType
	}
	return ""
}

var layerIn = regexp.MustCompile(`(?:^|\.)(?:layers|h|blocks)\.(\d{1,6})\.`)

// layerOf is the layer that a tensor is of, -1 for none.
func layerOf(name string) int {
	found := layerIn.FindStringSubmatch(name)
	if found == nil {
		return -1
	}
	n, _ := strconv.Atoi(found[1]) // a few digits
	return n
}

// isEmbedding and isHead say so by the name. The head makes logits.
func isEmbedding(t Placed) bool {
	return isOneOf(t.Name, "embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
}
func isHead(t Placed) bool { return isOneOf(t.Name, "lm_head.weight", "embed_out.weight") }

// isOneOf says that a name of a tensor ends with one of those, as a whole or behind a dot.
func isOneOf(name string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return name == end || strings.HasSuffix(name, "."+end) })
}

// tie leaves out a head that is tied to the embeddings: learners have one parameter for both.
func (m *Model) tie() error {
	embedding, head := slices.IndexFunc(m.Tensors, isEmbedding), slices.IndexFunc(m.Tensors, isHead)
	tied, known := m.config.tied()
	switch {
	case embedding < 0 || m.config.fields == nil:
		return nil
	case head < 0 && known && !tied && m.config.causal():
		return fmt.Errorf("%s has no tensor lm_head.weight, and %s does not tie it to the embeddings: %s", m.Tensors[embedding].file.name, m.config.path, another)
	case head < 0 || known && !tied:
		return nil
	case !known:
		return fmt.Errorf("%s does not say whether %s is tied to the embeddings: set tie_word_embeddings there to true or false", m.config.path, m.Tensors[head].Name)
	}
	x, y := sha256.New(), sha256.New()
	if err := errors.Join(m.Tensors[head].copyTo(x), m.Tensors[embedding].copyTo(y)); err != nil {
		return err
	}
	why := "the config ties it to " + m.Tensors[embedding].Name
	if string(x.Sum(nil)) != string(y.Sum(nil)) {
		why += ", and its values are others: transformers 4 drops them, 5 keeps them and ties nothing; set tie_word_embeddings to false to train both"
	}
	m.Left = append(m.Left, m.Tensors[head].Name+" ("+why+")")
	m.Tensors = slices.Delete(m.Tensors, head, head+1)
	return nil
}

var oneExpert = regexp.MustCompile(`\.experts\.\d+\.`)

// noteExperts says which transformers has the experts of a model as the files have them.
func (m *Model) noteExperts() {
	kind := m.config.text("model_type")
	for _, t := range m.Tensors {
		switch {
		case kind != "" && oneExpert.MatchString(t.Name):
			m.Note = "transformers 4: each expert has tensors of its own, such as " + t.Name + ", and version 5 has one for all of a layer"
		case (kind == "mixtral" || strings.HasSuffix(kind, "_moe")) && isOneOf(t.Name, "experts.gate_up_proj"):
			m.Note = "transformers 5: all experts of a layer are one tensor, such as " + t.Name + ", and version 4 has one for each"
		}
	}
}
