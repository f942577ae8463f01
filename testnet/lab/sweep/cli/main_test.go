package cli

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A plan is run, shown and drawn.
func TestRunTableAndPlots(t *testing.T) {
	dir := t.TempDir()
	text, plan, trials := filepath.Join(dir, "text"), filepath.Join(dir, "plan"), filepath.Join(dir, "trials.jsonl")
	write := func(path, s string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text, strings.Repeat("the quick brown fox jumps over the lazy dog. ", 100))
	write(plan, "set model=micro m=2 batch=1 tokens=320 data="+text+" h=2 p=2\nseeds 1 2\ntrial arm=dp,atoll\n")
	var out bytes.Buffer
	for _, line := range []string{
		"run --out " + trials + " " + plan,
		"table --ref arm=dp " + trials,
		"frontier --by arm --out " + filepath.Join(dir, "frontier.svg") + " " + trials,
		"curves --by arm --title onward --out " + filepath.Join(dir, "curves.svg") + " " + trials,
	} {
		if err := run(strings.Fields(line), &out); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	if s := out.String(); strings.Count(s, "\n") != 4 || !strings.Contains(s, "| dp | 2 |") || !strings.Contains(s, "±") {
		t.Errorf("table\n%s", s)
	}
	for name, want := range map[string]string{"frontier.svg": "payload bytes per token", "curves.svg": "onward"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v, no %q in it", name, err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for line, want := range map[string]string{
		"": "say what to do", "walk": `there is no "walk"`, "run": "run needs --out", "table": "table needs a file",
		"table --mean": "flag provided but not defined", "curves x": "",
	} {
		err := run(strings.Fields(line), new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), want) || want != "" && !errors.Is(err, errUsage) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
	for _, line := range []string{"table --help", "--help", "help"} {
		if err := run(strings.Fields(line), new(bytes.Buffer)); !errors.Is(err, flag.ErrHelp) || errors.Is(err, errUsage) {
			t.Errorf("%q: error %v", line, err)
		}
	}
	none, empty := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"table --where hh=1 " + empty:     `"hh=1" is no NAME=VALUE`,
		"table " + empty:                  "no trial has",
		"table " + none:                   "no such file",
		"run --out " + empty + " " + none: "no such file",
	} {
		if err := run(strings.Fields(line), new(bytes.Buffer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", line, err, want)
		}
	}
}
