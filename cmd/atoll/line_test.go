package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/node"
)

// typed runs a command line.
func typed(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return typedIn(t.Context(), args)
}

// typedIn does so without a test.
func typedIn(ctx context.Context, args []string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = run(ctx, args, &cli.Console{In: strings.NewReader(""), Out: &out, Err: &errs})
	return code, out.String(), errs.String()
}

func TestCommandLines(t *testing.T) {
	for line, want := range map[string]string{
		"":          "Usage: atoll <command>",
		"--help":    "testnet",
		"version":   "atoll/",
		"--version": "atoll/",
		"help":      "Usage: atoll <command>",
		"help join": "Usage: atoll join",
		"help sim":  "Usage: atoll sim",
		"help data": "Usage: atoll data <command>",
		"sim --nodes 2 --rounds 2 --link rate=10mbit,delay=5ms --payload 10kB --delta-time 1s": "promises",
		"bench --model tiny --threads 1 --seconds 0 --json":                                    `{"model":"tiny","params":824448,"threads":1,`,
	} {
		if code, stdout, stderr := typed(t, strings.Fields(line)...); code != exitDone || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %q", line, code, stdout, stderr, want)
		}
	}
}

// Every command explains itself with an example.
func TestHelpHasExamples(t *testing.T) {
	var line commandLine
	app, err := kong.New(&line)
	if err != nil {
		t.Fatal(err)
	}
	for _, leaf := range app.Model.Leaves(true) {
		path := strings.Fields(strings.TrimPrefix(leaf.FullPath(), app.Model.Name))
		code, stdout, _ := typed(t, append(path, "--help")...)
		if example := "    atoll " + strings.Join(path, " "); code != 0 || !strings.Contains(stdout, example) {
			t.Errorf("%v: exit code %d, no example in %s", path, code, stdout)
		}
	}
}

func TestExitCodes(t *testing.T) {
	refusal := &hello.Refusal{Field: hello.FieldRun, Ours: "a", Theirs: "b"}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), 1},
		{errSilent, 1},
		{cli.BadUsage("x"), 2},
		{fmt.Errorf("join: %w", refusal), 3},
		{fmt.Errorf("join: %w", p2p.ErrRefusedByPeer), 3},
		{fmt.Errorf("join: %w", node.ErrNoPeers), 4},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), 4},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.want)
		}
	}
}

func TestConfigFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	for _, c := range []struct {
		toml, want string // in stderr of `atoll generate`
	}{
		{"[generate]\nlength = 0", "--length is 0"},
		{"length = -3", "--length is -3"},
		{"length = 5\n[generate]\nlength = -4", "--length is -4"},
		{"[generate]\ntemperature = -0.5", "--temperature is -0.5"},
		{"tokns = 5", path + `, line 1: no command has a flag "tokns"; did you mean "tokens"?`},
		{"[generate]\ndata = \"x\"", `atoll generate has no flag "data"`},
		{"[paint]\ndata = \"x\"", "table [paint]: there is no such command"},
		{"[generate]\nlength = ", path + ", line 2: toml"},
		{"name = \"" + strings.Repeat("x", 1<<20) + "\"", "is it the right file?"},
	} {
		if err := os.WriteFile(path, []byte(c.toml), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := typed(t, "--config", path, "generate")
		if code != exitUsage || !strings.Contains(stderr, c.want) {
			t.Errorf("%.40q: exit code %d, stderr %q; want %q", c.toml, code, stderr, c.want)
		}
	}
}

// A list of links is a list, although a link has commas of its own.
func TestLinksFromAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	for toml, want := range map[string]string{
		`link = ["rate=100mbit,delay=40ms", "9:up=5mbit,down=100mbit"]`: "--link names node 9",
		`link = "rate=100mbit,delay=1h"`:                                "delay is 1h0m0s",
	} {
		if err := os.WriteFile(path, []byte("[testnet]\n"+toml), 0o600); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := typed(t, "--config", path, "testnet")
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, stderr %q; want %q", toml, code, stderr, want)
		}
	}
}

func TestFlagsBeforeEnvironmentBeforeFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "atoll.toml")
	if err := os.WriteFile(path, []byte("[generate]\nlength = -1"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ATOLL_CONFIG", path)
	if _, _, stderr := typed(t, "generate"); !strings.Contains(stderr, "--length is -1") {
		t.Errorf("from the file: %s", stderr)
	}
	t.Setenv("ATOLL_GENERATE_LENGTH", "-2")
	if _, _, stderr := typed(t, "generate"); !strings.Contains(stderr, "--length is -2") {
		t.Errorf("from the environment: %s", stderr)
	}
	t.Setenv("ATOLL_LENGTH", "3e6")
	if _, _, stderr := typed(t, "generate", "--length=-3"); !strings.Contains(stderr, "--length is -3") {
		t.Errorf("from the flag: %s", stderr)
	}
}
