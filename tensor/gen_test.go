package tensor

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAssemblyIsWhatTheGeneratorWrites runs the generator and compares its files with
// those in this folder, byte for byte.
func TestAssemblyIsWhatTheGeneratorWrites(t *testing.T) {
	if out, err := exec.Command("go", "list", "-deps", "./gen").CombinedOutput(); err != nil {
		t.Skipf("the generator's modules cannot be loaded: %v\n%s", err, out)
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "./gen", "-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("go run ./gen: %v\n%s", err, out)
	}
	written, err := filepath.Glob(filepath.Join(dir, "*64.*"))
	if err != nil || len(written) == 0 {
		t.Fatalf("the generator wrote no files: %v", err)
	}
	for _, path := range written {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Base(path)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the generator writes (%v): run go generate in this folder", filepath.Base(path), err)
		}
	}
}
