package safetensors

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// DigestWeights names the weights of the model in a folder: the SHA-256, in hex, over its tensors in the
// order of their names, of each a line NAME TYPE DIM DIM... and then its bytes. How they are cut into
// files does not matter.
func DigestWeights(dir string) (string, error) {
	m := &Model{}
	defer m.Close()
	if err := m.openFiles(dir); err != nil {
		return "", err
	}
	slices.SortStableFunc(m.Tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, t := range m.Tensors {
		fmt.Fprintf(h, "%s %s", t.Name, t.DType)
		for _, d := range t.Shape {
			fmt.Fprintf(h, " %d", d)
		}
		fmt.Fprintln(h)
		if _, err := io.Copy(h, io.NewSectionReader(t.file.data, t.file.begin+t.Begin, t.End-t.Begin)); err != nil {
			return "", fmt.Errorf("%s: read tensor %.200q: %w", t.file.name, t.Name, err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
