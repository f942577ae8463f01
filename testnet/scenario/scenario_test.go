package scenario

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the outcomes of the scripts anew")

// scripts are all scripts of testdata.
func scripts(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	return files
}

// read reads a script of testdata; errors name it without its folder.
func read(t testing.TB, file string) (*Script, []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Parse(filepath.Base(file), text)
	if err != nil {
		t.Fatal(err)
	}
	return s, text
}

// leastOutcomes is how many scripts have an outcome at least: fewer would show too little of what a change does.
const leastOutcomes = 20

// Every script keeps every promise, does what it expects, and has the outcome
// that it had, if one stands in it.
func TestScripts(t *testing.T) {
	outcomes := 0
	for _, file := range scripts(t) {
		s, text := read(t, file)
		marked := bytes.Contains(text, []byte(outcomeMarker)) // -update writes what stands below
		if marked {
			outcomes++
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			o, err := Play(s)
			if err != nil {
				t.Fatal(err)
			}
			judge(t, s, o)
			switch got := o.String(); {
			case !marked || got == s.Outcome:
			case *update:
				rewrite(t, file, s, text, o)
			default:
				t.Errorf("%s has another outcome; if it is as good, write it with: go test ./testnet/scenario -update\n%s",
					s.Name, differences(s.Outcome, got))
			}
		})
	}
	if outcomes < leastOutcomes {
		t.Errorf("%d scripts have an outcome, of at least %d", outcomes, leastOutcomes)
	}
}

func judge(t *testing.T, s *Script, o *Outcome) {
	t.Helper()
	verdicts, err := s.Judge(o)
	if err != nil {
		t.Error(err)
	}
	for _, v := range verdicts {
		if !v.Good() {
			t.Errorf("%s:%d: %s", s.Name, v.Line, v)
		}
	}
}

// rewrite changes what stands below the marker, and nothing else.
func rewrite(t *testing.T, file string, s *Script, text []byte, o *Outcome) {
	t.Helper()
	s.Outcome = o.String()
	after := s.Format()
	if above(after) != above(text) {
		t.Errorf("%s is not written as scripts are: single spaces, two before a comment, a blank line before the marker", s.Name)
		return
	}
	if bytes.Equal(after, text) {
		return
	}
	if err := os.WriteFile(file, after, 0o644); err != nil {
		t.Error(err)
	}
}

// above is what people wrote of a script.
func above(text []byte) string {
	code, _, _ := strings.Cut(string(text), outcomeMarker)
	return strings.TrimRight(code, "\n")
}

// differences shows the lines that occur more often in one outcome than in the other.
func differences(want, got string) string {
	var b strings.Builder
	for _, l := range without(want, got) {
		b.WriteString("- " + l + "\n")
	}
	for _, l := range without(got, want) {
		b.WriteString("+ " + l + "\n")
	}
	return b.String()
}

func without(text, other string) (lines []string) {
	have := map[string]bool{}
	for l := range strings.SplitSeq(other, "\n") {
		have[l] = true
	}
	for l := range strings.SplitSeq(text, "\n") {
		if !have[l] {
			lines = append(lines, l)
		}
	}
	return lines
}

// The package documentation lists the scripts of testdata, and says of one that it is
// known to fail only if it has such a mark.
func TestDocumentationListsScripts(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "// # Scripts\n")
	listed := map[string]string{}
	for _, line := range scriptLine.FindAllStringSubmatch(list, -1) {
		listed[line[1]] = line[2]
	}
	for _, file := range scripts(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		what, found := listed[name]
		if !found {
			t.Errorf("doc.go does not list %s", name)
		}
		s, _ := read(t, file)
		marked := s.Breaks != "" || slices.ContainsFunc(s.Expects, func(e Expectation) bool { return e.Fails != "" })
		if marked != strings.Contains(what, "known to") {
			t.Errorf("%s has a mark: %v, but doc.go: %s", name, marked, what)
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("doc.go lists %s, which is no script of testdata", name)
	}
}

var scriptLine = regexp.MustCompile(`(?m)^//\t(\S+) +(.+)$`)
