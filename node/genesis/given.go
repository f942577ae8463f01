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

// source is a model in a folder of Hugging Face's form.
type source struct {
	family string
	config json.RawMessage
	sizes  sizes
}

// sizes are what a config says of the tokens of a row, by the names in use.
type sizes struct {
	Positions int `json:"max_position_embeddings"`
	OldPlaces int `json:"n_positions"`
}

// ReadModel describes the model in a folder: config.json, or adapter_config.json for adapters, and safetensors files. The
// error names what is missing.
func ReadModel(dir string) (*Source, error) {
	src, err := readSource(dir)
	if err != nil {
		return nil, err
	}
	m := &Source{Name: filepath.Base(filepath.Clean(dir)), Recipe: src.recipe(), Rows: cmp.Or(src.sizes.Positions, src.sizes.OldPlaces)}
	if m.Layout, m.Left, err = src.layout(dir); err != nil {
		return nil, err
	}
	if len(m.Layout) == 0 {
		return nil, fmt.Errorf("%s has no tensors to train", dir)
	}
	if err := m.Layout.validate(); err != nil {
		return nil, err
	}
	slab, err := Genesis{Layout: m.Layout}.LoadTensors(dir)
	if err != nil {
		return nil, err
	}
	m.First = CutFirst(slab.Data).Digests()
	return m, nil
}

// readSource reads the description of a model.
func readSource(dir string) (s source, err error) {
	s.family = peftFamily
	s.config, err = os.ReadFile(filepath.Join(dir, "adapter_config.json"))
	if errors.Is(err, fs.ErrNotExist) {
		s.family = transformersFamily
		s.config, err = os.ReadFile(filepath.Join(dir, "config.json"))
	}
	if err != nil {
		return s, fmt.Errorf("a model in the form of Hugging Face has a config.json, adapters an adapter_config.json: %w", err)
	}
	if err := json.Unmarshal(s.config, &s.sizes); err != nil {
		return s, fmt.Errorf("%s: the config is no JSON object: %w", dir, err)
	}
	return s, nil
}

// recipe is the part of the recipe that describes the model.
func (s source) recipe() json.RawMessage {
	b, err := json.Marshal(map[string]any{"family": s.family, "config": s.config})
	if err != nil {
		panic("encode recipe: " + err.Error()) // readSource has read it
	}
	return b
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

// layout lists the tensors of a folder that can be trained, in the order of files and places.
func (s source) layout(dir string) (layout Layout, left []string, err error) {
	files, err := tensorFiles(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range files {
		tensors, err := tensorsOf(name)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, t := range tensors {
			if why := untrained(t); why != "" {
				left = append(left, t.Name+" ("+why+")")
				continue
			}
			layout = append(layout, Tensor{Name: t.Name, Shape: t.Shape})
		}
	}
	return layout, left, nil
}

func tensorsOf(name string) ([]safetensors.Tensor, error) {
	file, err := safetensors.OpenFile(name)
	if err != nil {
		return nil, err
	}
	return file.Tensors, file.Close()
}

// untrained says why a tensor is no parameter: it is of whole numbers, or a mask of attention
// that old files have beside the weights.
func untrained(t safetensors.Tensor) string {
	switch t.DType {
	case "F32", "BF16", "F16", "F64":
	default:
		return "it is in " + t.DType
	}
	mask := len(t.Shape) == 4 && t.Shape[0] == 1 && t.Shape[1] == 1 && t.Shape[2] == t.Shape[3]
	if mask && strings.HasSuffix(t.Name, ".bias") || strings.HasSuffix(t.Name, ".masked_bias") || strings.HasSuffix(t.Name, "rotary_emb.inv_freq") {
		return "a constant of the model"
	}
	return ""
}
