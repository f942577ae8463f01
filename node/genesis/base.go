package genesis

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"atoll/tensor/safetensors"
)

// baseField is the digest of the model that adapters belong to, in a recipe.
const baseField = "base_sha256"

// Adapters says that a recipe, or the part of it that FromModel found, is of adapters.
func Adapters(recipe json.RawMessage) bool {
	var r struct{ Family string }
	return json.Unmarshal(recipe, &r) == nil && r.Family == peftFamily
}

// AddBase puts the digest of the model that adapters belong to into what FromModel found, so that nobody
// trains them on another. dir is the folder of that model; empty stands for the one that the adapters
// name. It returns where the model was, and the digest; none where the adapters name no folder of this machine.
func AddBase(recipe json.RawMessage, dir string) (with json.RawMessage, where, digest string, err error) {
	var fields map[string]json.RawMessage // as it stands: numbers keep their digits
	var config struct {
		Base string `json:"base_model_name_or_path"`
	}
	if err := json.Unmarshal(recipe, &fields); err != nil {
		return nil, "", "", err
	}
	if where = dir; dir == "" {
		if err := json.Unmarshal(fields["config"], &config); err != nil {
			return nil, "", "", fmt.Errorf("adapter_config.json: %w", err)
		}
		where = config.Base
		info, err := os.Stat(where)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.IsDir() {
			return recipe, where, "", nil
		}
	}
	if digest, err = safetensors.DigestWeights(where); err != nil {
		return nil, "", "", fmt.Errorf("the model of the adapters: %w", err)
	}
	fields[baseField] = json.RawMessage(`"` + digest + `"`)
	with, err = json.Marshal(fields)
	return with, where, digest, err
}
