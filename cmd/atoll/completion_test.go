package main

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// eachCommand calls a function for the program and every command that is not hidden.
func eachCommand(t *testing.T, use func(n *kong.Node)) {
	t.Helper()
	var line commandLine
	app, err := kong.New(&line, kong.Name("atoll"), kong.PostBuild(environment))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		use(n)
		for _, child := range visible(n) {
			walk(child)
		}
	}
	walk(app.Model.Node)
}

// visible are the commands below one that are not hidden.
func visible(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Type != kong.CommandNode || c.Hidden })
}

func flagsOf(n *kong.Node) (all []*kong.Flag) {
	for _, group := range n.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// mostCommands is how many commands there may be that people see. More than a page of them nobody reads.
const mostCommands = 34

// A flag means the same wherever it is, and there are no more commands than people read.
func TestFlagsMeanTheSame(t *testing.T) {
	leaves, kinds := 0, map[string]string{}
	eachCommand(t, func(n *kong.Node) {
		if len(visible(n)) == 0 {
			leaves++
		}
		for _, f := range flagsOf(n) {
			kind := kindOf(f)
			if other, known := kinds[f.Name]; known && other != kind {
				t.Errorf("--%s of %s is %s, elsewhere it is %s", f.Name, n.FullPath(), kind, other)
			}
			kinds[f.Name] = kind
		}
	})
	if t.Logf("%d commands, %d flags", leaves, len(kinds)); leaves > mostCommands {
		t.Errorf("%d commands, more than %d", leaves, mostCommands)
	}
}

// A shell that asks what may come next is told.
func TestCompletes(t *testing.T) {
	for typedSoFar, want := range map[string]string{
		"atoll jo": "join", "atoll join --prof": "--profile", "atoll join --profile ": "wan", "atoll data ": "build", "atoll data build --held": "--held-out",
	} {
		t.Setenv("COMP_LINE", typedSoFar)
		code, stdout, stderr := typed(t)
		if code != exitDone || stderr != "" || !slices.Contains(strings.Fields(stdout), want) || strings.Contains(stdout, "standin") {
			t.Errorf("%q: exit code %d, %q, %s; want %q", typedSoFar, code, stdout, stderr, want)
		}
	}
	t.Setenv("COMP_LINE", "")
	os.Unsetenv("COMP_LINE")
	if code, stdout, _ := typed(t, "completion", "bash", "-c"); code != exitDone || !strings.HasSuffix(stdout, " atoll\n") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}

// kindOf is what sort of value a flag takes.
func kindOf(f *kong.Flag) string {
	kind := f.Target.Type()
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.PkgPath() == "" && kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Uint64 {
		return "a whole number"
	}
	return kind.String()
}

// What stands behind = in help is the flag's default, or in capitals what to put there: an example would be taken for a default.
func TestHelpShowsNoExampleAsDefault(t *testing.T) {
	capitals := regexp.MustCompile(`^[A-Z][A-Z0-9]*([:/][A-Z0-9]+)*$`)
	eachCommand(t, func(n *kong.Node) {
		for _, f := range flagsOf(n) {
			shown := strings.TrimSuffix(strings.Trim(f.FormatPlaceHolder(), `"`), ",...")
			isDefault := f.HasDefault && shown == f.Default
			if !f.IsBool() && !isDefault && !capitals.MatchString(shown) {
				t.Errorf("%s --%s=%s is no default: name it in capitals, and give the example in the help", n.FullPath(), f.Name, shown)
			}
		}
	})
}
