package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"atoll/cmd/atoll/internal/cli"
)

func TestSizeOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"a": 3, "b": 40} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := sizeOf(dir); got != 43 {
		t.Errorf("%d bytes", got)
	}
	if got := sizeOf(filepath.Join(dir, "absent")); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
	writing(&cli.Console{Err: &bytes.Buffer{}}, dir, 43)()
}
