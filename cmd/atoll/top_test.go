package main

import (
	"bytes"
	"strings"
	"testing"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/statustext"
	"atoll/cmd/atoll/internal/top"
)

// What cannot show a full screen is told what can.
func TestTopNeedsATerminal(t *testing.T) {
	for _, args := range [][]string{{"top"}, {"top", t.TempDir()}} {
		code, stdout, stderr := typed(t, args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, "stdout is no terminal; use `atoll status --watch` instead") {
			t.Errorf("%v: exit code %d, %q, %q", args, code, stdout, stderr)
		}
	}
	for term, want := range map[string]string{"dumb": `TERM="dumb" cannot show a full screen; use`, "": `TERM="" cannot`, "xterm-256color": ""} {
		err := terminalFits(term)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("TERM=%q: %v", term, err)
		}
	}
	if err := fullScreen(&cli.Console{Out: &bytes.Buffer{}}, "xterm"); err == nil {
		t.Error("a buffer is taken for a terminal")
	}
}

func TestLocales(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{
		{nil, true},
		{map[string]string{"LANG": "C"}, false},
		{map[string]string{"LANG": "C.UTF-8"}, true},
		{map[string]string{"LANG": "de_DE.utf8"}, true},
		{map[string]string{"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, false},
		{map[string]string{"LC_CTYPE": "en_US.UTF-8", "LANG": "C"}, true},
	} {
		if got := speaksUTF8(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%v: %v", c.env, got)
		}
	}
}

func TestTopSaysHowItEnded(t *testing.T) {
	one := top.Node{Status: trainingStatus()}
	if got, err := endOf([]top.Node{one}); err != nil || got != "the node has ended: "+statustext.EndLine(one.Status) {
		t.Error(got, err)
	}
	over := one
	over.Status.Finished = true
	if got, err := endOf([]top.Node{one, over}); err != nil || got != "all 2 nodes have ended: "+statustext.EndLine(over.Status) {
		t.Error(got, err)
	}
	dead := one
	dead.Died, dead.Dir = true, "my node"
	if _, err := endOf([]top.Node{one, dead}); err == nil || !strings.HasPrefix(err.Error(), "all 2 nodes have ended, and died without leaving in order: my node; `atoll logs 'my node'`") {
		t.Error(err)
	}
	if got, err := endOf([]top.Node{over, dead}); err != nil || got != "all 2 nodes have ended: "+statustext.EndLine(over.Status) {
		t.Error(got, err)
	}
}
