package genesis

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tensor/safetensors"
)

// The recipe of adapters names their model by its weights, where these are here.
func TestBaseOfAdapters(t *testing.T) {
	base, _ := modelFolder(t, `{"model_type":"x"}`, spec("a", 3))
	want, err := safetensors.DigestWeights(base)
	if err != nil {
		t.Fatal(err)
	}
	named, err := json.Marshal(map[string]any{"peft_type": "LORA", "r": 4, "base_model_name_or_path": base})
	if err != nil {
		t.Fatal(err)
	}
	for config, dir := range map[string]string{string(named): "", `{"peft_type":"LORA","base_model_name_or_path":"somebody/model"}`: base} {
		adapters, _ := modelFolder(t, config, spec("a.lora_A.weight", 4, 30))
		m, err := ReadModel(adapters)
		if err != nil || !Adapters(m.Recipe) {
			t.Fatal(err)
		}
		with, where, digest, err := AddBase(m.Recipe, dir)
		if err != nil || where != base || digest != want {
			t.Errorf("%v: digest %s of %s, want %s of %s", err, digest, where, want, base)
		}
		m.Recipe = with
		if g := madeFrom(t, m); !strings.Contains(g.Recipe, `"base_sha256":"`+want+`"`) || !strings.Contains(g.Recipe, `"LORA"`) {
			t.Errorf("recipe %s", g.Recipe)
		}
	}
	for config, wrong := range map[string]string{
		`{"peft_type":"LORA","base_model_name_or_path":"somebody/model"}`: "", `{"peft_type":"LORA"}`: "",
		`{"peft_type":"LORA","base_model_name_or_path":` + quote(t, t.TempDir()) + `}`: "has no model.safetensors",
		`{"peft_type":"LORA","base_model_name_or_path":3}`:                             "adapter_config.json: json: cannot unmarshal number",
	} {
		recipe := json.RawMessage(`{"family":"peft","config":` + config + `}`)
		with, _, digest, err := AddBase(recipe, "")
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) || wrong == "" && (digest != "" || string(with) != string(recipe)) {
			t.Errorf("%s: digest %q, recipe %s, error %v", config, digest, with, err)
		}
	}
	if _, _, _, err := AddBase(json.RawMessage(`{"family":"peft","config":{}}`), filepath.Join(t.TempDir(), "gone")); err == nil || !strings.Contains(err.Error(), "has no model.safetensors") {
		t.Error(err)
	}
	if Adapters(json.RawMessage(`{"family":"transformers"}`)) || Adapters(nil) {
		t.Error("a whole model is taken for adapters")
	}
}

func quote(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
