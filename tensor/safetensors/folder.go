package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

const (
	// Files of a model's weights in a folder of Hugging Face's form: one, or those that an index names. Adapters have one.
	weightsFile  = "model.safetensors"
	indexFile    = "model.safetensors.index.json"
	adaptersFile = "adapter_model.safetensors"

	// maxText bounds a config and an index, which names the tensors of the largest models in less.
	maxText = 16 << 20

	// What to do where files of one folder contradict each other, and about a model that no learner trains.
	another   = "files of two versions are mixed; fetch them anew, or write the model again by save_pretrained"
	quantized = "quantized weights cannot be trained; take the folder of the model in BF16, F16 or F32"
)

// openFiles opens the files of a folder that transformers, or for adapters PEFT, would load, and no others.
func (m *Model) openFiles(dir string) error {
	names, index := []string{weightsFile}, map[string]string(nil)
	if m.Adapters {
		names[0] = adaptersFile
	}
	path := filepath.Join(dir, indexFile)
	if _, err := os.Stat(filepath.Join(dir, names[0])); err != nil {
		b, err := readText(path)
		if m.Adapters || errors.Is(err, fs.ErrNotExist) {
			return m.openOther(dir, names[0])
		}
		if err == nil {
			index, err = parseIndex(b)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		names = slices.Compact(slices.Sorted(maps.Values(index)))
	}
	for _, name := range names {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%s names %.200q, which is outside of its folder", path, name)
		}
		if err := m.add(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return cmp.Or(linked(filepath.Join(dir, name)), fmt.Errorf("%s names %s, which is not there: fetch that file too", path, name))
		} else if err != nil {
			return err
		}
	}
	return m.follow(dir, index)
}

// openOther takes the only file of a folder that is of no model, such as one with the initial values of a run.
func (m *Model) openOther(dir, only string) error {
	if found, err := fs.Glob(os.DirFS(dir), "*.safetensors"); err == nil && len(found) == 1 && m.Config == nil && found[0] != only {
		return m.add(filepath.Join(dir, found[0]))
	}
	return cmp.Or(linked(filepath.Join(dir, only)), noWeights(dir, only))
}

// linked says that a path which is not there is a link: a cache that is fetched in part has such.
func linked(path string) error {
	if _, err := os.Lstat(path); err != nil {
		return nil
	}
	return fmt.Errorf("%s is a link to a file that is not there: fetch the model anew", path)
}

// noWeights says what a folder has instead.
func noWeights(dir, only string) error {
	others := regexp.MustCompile(`^(pytorch_model|adapter_model|consolidated|tf_model|flax_model)|\.(safetensors|gguf)$`)
	entries, _ := os.ReadDir(dir) // what cannot be read is not there
	if cut, err := fs.Glob(os.DirFS(dir), "model-?????-of-?????.safetensors"); err == nil && len(cut) > 0 && only == weightsFile {
		return fmt.Errorf("%s has %s, and no %s, which says what is where: fetch that too", dir, cut[0], indexFile)
	}
	for _, e := range entries {
		if others.MatchString(e.Name()) {
			return fmt.Errorf("%s has no %s and no index, but %s: load that with the program that it is for, and write it by save_pretrained into another folder", dir, only, e.Name())
		}
	}
	for _, versions := range []string{"snapshots/*", "models--*/snapshots/*"} {
		if found, err := fs.Glob(os.DirFS(dir), versions); err == nil && len(found) > 0 {
			return fmt.Errorf("%s has no %s, but is a cache of downloads: name the folder of one version in it, such as %s", dir, only, filepath.Join(dir, found[0]))
		}
	}
	return fmt.Errorf("%s has no %s", dir, only)
}

// readText reads a file without the mark that editors of Windows begin it with. The error does not name it.
func readText(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxText {
		return nil, fmt.Errorf("it has %d bytes; at most %d", info.Size(), maxText)
	}
	b, err := os.ReadFile(path)
	if failed := (*fs.PathError)(nil); errors.As(err, &failed) {
		err = failed.Err
	}
	if errors.Is(err, fs.ErrNotExist) && linked(path) != nil {
		err = errors.New("it is a link to a file that is not there: fetch the model anew")
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), err
}

// parseIndex returns the file of each tensor.
func parseIndex(b []byte) (map[string]string, error) {
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, err
	}
	if len(index.Map) == 0 {
		return nil, errors.New("its weight_map names no tensors: fetch it anew")
	}
	return index.Map, nil
}

// follow makes sure that each tensor is in one file, in that of the index where it has one.
func (m *Model) follow(dir string, index map[string]string) error {
	at := map[string]string{}
	for _, t := range m.Tensors {
		if file, twice := at[t.Name]; twice {
			return fmt.Errorf("tensor %.200q is in %s and in %s: %s", t.Name, file, t.file.name, another)
		}
		at[t.Name] = t.file.name
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if want := filepath.Join(dir, index[name]); at[name] != want {
			return fmt.Errorf("%s puts tensor %.200q into %s, and it is in %s: %s", filepath.Join(dir, indexFile), name, want, cmp.Or(at[name], "none"), another)
		}
	}
	return nil
}
