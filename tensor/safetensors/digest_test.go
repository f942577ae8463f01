package safetensors

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/tensor"
)

// folder writes files, of slabs and of text.
func folder(t *testing.T, slabs map[string]*tensor.Slab, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range slabs {
		var b bytes.Buffer
		if err := Write(&b, s, map[string]string{"format": name}); err != nil {
			t.Fatal(err)
		}
		texts[name] = b.String()
	}
	for name, text := range texts {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// made is a slab of these tensors; a value is 1, 2, ... from the first of all.
func made(first float32, specs ...tensor.Spec) *tensor.Slab {
	s := tensor.NewSlab(specs)
	for i := range s.Data {
		s.Data[i] = first + float32(i)
	}
	return s
}

func digest(t *testing.T, dir string) string {
	t.Helper()
	d, err := DigestWeights(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The digest is of names, types, shapes and values, and not of files. test_weights.py has the same.
func TestDigestWeights(t *testing.T) {
	a, b := tensor.Spec{Name: "a", Shape: []int{2, 2}}, tensor.Spec{Name: "b", Shape: []int{2}}
	whole := digest(t, folder(t, map[string]*tensor.Slab{"model.safetensors": made(1, a, b)}, map[string]string{}))
	if want := "e2771ff3d26e559d5940cd034586414d2fac18f389d3a59f556670b285cdb204"; whole != want {
		t.Errorf("digest %s, want %s", whole, want)
	}
	shards := map[string]*tensor.Slab{"model-1.safetensors": made(5, b), "model-2.safetensors": made(1, a), "consolidated.safetensors": made(9, a)}
	index := `{"weight_map":{"b":"model-1.safetensors","a":"model-2.safetensors"}}`
	if got := digest(t, folder(t, shards, map[string]string{indexFile: index})); got != whole {
		t.Errorf("in shards %s, whole %s", got, whole)
	}
	for name, other := range map[string]*tensor.Slab{
		"a value": made(2, a, b), "a name": made(1, a, tensor.Spec{Name: "c", Shape: []int{2}}),
		"a shape": made(1, tensor.Spec{Name: "a", Shape: []int{4, 1}}, b),
	} {
		if digest(t, folder(t, map[string]*tensor.Slab{"model.safetensors": other}, map[string]string{})) == whole {
			t.Errorf("another %s, and the same digest", name)
		}
	}
	if _, err := DigestWeights(t.TempDir()); err == nil || !strings.Contains(err.Error(), "has no model.safetensors") {
		t.Errorf("an empty folder: %v", err)
	}
	for _, index := range []string{"{", `{"weight_map":{"a":"../model.safetensors"}}`, `{"weight_map":{"a":"gone.safetensors"}}`} {
		if _, err := DigestWeights(folder(t, nil, map[string]string{indexFile: index})); err == nil {
			t.Errorf("took the index %s", index)
		}
	}
}
