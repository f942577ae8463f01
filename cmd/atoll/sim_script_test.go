package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/cmd/atoll/internal/cli"
)

// script writes a script and plays it.
func script(t *testing.T, c SimCmd, text string) (out string, err error) {
	t.Helper()
	c.Script = filepath.Join(t.TempDir(), "try.txt")
	if err := os.WriteFile(c.Script, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	err = c.Run(t.Context(), &cli.Console{Out: &b})
	return b.String(), err
}

// A script is played, shown and judged: what is not as expected fails the command.
func TestSimPlaysScripts(t *testing.T) {
	t.Parallel()
	const world = "nodes 3\nrounds 10\nat 2s kill 1 for 1s\n"
	out, err := script(t, SimCmd{}, world+"expect discarded at most 0")
	if err != nil || !strings.Contains(out, "promises      all kept") || !strings.Contains(out, "line 4: expect discarded at most 0: holds") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = script(t, SimCmd{}, world+"expect rounds at least 1000")
	if !errors.Is(err, errSilent) || !strings.Contains(out, "does not hold") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = script(t, SimCmd{JSON: true}, world+"expect rounds at least 5")
	var r scriptResult
	if jsonErr := json.Unmarshal([]byte(out), &r); err != nil || jsonErr != nil || len(r.Expected) != 1 || !r.Expected[0].Good || r.Rounds < 5 {
		t.Errorf("%v %v\n%s", err, jsonErr, out)
	}
}

// A script that cannot be understood, or flags that do not go with one, are wrong
// usage.
func TestSimRefusesScripts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		cmd        SimCmd
		text, want string
	}{
		{SimCmd{}, "nodes 3\nat 2s krash 1", `try.txt:2: "krash": there is no such event; use one of kill,`},
		{SimCmd{Nodes: 3}, "nodes 3", "--script describes the whole world"},
	} {
		_, err := script(t, c.cmd, c.text)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
