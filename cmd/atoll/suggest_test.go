package main

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"pgregory.net/rapid"

	"atoll/cmd/atoll/internal/cli"
)

// Whatever slip the hand makes in the name of a command, the right one is suggested.
func TestEverySlipIsUnderstood(t *testing.T) {
	var line commandLine
	app, err := kong.New(&line)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.SampledFrom(app.Model.Leaves(true)).Draw(t, "command")
		path := strings.Fields(leaf.FullPath())[1:]
		at := rapid.IntRange(0, len(path)-1).Draw(t, "word")
		word := path[at]
		if len(word) < 4 {
			t.Skip("too short for a slip to be told from a word")
		}
		slipped := slip(t, word)
		if slipped == word {
			t.Skip("two equal letters")
		}
		if nearOther(app.Model.Node, path[:at], word, slipped) {
			t.Skip("as near to another command")
		}
		code, stdout, stderr := typedIn(context.Background(), append(append([]string{}, path[:at]...), slipped))
		if code == exitDone && strings.Contains(stdout, "Usage") {
			t.Skip("another command")
		}
		if code != exitUsage || !strings.Contains(stderr, `"`+word+`"`) {
			t.Fatalf("%v for %s: exit code %d, %s", slipped, word, code, stderr)
		}
	})
}

// nearOther says whether what was typed after a path is no farther from another command than from
// the one that was meant.
func nearOther(n *kong.Node, path []string, meant, typed string) bool {
	for _, name := range path {
		n = n.Children[slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == name })]
	}
	return slices.ContainsFunc(n.Children, func(c *kong.Node) bool {
		return c.Name != meant && cli.Slips(typed, c.Name) <= cli.Slips(typed, meant)
	})
}

// slip is a word as a hand may type it.
func slip(t *rapid.T, word string) string {
	i := rapid.IntRange(0, len(word)-2).Draw(t, "at")
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return word[:i] + word[i+1:]
	case 1:
		return word[:i] + "x" + word[i:]
	case 2:
		return word[:i] + "x" + word[i+1:]
	}
	return word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
}

// A word of another program leads to ours, and is none of ours.
func TestNeighboursLeadHere(t *testing.T) {
	var line commandLine
	app, err := kong.New(&line)
	if err != nil {
		t.Fatal(err)
	}
	for word, ours := range elsewhere {
		name, _, _ := strings.Cut(ours, " ")
		is := func(command string) bool {
			return slices.ContainsFunc(app.Model.Children, func(n *kong.Node) bool { return n.Name == command })
		}
		if !is(name) || is(word) {
			t.Errorf("%s: %s", word, ours)
		}
		if code, _, stderr := typed(t, word, "x"); code != exitUsage || !strings.Contains(stderr, "type `atoll "+ours+"`") {
			t.Errorf("%s: exit code %d, %s", word, code, stderr)
		}
	}
}

func TestSlips(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"join", "join", 0}, {"jion", "join", 1}, {"satus", "status", 1}, {"tesnte", "testnet", 2}, {"kitten", "sitting", 3}} {
		if got := cli.Slips(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := cli.Slips(c.b, c.a); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
	for word, want := range map[string]string{"shwo": "show", "biuld": "build", "x": "", "paint": "", "": ""} {
		if got := cli.Nearest(word, []string{"build", "show", "mix"}); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
