package genesis

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"atoll/gossip/wire"
	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor/safetensors"
)

// Families of recipes that the programs which come with atoll train.
const (
	transformersFamily = "transformers" // a model of Hugging Face's library, from its config.json
	peftFamily         = "peft"         // adapters, from their adapter_config.json
)

// Proposals for runs that go on with a model.
const (
	givenRate    = 1e-4 // peak learning rate: what continues a model is commonly trained with
	givenContext = 1024 // tokens of a row, where the model takes as many
	givenBatch   = 4
)

// ReadModel describes the model in a folder: config.json, or adapter_config.json for adapters, and safetensors files, as
// transformers would load them. The error names what is missing, or what no learner could train.
func ReadModel(dir string) (*Source, error) {
	none := fmt.Errorf("there is no %s: a model in the form of Hugging Face has one, adapters an adapter_config.json", filepath.Join(dir, "config.json"))
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: name the one with the model's config.json and model.safetensors", dir)
	}
	model, err := safetensors.OpenModel(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, none
	}
	path, err2 := filepath.Abs(dir)
	if err = cmp.Or(err, err2); err != nil {
		return nil, err
	}
	defer model.Close()
	if model.Config == nil {
		return nil, none
	}
	m := &Source{Name: filepath.Base(path), Rows: model.Rows, Notes: model.Notes}
	family := transformersFamily
	if model.Adapters {
		family = peftFamily
	}
	if m.Recipe, err = json.Marshal(map[string]any{"family": family, "config": json.RawMessage(model.Config)}); err != nil {
		return nil, err
	}
	if n, most := len(m.Recipe), maxRecipe-1<<10; n > most { // the optimizer follows
		return nil, fmt.Errorf("%s: the config has %d bytes; a run has room for %d: remove what does not describe the model", dir, n, most)
	}
	for _, t := range model.Tensors {
		m.Layout = append(m.Layout, Tensor{Name: t.Name, Shape: t.Shape, DType: strings.TrimPrefix(t.DType, "F32")})
	}
	if err := m.Layout.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	g := Genesis{Layout: m.Layout}
	const most = maxFirst * wire.ChunkSize / len(wire.Digest{}) * chunkValues // the list of their chunks has to fit
	if n := g.Params(); n > most {
		return nil, fmt.Errorf("%s has %d parameters to train; a run has at most %d: take a smaller model, or train adapters of it", dir, n, most)
	} else if g.BuiltIn() {
		return nil, fmt.Errorf("%s has no tensors that can be trained: name the folder of a model, or fetch its files anew", dir)
	}
	slab, err := g.LoadTensors(dir)
	if err != nil {
		return nil, err
	}
	m.First = CutFirst(slab.Data).Digests()
	return m, m.AddFiles(dir)
}

// recipeWith is the recipe of the source's model and an inner optimizer.
func (s *Source) recipeWith(o trainer.OptimConfig) (string, error) {
	var recipe map[string]json.RawMessage // as it stands: numbers keep their digits
	if err := json.Unmarshal(s.Recipe, &recipe); err != nil {
		return "", err
	}
	settings, err := json.Marshal(map[string]any{
		"name": optimizer.NameAdamW, "beta1": o.AdamW.Beta1, "beta2": o.AdamW.Beta2, "eps": o.AdamW.Eps, "weight_decay": o.AdamW.WeightDecay, "clip": o.Clip,
	})
	if err != nil {
		return "", err
	}
	recipe["optimizer"] = settings
	b, err := json.Marshal(recipe)
	return string(b), err
}
