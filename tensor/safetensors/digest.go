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
	w, err := openWeights(dir, false)
	if err != nil {
		return "", err
	}
	defer w.Close()
	slices.SortStableFunc(w.Tensors, func(a, b Placed) int { return strings.Compare(a.Name, b.Name) })
	h := sha256.New()
	for _, t := range w.Tensors {
		fmt.Fprintf(h, "%s %s", t.Name, t.DType)
		for _, d := range t.Shape {
			fmt.Fprintf(h, " %d", d)
		}
		fmt.Fprintln(h)
		if err := t.copyTo(h); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// copyTo writes the tensor's bytes as the file has them.
func (p Placed) copyTo(w io.Writer) error {
	if _, err := io.Copy(w, io.NewSectionReader(p.file.data, p.file.begin+p.Begin, p.End-p.Begin)); err != nil {
		return fmt.Errorf("%s: read tensor %.200q: %w", p.file.name, p.Name, err)
	}
	return nil
}
