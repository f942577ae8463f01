package genesis

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

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

// maxGiven is how many values a run can be given: the list of their chunks has to fit.
const maxGiven = maxFirst * wire.ChunkSize / len(wire.Digest{}) * chunkValues

// maxConfig leaves room in the recipe for the optimizer and a digest.
const maxConfig = maxRecipe - 1<<10

// ReadModel describes the model in a folder: config.json, or adapter_config.json for adapters, and safetensors files, as
// transformers would load them. The error names what is missing, or what no learner could train.
func ReadModel(dir string) (*Source, error) {
	model, err := safetensors.OpenModel(dir)
	if err == nil {
		defer model.Close()
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && model.Config == nil {
		return nil, fmt.Errorf("there is no %s: a model in the form of Hugging Face has one, adapters an adapter_config.json", filepath.Join(dir, "config.json"))
	}
	if err != nil {
		return nil, err
	}
	m := &Source{Rows: model.Rows, Vocab: model.Vocab, Left: model.Left, Note: model.Note}
	for _, t := range model.Tensors {
		m.Layout = append(m.Layout, Tensor{Name: t.Name, Shape: t.Shape})
	}
	if err := cmp.Or(m.describeBy(dir, model), m.Layout.validate()); err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	g := Genesis{Layout: m.Layout}
	if g.BuiltIn() {
		return nil, fmt.Errorf("%s has no tensors to train", dir)
	}
	if n := g.Params(); n > maxGiven {
		return nil, fmt.Errorf("%s has %d parameters to train; a run has at most %d: take a smaller model, or train adapters of this one", dir, n, maxGiven)
	}
	slab, err := g.load(model, dir)
	if err != nil {
		return nil, err
	}
	m.First = CutFirst(slab.Data).Digests()
	return m, nil
}

// describeBy says what the model is by its folder and its config.
func (s *Source) describeBy(dir string, model *safetensors.Model) error {
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	s.Name = filepath.Base(path)
	family := transformersFamily
	if model.Adapters {
		family = peftFamily
	}
	s.Recipe, err = json.Marshal(map[string]any{"family": family, "config": json.RawMessage(model.Config)})
	if n := len(s.Recipe); err == nil && n > maxConfig {
		return fmt.Errorf("its config has %d bytes; a run has room for %d: remove what does not describe the model", n, maxConfig)
	}
	return err
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
