package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nodeFolder makes what looks like a node's folder.
func nodeFolder(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{keyName, genesisName} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFindFolder(t *testing.T) {
	dir := t.TempDir()
	if _, err := findFolder(dir, []string{"status", "--json"}); exitCode(err) != exitUsage {
		t.Errorf("none: %v", err)
	}
	nodeFolder(t, filepath.Join(dir, "a"))
	if got, err := findFolder(dir, []string{"status", "--json"}); err != nil || got != filepath.Join(dir, "a") {
		t.Errorf("one: %q, %v", got, err)
	}
	nodeFolder(t, filepath.Join(dir, "b"))
	if _, err := findFolder(dir, []string{"status", "--json"}); exitCode(err) != exitUsage || !strings.Contains(err.Error(), "there are 2 atoll folders here, "+filepath.Join(dir, "a")+", "+filepath.Join(dir, "b")+": type which, such as `atoll status --json "+filepath.Join(dir, "a")+"`") {
		t.Errorf("two: %v", err)
	}
	nodeFolder(t, dir)
	if got, err := findFolder(dir, []string{"status", "--json"}); err != nil || got != dir {
		t.Errorf("the folder itself: %q, %v", got, err)
	}
	if got, err := (dirArg{Dir: dir}).folder(nil); err != nil || got != dir {
		t.Errorf("asked for: %q, %v", got, err)
	}
}
