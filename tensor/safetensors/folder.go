package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Files of a model's weights in a folder of Hugging Face's form: one, or those that an index names. Adapters have one.
const (
	weightsFile  = "model.safetensors"
	indexFile    = "model.safetensors.index.json"
	adaptersFile = "adapter_model.safetensors"
)

// ErrNoWeights says that a folder has none.
var ErrNoWeights = errors.New("there are no weights that transformers would load from safetensors")

// Placed is a tensor, and the file that has it.
type Placed struct {
	Tensor
	file *File
}

// Weights are the tensors of a model's files. Each name is there once.
type Weights struct {
	Tensors []Placed // in the order of files and places
	files   []*File
}

// Close closes the files.
func (w *Weights) Close() (err error) {
	for _, f := range w.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// add opens one more file.
func (w *Weights) add(path string) error {
	f, err := OpenFile(path)
	if err == nil {
		w.take(f)
	}
	return err
}

func (w *Weights) take(f *File) {
	w.files = append(w.files, f)
	for _, t := range f.Tensors {
		w.Tensors = append(w.Tensors, Placed{t, f})
	}
}

// openWeights opens the files of a folder that transformers, or for adapters PEFT, would load, and no others.
func openWeights(dir string, adapters bool) (w Weights, err error) {
	names, index, err := weightFiles(dir, adapters)
	if err != nil {
		return w, err
	}
	for _, name := range names {
		err := w.add(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s names %s, which is not there: fetch that file too", filepath.Join(dir, indexFile), name)
		}
		if err != nil {
			return w, errors.Join(err, w.Close())
		}
	}
	if err := w.follow(dir, index); err != nil {
		return w, errors.Join(err, w.Close())
	}
	return w, nil
}

// weightFiles are the names of the files, in order, and which of them an index says has a tensor.
func weightFiles(dir string, adapters bool) (names []string, index map[string]string, err error) {
	only := weightsFile
	if adapters {
		only = adaptersFile
	}
	if _, err := os.Stat(filepath.Join(dir, only)); err == nil {
		return []string{only}, nil, nil
	}
	path := filepath.Join(dir, indexFile)
	b, err := readBounded(path, maxHeader)
	if adapters || errors.Is(err, fs.ErrNotExist) {
		return nil, nil, noWeights(dir, only)
	}
	if err == nil {
		index, err = parseIndex(b)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	names = slices.Sorted(maps.Values(index))
	return slices.Compact(names), index, nil
}

// noWeights says what a folder has instead.
func noWeights(dir, only string) error {
	entries, _ := os.ReadDir(dir) // what cannot be read is not there
	for _, e := range entries {
		if slices.Contains([]string{".bin", ".safetensors", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack"}, filepath.Ext(e.Name())) {
			return fmt.Errorf("%s: %w: no %s, but %s: load that with the program that it is for, and write it by save_pretrained into another folder", dir, ErrNoWeights, only, e.Name())
		}
	}
	return fmt.Errorf("%s: %w: no %s", dir, ErrNoWeights, only)
}

// readBounded reads a small file.
func readBounded(path string, most int64) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > most {
		return nil, fmt.Errorf("it has %d bytes; at most %d", info.Size(), most)
	}
	return os.ReadFile(path)
}

// parseIndex returns the file of each tensor. Nothing outside of the folder is named.
func parseIndex(b []byte) (map[string]string, error) {
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, Plain(err)
	}
	if len(index.Map) == 0 {
		return nil, errors.New("its weight_map names no tensors: fetch it anew")
	}
	for _, name := range slices.Sorted(maps.Keys(index.Map)) {
		if file := index.Map[name]; !filepath.IsLocal(file) {
			return nil, fmt.Errorf("it names %.200q, which is outside of its folder", file)
		}
	}
	return index.Map, nil
}

// another is what to do where files of one folder contradict each other.
const another = "files of two versions are mixed; fetch them anew, or write the model again by save_pretrained"

// follow makes sure that each tensor is in one file, in that of the index where it has one.
func (w *Weights) follow(dir string, index map[string]string) error {
	at := map[string]string{}
	for _, t := range w.Tensors {
		if file, twice := at[t.Name]; twice {
			return fmt.Errorf("tensor %.200q is in %s and in %s: %s", t.Name, file, t.file.name, another)
		}
		at[t.Name] = t.file.name
	}
	for _, name := range slices.Sorted(maps.Keys(index)) {
		if want := filepath.Join(dir, index[name]); at[name] != want {
			where := "which does not have it"
			if at[name] != "" {
				where = "and it is in " + at[name]
			}
			return fmt.Errorf("%s puts tensor %.200q into %s, %s: %s", filepath.Join(dir, indexFile), name, want, where, another)
		}
	}
	return nil
}
