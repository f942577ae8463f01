package genesis

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"atoll/node/files"
	"atoll/tensor"
	"atoll/tensor/safetensors"
)

// Form is what an export has that is not in its genesis.
type Form struct {
	DType string            // of all weights, one of dtypes; "" = those that they came in, float32 where the model is built in
	Files map[string][]byte // what ReadFiles has; for a corpus its tokenizer.json, for bytes nothing
	End   string            // token of a corpus' tokenizer after a document, and its id; "" for none
	EndID int32
}

// dtypes are the types that weights can be exported in: what PyTorch calls them, and what files do.
var dtypes = map[string]string{"float32": "F32", "bfloat16": "BF16", "float16": "F16"}

// Export writes parameters of the run after so many folded tokens to a new folder, in the form
// that Hugging Face's from_pretrained loads; adapters in that of PEFT.
func (g Genesis) Export(dir string, s *tensor.Slab, folded uint64, f Form) error {
	beside, weights, err := g.exported(f)
	if err != nil {
		return err
	}
	maps.Copy(beside, f.Files)
	beside["README.md"] = []byte(g.Card(folded))
	err = files.NewFolder(dir, func(dir string) error { return writeAll(dir, beside, weights, s, g.types(f.DType)) })
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already: choose another folder", dir)
	case err != nil:
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// types are those of the tensors in an export, in the order of Views.
func (g Genesis) types(dtype string) []string {
	list := make([]string, len(g.Views()))
	for i := range list {
		if list[i] = dtypes[dtype]; list[i] == "" && !g.BuiltIn() {
			list[i] = g.Layout[i].DType
		}
		list[i] = cmp.Or(list[i], "F32")
	}
	return list
}

// ExportBytes is about how many bytes an export has.
func (g Genesis) ExportBytes(dtype string) (all int64) {
	types := g.types(dtype)
	for i, v := range g.Views() {
		all += safetensors.Width(types[i]) * int64(v.Len)
	}
	for _, f := range g.Files {
		all += f.Size
	}
	return all
}

func writeAll(dir string, beside map[string][]byte, weights string, s *tensor.Slab, types []string) error {
	for name, b := range beside {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := cmp.Or(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, b, 0o644)); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(dir, weights))
	if err != nil {
		return err
	}
	return errors.Join(safetensors.WriteAs(f, s, types, map[string]string{"format": "pt"}), f.Close())
}

// exported are the files beside the weights that follow from the run, and the name of theirs.
func (g Genesis) exported(f Form) (beside map[string][]byte, weights string, err error) {
	if g.BuiltIn() {
		return g.builtIn(f), "model.safetensors", nil
	}
	var recipe struct {
		Family string          `json:"family"`
		Config json.RawMessage `json:"config"`
	}
	if g.Recipe != "" {
		if err := json.Unmarshal([]byte(g.Recipe), &recipe); err != nil {
			return nil, "", fmt.Errorf("export: the run's recipe is no JSON object: %w", err)
		}
	}
	switch {
	case recipe.Family == peftFamily:
		return map[string][]byte{"adapter_config.json": indent(recipe.Config)}, "adapter_model.safetensors", nil
	case len(recipe.Config) > 0:
		config, err := withDType(recipe.Config, f.DType)
		return map[string][]byte{"config.json": indent(config)}, "model.safetensors", err
	}
	return map[string][]byte{}, "model.safetensors", nil
}

// withDType is a config of weights in a type.
func withDType(config json.RawMessage, dtype string) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if dtype == "" || json.Unmarshal(config, &fields) != nil {
		return config, nil
	}
	delete(fields, "dtype") // transformers reads either, since version 4.56
	fields["torch_dtype"] = json.RawMessage(strconv.Quote(dtype))
	return json.Marshal(fields)
}

// builtIn are the files of a built-in model. A tokenizer's token after a document is where texts end that the model generates.
func (g Genesis) builtIn(f Form) map[string][]byte {
	config, cuts := g.llamaConfig(), map[string]any{"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": g.Model.Context}
	if f.DType != "" {
		config["torch_dtype"] = f.DType
	}
	if f.End != "" {
		config["eos_token_id"], cuts["eos_token"] = f.EndID, f.End
	}
	return map[string][]byte{"config.json": indent(config), "tokenizer.json": indent(byteTokenizer(g.Model.Vocab)), "tokenizer_config.json": indent(cuts)}
}

// llamaConfig is what LlamaForCausalLM calls the model's sizes.
func (g Genesis) llamaConfig() map[string]any {
	m := g.Model
	return map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "torch_dtype": "float32",
		"vocab_size": m.Vocab, "hidden_size": m.Hidden, "num_hidden_layers": m.Layers, "num_attention_heads": m.Heads,
		"num_key_value_heads": m.KVHeads, "intermediate_size": m.Intermediate, "max_position_embeddings": m.Context,
		"rope_theta": m.RopeTheta, "rms_norm_eps": m.NormEps, "tie_word_embeddings": m.Tied,
		"hidden_act": "silu", "attention_bias": false, "mlp_bias": false,
		"bos_token_id": nil, "eos_token_id": nil, "pad_token_id": nil,
	}
}

// byteTokenizer is a tokenizer whose ids are bytes: byte-level BPE without merges.
func byteTokenizer(vocab int) map[string]any {
	ids := map[string]int{}
	for b := range 256 {
		ids[string(visible(byte(b)))] = b
	}
	for id := 256; id < vocab; id++ {
		ids[fmt.Sprintf("<unused%d>", id)] = id
	}
	level := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false}
	return map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": []any{}, "normalizer": nil,
		"pre_tokenizer": level, "post_processor": nil, "decoder": level,
		"model": map[string]any{"type": "BPE", "dropout": nil, "unk_token": nil, "continuing_subword_prefix": nil, "end_of_word_suffix": nil,
			"fuse_unk": false, "byte_fallback": false, "vocab": ids, "merges": []any{}},
	}
}

// visible is the character that byte-level tokenizers write for a byte: itself where it prints,
// and one from 256 on for each of the others, in order (A. Radford et al., GPT-2, 2019).
func visible(b byte) rune {
	prints := func(b int) bool { return b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae }
	if prints(int(b)) {
		return rune(b)
	}
	others := 0
	for x := range int(b) {
		if !prints(x) {
			others++
		}
	}
	return rune(256 + others)
}

// Card says, as the text of a model card, what a model of the run is after so many folded tokens.
func (g Genesis) Card(folded uint64) string {
	id := g.RunID()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\nTrained by the nodes of a run of atoll, which has no server.\n\n| what | value |\n| --- | --- |\n", g.Name)
	for _, row := range [][2]string{
		{"run", hex.EncodeToString(id[:])}, {"model", g.ModelLabel()}, {"parameters", fmt.Sprint(g.Params())},
		{"tokens folded", fmt.Sprint(folded)}, {"budget of tokens", fmt.Sprint(g.Outer.Budget)}, {"text", g.textLabel()},
		{"rounds", fmt.Sprintf("every %d steps, %s", g.Outer.H, g.Outer.Codec)},
		{"inner optimizer", fmt.Sprintf("%s, peak rate %v", g.Inner.Optimizer, g.Inner.LR)},
	} {
		fmt.Fprintf(&b, "| %s | %s |\n", row[0], row[1])
	}
	return b.String()
}

// textLabel says what the run's learners train on, as far as the run says it.
func (g Genesis) textLabel() string {
	if g.Data.SHA256 == "" {
		return "each learner's own"
	}
	return g.Data.String()
}

func indent(v any) []byte {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic("encode an exported file: " + err.Error()) // maps of plain values, and JSON that was read before
	}
	return append(b, '\n')
}
