package testnet_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// This file holds documents, help, messages and keys to the words of the field. The left
// column once named things here, and each cost a newcomer a look into the code.

// forbidden has the words that stay out, each with the one to write.
var forbidden = []struct{ word, write string }{
	{`beats?|beaten`, "heartbeat"},
	{`donors?|donat\w+`, "snapshot source"},
	{`rosters?`, "peer list"},
	{`anchors?`, "global parameters"},
	{`theta`, "local parameters"},
	{`evidence`, "equivocation proof"},
	{`bells?|rang`, "proposal"},
	{`answerers?`, "sampled learners"},
	{`patience`, "grace limit"},
	{`unit(e|es|ed|ing)`, "reconcile"},
	{`outdone`, "behind in tokens"},
	{`barred`, "excluded"},
	{`silenced`, "muted"},
	{`stands? aside`, "overflow"},
	{`twins?`, "duplicate key"},
	{`committee`, "reference set"},
	{`wayin`, "preflight"},
	{`shelf`, "content store"},
	{`lend|lent`, "link"},
	{`weather`, "network, traffic shaping"},
	{`uphill`, "inverted gradient"},
	{`islands?`, "data-parallel group"},
	{`farewell`, "shutdown"},
	{`pulse`, "statistics"},
	{`tak(e|es|ing) back|taken back`, "return"},
	{`taken whole`, "snapshot"},
	{`word counts`, "claim"},
	{`owner's words?`, "signed statement"},
	{`voices?`, "claimant, reference"},
	{`of late`, "recently"},
}

// allowed are names of others, in which a word is no word of ours.
var allowed = regexp.MustCompile(`(?i)rope[_-]theta|witten[- ]bell|text-anchor`)

var forbiddenWord = func() (all []*regexp.Regexp) {
	for _, f := range forbidden {
		all = append(all, regexp.MustCompile(`(?i)(^|[^a-z0-9])(`+f.word+`)([^a-z0-9]|$)`))
	}
	return all
}()

// private returns what is wrong with a text, or "".
func private(text string) string {
	text = allowed.ReplaceAllString(text, "")
	for i, f := range forbiddenWord {
		if m := f.FindStringSubmatch(text); m != nil {
			return strconv.Quote(m[2]) + "; the field says " + forbidden[i].write
		}
	}
	return ""
}

func TestPrivateWordsAreFound(t *testing.T) {
	for _, text := range []string{"the newest beat", `json:"beat_ms"`, "Donors give it.", "what was taken back", "rope_theta of theta"} {
		if private(text) == "" {
			t.Errorf("%q passes", text)
		}
	}
	for _, text := range []string{"a heartbeat", "rope_theta", "an interpolated Witten-Bell model", "blend"} {
		if why := private(text); why != "" {
			t.Errorf("%q has %s", text, why)
		}
	}
}

// The laboratory's results are stored in the words of their day.
func TestDocumentsSayTheFieldsWords(t *testing.T) {
	for _, name := range tracked(t) {
		if path.Ext(name) != ".md" || strings.HasPrefix(name, "testnet/lab/") {
			continue
		}
		for i, line := range strings.Split(string(read(t, name)), "\n") {
			if why := private(line); why != "" {
				t.Errorf("%s:%d: %s", name, i+1, why)
			}
		}
	}
}

// Help, messages and JSON keys are string literals.
func TestMessagesSayTheFieldsWords(t *testing.T) {
	found := 0
	for _, f := range parseTree(t, parser.SkipObjectResolution) {
		if strings.HasSuffix(f.path, "_test.go") || strings.HasPrefix(f.path, "testnet/lab/") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			found++
			if text, err := strconv.Unquote(lit.Value); err == nil {
				if why := private(text); why != "" {
					t.Errorf("%s: %q has %s", f.path, text, why)
				}
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no literal was found: this test looks in the wrong place")
	}
}
