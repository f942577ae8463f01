package testnet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// toyWorld is a world that a test can afford: a model of a few thousand
// parameters on a text of a few kilobytes.
func toyWorld(t *testing.T) Config {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return Config{
		Model: write("toy.json", `{"vocab":256,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":24,"context":16}`, 0o600),
		Data:  write("text.txt", strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200), 0o600),
		Nodes: 2, Fragments: 2, H: 4, Seed: 1, Timeout: 2 * time.Minute,
		Place: Place{Dir: filepath.Join(dir, "world")}, Console: Console{Out: &bytes.Buffer{}},
	}
}

// script is a program that stands in for a node.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "node.sh")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWorldsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		binary  string
		timeout time.Duration
		want    []string
		is      []error
	}{
		"a node dies":      {script(t, "echo the disk is on fire >&2; exit 3"), 0, []string{"node0 died: exit status 3", "the disk is on fire", "world"}, nil},
		"a node ends":      {script(t, "exit 0"), 0, []string{"node0 ended without a last status"}, nil},
		"there is no file": {filepath.Join(t.TempDir(), "none"), 0, []string{"start node0"}, nil},
		"it hangs":         {script(t, "exec sleep 600"), time.Millisecond, []string{"raise --timeout"}, []error{ErrTimeout, context.DeadlineExceeded}},
	} {
		cfg := toyWorld(t)
		cfg.Binary, cfg.Timeout = c.binary, orDefault(c.timeout, cfg.Timeout)
		_, err := Run(context.Background(), cfg)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %q in it", name, err, want)
			}
		}
		for _, want := range c.is {
			if !errors.Is(err, want) {
				t.Errorf("%s: error %v is no %v", name, err, want)
			}
		}
	}
}

// onLine cancels when a line is written that holds some text.
type onLine struct {
	text string
	do   func()
}

func (o *onLine) Write(b []byte) (int, error) {
	if o.do != nil && strings.Contains(string(b), o.text) {
		o.do()
		o.do = nil
	}
	return len(b), nil
}

func TestInterruptAsksTheNodesToLeave(t *testing.T) {
	cfg := toyWorld(t)
	marker := filepath.Join(t.TempDir(), "left")
	cfg.Binary = script(t, "trap 'echo in order > "+marker+"; exit 0' INT; while :; do sleep 0.05; done")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg.Out = &onLine{"node0 starting", cancel} // the first view: the process has had time to set its trap
	if _, err := Run(ctx, cfg); !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(marker); err != nil {
		t.Errorf("the node was not asked to leave in order: %v", err)
	}
}

func TestSecondInterruptKills(t *testing.T) {
	cfg := toyWorld(t)
	cfg.Binary = script(t, "trap '' INT; while :; do sleep 0.05; done")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	abort := make(chan struct{})
	cfg.Abort = abort
	cfg.Out = &onLine{"node0 starting", func() { cancel(); close(abort) }}
	if _, err := Run(ctx, cfg); !errors.Is(err, ErrStopped) {
		t.Errorf("error %v", err)
	}
}

// built is where the tests' program is, once one of them has built it.
var built struct {
	sync.Once
	dir, out string
	err      error
}

// TestMain removes what the tests have built.
func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // it is a folder for temporary files
	}
	os.Exit(code)
}

// buildAtoll builds the program as people do, once for all tests.
func buildAtoll(t *testing.T) string {
	t.Helper()
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "atoll-test-"); built.err != nil {
			return
		}
		var out []byte
		out, built.err = exec.Command("go", "build", "-o", filepath.Join(built.dir, "atoll"), "atoll/cmd/atoll").CombinedOutput()
		built.out = string(out)
	})
	if built.err != nil {
		t.Fatalf("go build: %v\n%s", built.err, built.out)
	}
	return filepath.Join(built.dir, "atoll")
}

// TestWorldOfProcesses runs real nodes: two begin, a third joins, one leaves.
func TestWorldOfProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some seconds")
	}
	cfg := toyWorld(t)
	cfg.Binary = buildAtoll(t)
	cfg.Tokens, cfg.Pace, cfg.Chaos = 60_000, 15*time.Millisecond, "join @30%, leave 1 @60%"
	r := runWorld(t, cfg)
	if r.TokensTrained != r.TokensFolded+r.TokensDiscarded+r.TokensUnpublished+r.TokensLost || r.TokensLost != 0 {
		t.Errorf("the account does not add up: %+v", r)
	}
	if r.Joins != 1 || r.Leaves != 1 || len(r.JoinS) != 1 || len(r.NodesReport) != 3 {
		t.Errorf("%d joins %v, %d leaves, %d nodes", r.Joins, r.JoinS, r.Leaves, len(r.NodesReport))
	}
	checkFolder(t, cfg.Dir, r)
}

// checkFolder checks what a world leaves.
func checkFolder(t *testing.T, dir string, r Report) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, reportFile))
	if err != nil {
		t.Fatal(err)
	}
	var kept Report
	if err := json.Unmarshal(b, &kept); err != nil || kept.StateDigest != r.StateDigest {
		t.Errorf("kept report: %v, digest %q, want %q", err, kept.StateDigest, r.StateDigest)
	}
	again, err := Page(dir, nil)
	if page, readErr := os.ReadFile(filepath.Join(dir, PageFile)); err != nil || readErr != nil || kept.Page == "" || !bytes.Contains(page, []byte("The run is finished.")) || !bytes.Contains(again, []byte("The run is finished.")) {
		t.Errorf("the page of %d bytes at %q, and anew %d bytes: %v %v", len(page), kept.Page, len(again), err, readErr)
	}
	link, err := os.ReadFile(filepath.Join(dir, linkFile))
	if err != nil || !strings.HasPrefix(string(link), "atoll:") {
		t.Errorf("link %q, %v", link, err)
	}
	for _, n := range r.NodesReport {
		if _, err := os.Stat(filepath.Join(dir, n.Name, logFile)); err != nil {
			t.Error(err)
		}
	}
}
