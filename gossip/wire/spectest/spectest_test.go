package spectest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each prefix has a package whose spec_test.go runs its clauses, and no clause
// has another prefix: what Run is not asked for nobody would miss.
func TestEachPrefixIsRun(t *testing.T) {
	s := Load(t)
	known := map[string]bool{}
	for _, row := range s.Table(t, "prefixes") {
		prefix, pkg := row[0], row[2]
		known[prefix] = true
		if !runs(t, filepath.Join(moduleRoot(t), filepath.FromSlash(pkg)), prefix) {
			t.Errorf("no test in %s runs the clauses %s-...", pkg, prefix)
		}
	}
	for _, name := range s.order {
		if prefix, _, _ := strings.Cut(name, "-"); !known[prefix] {
			t.Errorf("clause %s has a prefix that no package is named for", name)
		}
	}
}

// runs tells whether some test of the folder calls Run with the prefix.
func runs(t *testing.T, dir, prefix string) bool {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(names, func(name string) bool {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(raw), `spectest.Run(t, "`+prefix+`"`)
	})
}

// Clauses of a prefix are numbered from 1 without a gap: a number that is
// missing is a clause that does not look like one.
func TestClausesAreNumbered(t *testing.T) {
	last := map[string]int{}
	for _, name := range Load(t).order {
		prefix, number, _ := strings.Cut(name, "-")
		last[prefix]++
		if want := strconv.Itoa(last[prefix]); number != want {
			t.Errorf("%s stands where %s-%s belongs", name, prefix, want)
		}
	}
}

const sample = `
**X-1** One line
and another.

Table ` + "`t`" + `:

| key | value |
| --- | --- |
| ` + "`a`" + ` | 7 |

` + "```hex bytes\n01 02  # a comment\n03\n```\n\n```\n**X-2** not a clause\n```\n"

func TestParse(t *testing.T) {
	s, err := parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.clauses["X-1"]; got != "One line and another." || len(s.order) != 1 {
		t.Errorf("clauses %q", s.clauses)
	}
	if b := s.Hex(t, "bytes"); string(b) != "\x01\x02\x03" {
		t.Errorf("bytes %x", b)
	}
	if n := s.Number(t, "t", "a"); n != 7 {
		t.Errorf("number %d", n)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, text := range map[string]string{
		"a clause twice":      "**X-1** a\n\n**X-1** b\n",
		"a table twice":       strings.Repeat("Table `t`:\n\n| a |\n| - |\n| 1 |\n\n", 2),
		"an example twice":    strings.Repeat("```text a\nx\n```\n", 2),
		"a block without end": "```text a\nx\n",
	} {
		if _, err := parse(text); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestLayout(t *testing.T) {
	s, err := parse("Table `b`:\n\n| offset | size | field |\n| - | - | - |\n| 0 | 2 | x |\n| 2 | 1 | y |\n")
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Layout(t, "b", []byte("abc")); string(f["x"]) != "ab" || string(f["y"]) != "c" {
		t.Errorf("fields %q", f)
	}
}
