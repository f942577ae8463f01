package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Files of a model's weights in a folder of Hugging Face's form: one, or an index of several.
const (
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
)

// ErrNoWeights says that a folder has none.
var ErrNoWeights = errors.New("there is neither " + weightsFile + " nor " + indexFile)

// DigestWeights names the weights of the model in a folder: the SHA-256, in hex, over its tensors in the
// order of their names, of each a line NAME TYPE DIM DIM... and then its bytes. How they are cut into
// files does not matter.
func DigestWeights(dir string) (string, error) {
	names, err := weightFiles(dir)
	if err != nil {
		return "", err
	}
	var all []*located
	for _, name := range names {
		f, err := OpenFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
		defer f.Close()
		for _, t := range f.Tensors {
			all = append(all, &located{f, t})
		}
	}
	slices.SortStableFunc(all, func(a, b *located) int { return strings.Compare(a.tensor.Name, b.tensor.Name) })
	h := sha256.New()
	for _, l := range all {
		fmt.Fprintf(h, "%s %s", l.tensor.Name, l.tensor.DType)
		for _, d := range l.tensor.Shape {
			fmt.Fprintf(h, " %d", d)
		}
		fmt.Fprintln(h)
		if _, err := io.Copy(h, l.bytes()); err != nil {
			return "", fmt.Errorf("read tensor %.200q: %w", l.tensor.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// located is a tensor and the file that has it.
type located struct {
	file   *File
	tensor Tensor
}

func (l *located) bytes() io.Reader {
	return io.NewSectionReader(l.file.data, l.file.begin+l.tensor.Begin, l.tensor.End-l.tensor.Begin)
}

// weightFiles are the names of the files with the weights, as transformers chooses them.
func weightFiles(dir string) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, weightsFile)); err == nil {
		return []string{weightsFile}, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", dir, ErrNoWeights)
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", indexFile, err)
	}
	var names []string
	for _, name := range index.Map {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s names %q, which is outside of its folder", indexFile, name)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
