package pinned

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A world that came to something else, or that has no line, is found; what is set
// and saved is there again, numbers in order.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worlds")
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Check("1", "a b"); err == nil {
		t.Error("a world without a line passes")
	}
	for _, name := range []string{"10", "9", "1"} {
		f.Set(name, name+" b")
	}
	if err := f.Save(); err != nil {
		t.Fatal(err)
	}
	if f, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Check("10", "10 b"); err != nil {
		t.Error(err)
	}
	if err := f.Check("10", "10 c"); err == nil || !strings.Contains(err.Error(), "10 b") {
		t.Errorf("another outcome: %v", err)
	}
	text, err := os.ReadFile(path)
	if want := "1 1 b\n9 9 b\n10 10 b\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v, want %q", text, err, want)
	}
}
