// Package spectest holds gossip/wire/SPEC.md and gossip/SPEC.md to the code. It
// reads clauses, tables and examples out of the texts, so tests check what the
// texts say and no copies of them.
//
// Only tests import it. Each package that a part of the protocol lives in has a
// spec_test.go with one test for each clause of its prefix; see Run.
package spectest

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documents are the texts, relative to the module.
var documents = []string{"gossip/wire/SPEC.md", "gossip/SPEC.md"}

// Spec is the texts, taken apart. Names of clauses, tables and examples are
// unique over all texts.
type Spec struct {
	clauses  map[string]string     // by name, such as W-12
	document map[string]string     // the one that a clause stands in
	order    []string              // names of clauses as they stand in the texts
	prose    []string              // paragraphs that are no clause
	tables   map[string][][]string // rows of cells, by the name before the table
	examples map[string]string     // fenced blocks, by their name
}

// Clause checks one clause. What it needs of the text it asks s for.
type Clause func(t *testing.T, s *Spec)

// All is a clause that several tests check.
func All(tests ...Clause) Clause {
	return func(t *testing.T, s *Spec) {
		for _, test := range tests {
			test(t, s)
		}
	}
}

// Run runs one subtest for each clause with the prefix, and fails where a
// clause has no test, or a test no clause.
func Run(t *testing.T, prefix string, tests map[string]Clause) {
	t.Helper()
	s := Load(t)
	for name := range tests {
		if _, ok := s.clauses[name]; !ok {
			t.Errorf("there is a test for %s, but no such clause", name)
		}
	}
	for _, name := range s.order {
		if !strings.HasPrefix(name, prefix+"-") {
			continue
		}
		check, ok := tests[name]
		if !ok {
			t.Errorf("%s has no test: %s", name, s.clauses[name])
			continue
		}
		t.Run(name, func(t *testing.T) { check(t, s) })
	}
}

// Load reads the texts.
func Load(t testing.TB) *Spec {
	t.Helper()
	p := newParser()
	for _, name := range documents {
		raw, err := os.ReadFile(filepath.Join(moduleRoot(t), filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.read(name, string(raw)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	return p.spec
}

// moduleRoot is the nearest folder above the test's that has a go.mod.
func moduleRoot(t testing.TB) string {
	t.Helper()
	for dir := "."; len(dir) < 64; dir = filepath.Join("..", dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above this test")
	return ""
}

// Text returns a fenced block as it stands, without the last line's end.
func (s *Spec) Text(t testing.TB, name string) string {
	t.Helper()
	text, ok := s.examples[name]
	if !ok {
		t.Fatalf("SPEC.md has no example %q", name)
	}
	return text
}

// Hex returns the bytes of a fenced block of hex digits. Spaces and what
// follows a # in a line do not count.
func (s *Spec) Hex(t testing.TB, name string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(s.Text(t, name)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatalf("SPEC.md example %q: %v", name, err)
	}
	return b
}

// Table returns the rows below the head of a table, cells without backquotes.
func (s *Spec) Table(t testing.TB, name string) [][]string {
	t.Helper()
	rows, ok := s.tables[name]
	if !ok {
		t.Fatalf("SPEC.md has no table %q", name)
	}
	return rows
}

// Number returns the second cell of the row that begins with the key.
func (s *Spec) Number(t testing.TB, table, key string) int64 {
	t.Helper()
	i := slices.IndexFunc(s.Table(t, table), func(row []string) bool { return row[0] == key })
	if i < 0 {
		t.Fatalf("SPEC.md table %q has no row %q", table, key)
	}
	n, err := strconv.ParseInt(s.Table(t, table)[i][1], 10, 64)
	if err != nil {
		t.Fatalf("SPEC.md table %q row %q: %v", table, key, err)
	}
	return n
}

// Layout cuts b into the fields of a byte table, whose rows are offset, size
// and name, and fails unless they cover b without a gap.
func (s *Spec) Layout(t testing.TB, table string, b []byte) map[string][]byte {
	t.Helper()
	fields, at := map[string][]byte{}, 0
	for _, row := range s.Table(t, table) {
		offset, err := strconv.Atoi(row[0])
		if err != nil || offset != at {
			t.Fatalf("SPEC.md table %q: field %q at %q, the one before ends at %d", table, row[2], row[0], at)
		}
		size, err := strconv.Atoi(row[1])
		if err != nil || at+size > len(b) {
			t.Fatalf("SPEC.md table %q: field %q of %q bytes at %d of %d", table, row[2], row[1], at, len(b))
		}
		fields[row[2]], at = b[at:at+size], at+size
	}
	if at != len(b) {
		t.Fatalf("SPEC.md table %q covers %d bytes of %d", table, at, len(b))
	}
	return fields
}

var (
	clauseLine = regexp.MustCompile(`^\*\*([A-Z]-[0-9]+(?:\.[0-9]+)?)\*\* (.+)$`)
	tableLine  = regexp.MustCompile("^Table `([^`]+)`")
	fenceLine  = regexp.MustCompile("^```(?:hex|text) (\\S.*)$")
)

// parse takes one text apart. Its error names the line that has no sense.
func parse(text string) (*Spec, error) {
	p := newParser()
	err := p.read("", text)
	return p.spec, err
}
