package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// A variable without a command in its name is of a flag that means the same everywhere.
func TestVariablesAreByCommand(t *testing.T) {
	var line commandLine
	app, err := kong.New(&line, kong.PostBuild(environment))
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	var look func(n *kong.Node)
	look = func(n *kong.Node) {
		for _, f := range n.Flags {
			for _, env := range f.Envs {
				path := strings.TrimPrefix(n.FullPath(), "atoll")
				if owner, taken := owners[env]; taken && owner != f.Name {
					t.Errorf("%s is of --%s and of --%s", env, owner, f.Name)
				}
				owners[env] = f.Name
				if len(strings.Fields(path)) > 0 && !strings.Contains(env, strings.ToUpper(strings.ReplaceAll(n.Name, "-", "_"))) && !isEverywhere(nil, f.Name) {
					t.Errorf("%s is of atoll%s alone, and does not say so", env, path)
				}
			}
		}
		for _, p := range n.Positional {
			for _, env := range p.Tag.Envs {
				owners[env] = p.Name
			}
		}
		for _, child := range n.Children {
			look(child)
		}
	}
	look(app.Model.Node)
	for _, env := range []string{"ATOLL_DIR", "ATOLL_CONFIG", "ATOLL_JOIN_UP", "ATOLL_JOIN_EVAL_BYTES", "ATOLL_BENCH_MODEL", "ATOLL_TESTNET_DIR"} {
		if owners[env] == "" {
			t.Errorf("%s is of no flag", env)
		}
	}
}

func TestVariablesDoNotLeak(t *testing.T) {
	t.Setenv("ATOLL_LENGTH", "-1")
	t.Setenv("ATOLL_NEW_TOKENS", "-1")
	code, _, stderr := typed(t, "generate", t.TempDir())
	if strings.Contains(stderr, "--length is") || code != exitFailed {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if want := "note: ATOLL_LENGTH is not read; use ATOLL_GENERATE_LENGTH"; !strings.Contains(stderr, want) {
		t.Errorf("%q does not say %q", stderr, want)
	}
	if _, _, stderr := typed(t, "new"); !strings.Contains(stderr, "ATOLL_NEW_TOKENS") || !strings.Contains(stderr, "whole number") {
		t.Errorf("from its own variable: %s", stderr)
	}
}

func TestMisspeltVariables(t *testing.T) {
	t.Setenv("ATOLL_JION_UP", "5")
	t.Setenv("ATOLL_JOIN_DOWN", "")
	t.Setenv("ATOLL_OF_ANOTHER_PROGRAM", "5")
	_, _, stderr := typed(t, "key", "absent")
	if want := "note: ATOLL_JION_UP is not read; use ATOLL_JOIN_UP"; strings.Count(stderr, "note:") != 1 || !strings.Contains(stderr, want) {
		t.Errorf("%q does not say %q alone", stderr, want)
	}
}

// A unit of systemd has the link from a file, so that it stands in no list of processes.
func TestLinkFromItsVariable(t *testing.T) {
	t.Setenv("ATOLL_JOIN_LINK", "atoll:cut")
	if code, _, stderr := typed(t, "join"); code != exitUsage || !strings.Contains(stderr, `"atoll:cut" is cut`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	if code, _, stderr := typed(t, "join", "atoll:typed"); code != exitUsage || !strings.Contains(stderr, `"atoll:typed" is cut`) {
		t.Errorf("a typed one does not come first: exit code %d, %s", code, stderr)
	}
}
