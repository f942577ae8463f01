package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// config is what a config.json says; that of adapters says nothing of their tensors.
type config struct {
	path   string
	fields map[string]json.RawMessage
	parts  bool // the model has others beside that for text, which this is of

	rows, vocab, width, layers int // 0 = not said
}

// maxConfig bounds a config: it is some hundred numbers and names.
const maxConfig = 1 << 20

// quantized is what to do about a model that is.
const quantized = "quantized weights cannot be trained; take the folder of the model in BF16, F16 or F32"

// readConfig reads what a folder says of its model, if it does.
func (m *Model) readConfig(dir string) error {
	for _, name := range []string{"adapter_config.json", "config.json"} {
		path := filepath.Join(dir, name)
		b, err := readBounded(path, maxConfig)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if m.Adapters = name != "config.json"; err == nil {
			m.Config, m.config, err = parseConfig(b, m.Adapters)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		m.config.path, m.Rows, m.Vocab = path, m.config.rows, m.config.vocab
		return nil
	}
	return nil
}

// parseConfig reads a config, of several parts that for text. It returns that as JSON too.
func parseConfig(b []byte, adapters bool) (of []byte, c config, err error) {
	if err := json.Unmarshal(b, &c.fields); err != nil {
		return nil, c, fmt.Errorf("it is no JSON object: %w", Plain(err))
	}
	if c.fields == nil {
		return nil, c, errors.New("it is null, and no JSON object")
	}
	if adapters {
		return b, config{}, nil
	}
	var part map[string]json.RawMessage
	if json.Unmarshal(c.fields["text_config"], &part) == nil && part != nil {
		for _, name := range []string{"tie_word_embeddings", "quantization_config"} {
			if part[name] == nil && c.fields[name] != nil {
				part[name] = c.fields[name]
			}
		}
		if c.fields, c.parts = part, true; c.text("model_type") == "" {
			return nil, c, errors.New("its text_config has no model_type: save the part for text by itself")
		}
		if b, err = json.Marshal(part); err != nil {
			return nil, c, err
		}
	}
	if q := c.fields["quantization_config"]; q != nil && string(q) != "null" {
		return nil, c, errors.New("it has a quantization_config: " + quantized)
	}
	err = c.readSizes()
	if c.text("model_type") == "" { // a model of somebody's own, whose words may mean something else
		c = config{rows: c.rows}
	}
	return b, c, err
}

// readSizes reads the whole numbers that are compared with tensors, by the names in use.
func (c *config) readSizes() error {
	for _, size := range []struct {
		into  *int
		names []string
	}{
		{&c.rows, []string{"max_position_embeddings", "n_positions"}},
		{&c.vocab, []string{"vocab_size"}},
		{&c.width, []string{"word_embed_proj_dim", "embedding_size", "hidden_size", "n_embd", "d_model"}},
		{&c.layers, []string{"num_hidden_layers", "n_layer", "n_layers", "num_layers"}},
	} {
		for _, name := range size.names {
			raw := c.fields[name]
			if raw == nil || string(raw) == "null" || *size.into != 0 {
				continue
			}
			var x float64
			if err := json.Unmarshal(raw, &x); err != nil || x < 0 || x > math.MaxInt32 || x != math.Trunc(x) {
				return fmt.Errorf("%s is %.80s; a whole number belongs there", name, raw)
			}
			*size.into = int(x)
		}
	}
	return nil
}

// text is a field, "" where it is not there or something else.
func (c config) text(name string) (s string) {
	_ = json.Unmarshal(c.fields[name], &s) // "" then
	return s
}

// checkShape compares embeddings and head with the sizes of the config.
func (c config) checkShape(t Tensor) error {
	p := Placed{Tensor: t}
	if !isEmbedding(p) && !isHead(p) || len(t.Shape) == 2 && (c.vocab == 0 || t.Shape[0] == c.vocab) && (c.width == 0 || t.Shape[1] == c.width) {
		return nil
	}
	return fmt.Errorf("has the shape %v, and %s says [%d %d], tokens and width: %s", t.Shape, c.path, c.vocab, c.width, another)
}

// nameOf is the name of a tensor in the model for text alone, and whether that has the tensor.
func (c config) nameOf(name string) (string, bool) {
	if !c.parts || strings.HasPrefix(name, "lm_head.") {
		return name, true
	}
	if rest, ok := strings.CutPrefix(name, "model.language_model."); ok { // since transformers 4.52
		return "model." + rest, true
	}
	return strings.CutPrefix(name, "language_model.")
}

// causal says that the config is of a model that predicts the next token, by the name of its class.
func (c config) causal() bool {
	var names []string
	_ = json.Unmarshal(c.fields["architectures"], &names) // none then
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, "ForCausalLM") })
}

// tiedByDefault says of kinds of models whether transformers ties their heads where a config does not say.
var tiedByDefault = map[string]bool{
	"gpt2": true, "gpt_neo": true, "opt": true, "bloom": true, "gemma": true, "gemma2": true, "gemma3_text": true,
	"llama": false, "mistral": false, "mixtral": false, "qwen2": false, "qwen3": false, "phi": false, "phi3": false, "gpt_neox": false, "gptj": false,
}

// tied says whether the head is tied to the embeddings, and whether that is known.
func (c config) tied() (tied, known bool) {
	if raw := c.fields["tie_word_embeddings"]; string(raw) != "null" && json.Unmarshal(raw, &tied) == nil {
		return tied, true
	}
	tied, known = tiedByDefault[c.text("model_type")]
	return tied, known
}
