package spectest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Each prefix has a package whose tests run its clauses. No clause has another
// prefix or stands in another text than the table says: nobody would miss a clause
// that Run is not asked for.
func TestEachPrefixIsRun(t *testing.T) {
	s := Load(t)
	known := map[string]string{}
	for _, row := range s.Table(t, "prefixes") {
		prefix, pkg := row[0], row[2]
		known[prefix] = row[3]
		if !runs(t, filepath.Join(moduleRoot(t), filepath.FromSlash(pkg)), prefix) {
			t.Errorf("no test in %s runs the clauses %s-...", pkg, prefix)
		}
	}
	for _, name := range s.order {
		if prefix, _, _ := strings.Cut(name, "-"); known[prefix] != s.document[name] {
			t.Errorf("clause %s stands in %s, the table has its prefix in %q", name, s.document[name], known[prefix])
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

// Clauses of a prefix are numbered from 1 without a gap, and so are the rules of a
// clause. The first rule has the name of the clause. A missing number is a clause
// that does not look like one.
func TestClausesAreNumbered(t *testing.T) {
	last, rules := map[string]int{}, map[string]int{}
	for _, name := range Load(t).order {
		clause, rule, _ := strings.Cut(name, ".")
		prefix, number, _ := strings.Cut(clause, "-")
		if rule == "" {
			last[prefix]++
			rules[clause] = 1
		} else {
			rules[clause]++
		}
		if want := strconv.Itoa(last[prefix]); number != want {
			t.Errorf("%s stands where %s-%s belongs", name, prefix, want)
		}
		if want := strconv.Itoa(rules[clause]); rule != "" && rule != want {
			t.Errorf("%s stands where %s.%s belongs", name, clause, want)
		}
	}
}

// Each clause is one sentence, so that no second one hides behind the test of the
// first.
func TestClausesAreSentences(t *testing.T) {
	s := Load(t)
	for _, name := range s.order {
		if !isSentence(s.clauses[name]) {
			t.Errorf("%s is not one sentence: %s", name, s.clauses[name])
		}
	}
	for text, one := range map[string]bool{
		"A node waits.": true, "These are it:": true, "A node waits 1.5 s, as 2^32.": true, "It is `[x, ...]`: a list.": true,
		"A node waits. It goes on.": false, "A node waits; it goes on.": false, "A node waits": false, "A node waits: then it goes on. `x` too.": false,
		"It is `x`. It is `y`.": false,
	} {
		if isSentence(text) != one {
			t.Errorf("%q: taken for one sentence is %v", text, !one)
		}
	}
}

// A clause has at most one word of RFC 2119: what MUST be and what MAY be are two rules, and one
// test would show only one.
func TestClausesHaveOneRule(t *testing.T) {
	s := Load(t)
	for _, name := range s.order {
		if words := binding.FindAllString(s.clauses[name], -1); len(words) > 1 {
			t.Errorf("%s says %s: %s", name, strings.Join(words, " and "), s.clauses[name])
		}
	}
}

// A clause of gossip/SPEC.md binds: what today's nodes merely do is no part of it.
func TestClausesOfTheConversationBind(t *testing.T) {
	s := Load(t)
	for _, name := range s.order {
		if s.document[name] == "gossip/SPEC.md" && !binding.MatchString(s.clauses[name]) {
			t.Errorf("%s binds nobody: %s", name, s.clauses[name])
		}
	}
}

// isSentence tells whether a text ends where its first sentence does. What stands
// between backquotes is a word.
func isSentence(text string) bool { return sentence.MatchString(quoted.ReplaceAllString(text, "x")) }

// What a node must do stands in a clause: other paragraphs explain.
func TestProseBindsNobody(t *testing.T) {
	for _, text := range Load(t).prose {
		if binding.MatchString(text) && !strings.Contains(text, "RFC 2119") {
			t.Errorf("a paragraph without a name says what must be: %s", text)
		}
	}
}

var (
	sentence = regexp.MustCompile(`^([^.;]|\.[0-9a-z/])+[.:]$`)
	quoted   = regexp.MustCompile("`[^`]*`")
	binding  = regexp.MustCompile(`\b(MUST|SHOULD|MAY)\b`)
)

const sample = `
**X-1** One line
and another.

**X-1.2** A rule of it.

A paragraph
of two lines.

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
	if got := s.clauses["X-1"]; got != "One line and another." || s.clauses["X-1.2"] != "A rule of it." || len(s.order) != 2 {
		t.Errorf("clauses %q", s.clauses)
	}
	if !slices.Equal(s.prose, []string{"A paragraph of two lines."}) {
		t.Errorf("prose %q", s.prose)
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
