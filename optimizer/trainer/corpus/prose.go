package corpus

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
)

// opticks is Isaac Newton's Opticks, the fourth edition of 1730, as src/testdata of Go has it. It
// comes with the program so that a machine without Go can try it.
//
//go:embed opticks.txt.gz
var opticks []byte

// proseName is the name of the file in Go.
const proseName = "Isaac.Newton-Opticks.txt"

func openProse() (*Corpus, error) {
	packed, err := gzip.NewReader(bytes.NewReader(opticks))
	if err != nil {
		return nil, fmt.Errorf("open the default corpus: %w", err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		return nil, fmt.Errorf("open the default corpus: %w", err)
	}
	return New(proseName, text), nil
}
