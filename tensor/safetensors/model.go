package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Model is an open model: a folder of Hugging Face's form, or a single file of tensors. It has what transformers would load,
// versions 4 and 5. What no learner could train is refused by file and tensor.
type Model struct {
	Tensors  []Tensor // that are trained, under the names that the model has for them, in the order of files and places
	Config   []byte   // JSON that says what the model is: that of the part for text, where it has several; nil where there is none
	Adapters bool     // Config is an adapter_config.json
	Rows     int      // the most tokens of a row; 0 = not said
	Notes    []string // which tensors are not trained, and what learners need

	files  []*File
	path   string // of the config
	config config // nothing where it is not of transformers
	parts  bool   // the config is of one part of several
}

// OpenModel opens the model of a path.
func OpenModel(path string) (*Model, error) {
	m := &Model{}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return m, m.add(path)
	}
	if err = m.readConfig(path); err == nil {
		err = m.openFiles(path)
	}
	if err == nil {
		err = m.choose()
	}
	if err != nil {
		m.Close()
	}
	return m, err
}

// Close closes the files.
func (m *Model) Close() {
	for _, f := range m.files {
		f.Close()
	}
}

// add opens one more file.
func (m *Model) add(path string) error {
	f, err := OpenFile(path)
	if err != nil {
		return err
	}
	m.files = append(m.files, f)
	m.Tensors = append(m.Tensors, f.Tensors...)
	return nil
}

// Read reads the values of a tensor as float32 into dst [t.Len()]. All are finite.
func (m *Model) Read(t Tensor, dst []float32) error {
	if err := t.file.Read(t, dst); err != nil {
		return fmt.Errorf("%s: %w", t.file.name, err)
	}
	wrong, how := 0, "infinite or no numbers"
	for _, x := range dst {
		if v := float64(x); math.IsNaN(v) || math.IsInf(v, 0) {
			wrong++
		}
	}
	if t.DType == "F64" {
		how = "infinite, no numbers or too large for float32"
	}
	if wrong > 0 {
		return fmt.Errorf("%s: %d of the %d values of tensor %.200q are %s: nothing can be trained from them; take an earlier checkpoint", t.file.name, wrong, len(dst), t.Name, how)
	}
	return nil
}

// config is what a config.json says of tensors, by the names in use.
type config struct {
	Kind      string          `json:"model_type"`
	Text      json.RawMessage `json:"text_config"` // of a model of several parts
	Quantized map[string]any  `json:"quantization_config"`
	Tied      *bool           `json:"tie_word_embeddings"`
	Positions int             `json:"max_position_embeddings"`
	OldPlaces int             `json:"n_positions"`
	Layers    int             `json:"num_hidden_layers"`
	OldLayers int             `json:"n_layer"`
	Vocab     int             `json:"vocab_size"`
	Projected int             `json:"word_embed_proj_dim"` // this and the following: of embeddings, which may be narrower than layers
	Factor    int             `json:"embedding_size"`
	Input     int             `json:"input_embedding_size"`
	Hidden    int             `json:"hidden_size"`
	OldWidth  int             `json:"n_embd"`
	Width     int             `json:"d_model"`
}

// parse reads a config. The words of a model of somebody's own may mean something else.
func (c *config) parse(b []byte) error {
	if string(bytes.TrimSpace(b)) == "null" {
		return errors.New("it is null, and says nothing of the model: fetch it anew")
	}
	err := json.Unmarshal(b, c)
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" && c.Kind == "" {
		err = nil
	}
	if err == nil && len(c.Quantized) > 0 {
		err = errors.New("it has a quantization_config: " + quantized)
	}
	return err
}

// readConfig reads what a folder says of its model, if it does.
func (m *Model) readConfig(dir string) (err error) {
	for _, name := range []string{"adapter_config.json", "config.json"} {
		m.path, m.Adapters = filepath.Join(dir, name), name != "config.json"
		if m.Config, err = readText(m.path); err == nil {
			err = m.parseConfig()
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", m.path, err)
		}
	}
	return nil
}

// parseConfig reads Config, which becomes that of the part for text where a model has several.
func (m *Model) parseConfig() error {
	c := &m.config
	err := c.parse(m.Config)
	if m.parts = err == nil && len(c.Text) > len("null"); m.parts {
		tied := c.Tied
		m.Config, *c = c.Text, config{}
		if err = c.parse(m.Config); c.Kind != "" && c.Tied == nil && tied != nil {
			m.Config, c.Tied = append(fmt.Appendf(nil, `{"tie_word_embeddings":%v,`, *tied), m.Config[1:]...), tied
		}
	}
	if m.Rows = max(c.Positions, 0); !strings.Contains(c.Kind, "t5") { // whose places are relative: rows of any length
		m.Rows = max(m.Rows, c.OldPlaces)
	}
	return err
}

// choose keeps what is trained, under the model's names.
func (m *Model) choose() error {
	var kept []Tensor
	others, dropped := 0, ""
	for _, t := range m.Tensors {
		name, ofText := m.nameOf(t.Name)
		if t.Name = name; !ofText {
			others, dropped = others+1, cmp.Or(dropped, name)
			continue
		}
		why, err := m.judge(t)
		switch {
		case err != nil:
			return fmt.Errorf("%s: tensor %.200q %w", t.file.name, t.Name, err)
		case why != "":
			m.Notes = append(m.Notes, t.Name+" is not trained: "+why)
		default:
			kept = append(kept, t)
		}
	}
	count := "1 tensor is"
	if others > 1 {
		count = fmt.Sprint(others, " tensors are")
	}
	if m.Tensors = kept; others > 0 {
		m.Notes = append(m.Notes, count+" of other parts than that for text, which alone is trained and exported")
	}
	return cmp.Or(m.readsTokens(dropped), m.countLayers(), m.tie())
}

var ofLayer = regexp.MustCompile(`^(.*\b(?:layers|h)\.)(\d+)\.`)

// countLayers refuses files with fewer or more layers than the config says.
func (m *Model) countLayers() error {
	said, found, list := cmp.Or(m.config.Layers, m.config.OldLayers), 0, ""
	for _, t := range m.Tensors {
		if at := ofLayer.FindStringSubmatch(t.Name); at != nil && (list == "" || list == at[1]) {
			n, _ := strconv.Atoi(at[2])
			list, found = at[1], max(found, n+1)
		}
	}
	if m.Adapters || m.config.Kind == "" || said == 0 || found == 0 || found == said {
		return nil
	}
	return fmt.Errorf("%s says %d layers, and the files have %d: %s", m.path, said, found, another)
}

// readsTokens refuses a model without embeddings, of which something is missing or is not known as a part for text.
func (m *Model) readsTokens(dropped string) error {
	tied := m.config.Tied != nil && *m.config.Tied && len(m.Tensors) > 1 // old files may have the head alone
	has := slices.ContainsFunc(m.Tensors, func(t Tensor) bool {
		rows := len(t.Shape) == 2 && (t.Shape[0] == m.config.Vocab || strings.Contains(t.Name, "embed"))
		return isEmbedding(t) || !isHead(t) && rows || isHead(t) && tied
	})
	switch {
	case has || m.Adapters || m.config.Kind == "" && !m.parts:
		return nil
	case dropped != "":
		return fmt.Errorf("%s has a text_config, and no embeddings are under the names of a part for text; the first tensor that is not is %.200q: save that part alone as a model of its own, by save_pretrained", m.path, dropped)
	}
	return fmt.Errorf("%s is of a model that reads tokens, and no tensor to train has its embeddings: fetch its files anew, or leave model_type out of a config of your own", m.path)
}

// nameOf is the name of a tensor in the model for text alone, and whether that has the tensor.
func (m *Model) nameOf(name string) (string, bool) {
	if !m.parts || strings.HasPrefix(name, "lm_head.") {
		return name, true
	}
	for _, part := range []string{"language_model.", "text_model."} {
		if rest, ok := strings.CutPrefix(name, "model."+part); ok { // since transformers 4.52
			return "model." + rest, true
		}
		if rest, ok := strings.CutPrefix(name, part); ok {
			return rest, true
		}
	}
	return name, false
}

var oneExpert = regexp.MustCompile(`\.experts\.\d+\.`)

// judge says why a tensor is not trained, "" if it is. The error says what is wrong with it.
func (m *Model) judge(t Tensor) (why string, err error) {
	if why := constant(t); why != "" {
		return why, nil
	}
	if _, known := widths[t.DType]; !known {
		return "", fmt.Errorf("is in %.20s: %s", t.DType, quantized)
	}
	c, needs := m.config, ""
	vocab, width := c.Vocab, cmp.Or(c.Projected, c.Factor, c.Input, c.Hidden, c.OldWidth, c.Width)
	switch {
	case m.config.Kind == "": // somebody's own, whose words may mean something else
	case isEmbedding(t) || isHead(t):
		if len(t.Shape) != 2 || vocab > 0 && t.Shape[0] != vocab || width > 0 && t.Shape[1] != width {
			known := strings.NewReplacer(" 0 tokens and a width of 0", " tokens and a width", " 0 tokens and", "", " and a width of 0", "") // 0 is not said
			return "", fmt.Errorf("has the shape %v, and %s says%s: %s", t.Shape, m.path, known.Replace(fmt.Sprintf(" %d tokens and a width of %d", vocab, width)), another)
		}
	case oneExpert.MatchString(t.Name):
		needs = "learners need transformers 4: each expert has tensors of its own, and version 5 has one for all of a layer"
	case m.config.Kind == "mixtral" && isOneOf(t.Name, "experts.gate_up_proj"):
		needs = "learners need transformers 5: all experts of a layer are one tensor, and version 4 has one for each"
	}
	if needs != "" && !slices.Contains(m.Notes, needs) {
		m.Notes = append(m.Notes, needs)
	}
	return "", nil
}

// constant says why a tensor is no parameter: it is of places or masks, or a constant that old files have beside the weights.
func constant(t Tensor) string {
	mask := len(t.Shape) == 4 && t.Shape[0] == 1 && t.Shape[1] == 1 && t.Shape[2] == t.Shape[3]
	switch {
	case mask && isOneOf(t.Name, "bias"), isOneOf(t.Name, "masked_bias", "rotary_emb.inv_freq"):
		return "a constant of the model"
	case t.DType == "BOOL", wholes.MatchString(t.DType) && !packed.MatchString(t.Name):
		return "it is in " + t.DType
	}
	return ""
}

// Whole numbers are counts and places, or quantized weights where the name says so.
var wholes, packed = regexp.MustCompile(`^[IU](8|16|32|64)$`), regexp.MustCompile(`(weight|zeros|scales|blocks|packed)$`)

// isEmbedding and isHead say so by the name. The head makes logits.
func isEmbedding(t Tensor) bool {
	return isOneOf(t.Name, "embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
}
func isHead(t Tensor) bool { return isOneOf(t.Name, "lm_head.weight", "embed_out.weight") }

// isOneOf says that a name of a tensor ends with one of those, as a whole or behind a dot.
func isOneOf(name string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return name == end || strings.HasSuffix(name, "."+end) })
}

// tie leaves out a head that is tied to the embeddings: learners have one parameter for both.
func (m *Model) tie() error {
	embedding, head := slices.IndexFunc(m.Tensors, isEmbedding), slices.IndexFunc(m.Tensors, isHead)
	if m.config.Kind == "" || embedding < 0 || head < 0 {
		return nil
	}
	e, h := m.Tensors[embedding].Name, m.Tensors[head].Name
	switch tied := m.config.Tied; {
	case tied == nil: // what is usual differs between kinds
		return fmt.Errorf("%s does not say whether %s is tied to %s: set tie_word_embeddings there to true or false", m.path, h, e)
	case !*tied:
		return nil
	}
	m.Notes = append(m.Notes, h+" is not trained: the config ties it to "+e+"; transformers 5 would keep it where its values are others: set tie_word_embeddings to false to train both")
	m.Tensors = slices.Delete(m.Tensors, head, head+1)
	return nil
}
