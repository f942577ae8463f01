package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"atoll/node/genesis"
	"atoll/optimizer/outer/tune"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
)

// someText is a file with text for small models.
func someText(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 400)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func tokens(n amount) *amount { return &n }

// made is the genesis of flags.
func made(c *NewCmd, now time.Time) (genesis.Genesis, error) {
	if err := c.check(); err != nil {
		return genesis.Genesis{}, err
	}
	s, _, err := c.spec(now)
	if err != nil {
		return genesis.Genesis{}, err
	}
	g, _, err := s.Make()
	return g, err
}

func TestGenesisOfFlags(t *testing.T) {
	c := NewCmd{
		Name: "mine", runFlags: runFlags{Model: "tiny", Seed: 9, Batch: 8, Optimizer: "muon", LR: 1e-3, H: 2000, Fragments: 5, Codec: "sparse8"},
		Tokens: tokens(1000), LearnersPerRound: 40, Learners: 1000, Profile: "lan", Data: someText(t),
	}
	now := time.UnixMilli(1_700_000_000_000)
	text, err := corpus.Open(c.Data)
	if err != nil {
		t.Fatal(err)
	}
	g, err := made(&c, now)
	if err != nil {
		t.Fatal(err)
	}
	o := g.OuterParams()
	if g.Name != "mine" || g.Seed != 9 || g.Batch != 8 || g.Inner.LR != 1e-3 || g.Inner.Optimizer != "muon" || g.Data.Name != "text.txt" || g.Data.SHA256 != text.SHA256() {
		t.Errorf("genesis %+v", g)
	}
	if o.Budget != 1000 || o.H != 2000 || o.HMin != 500 || o.MaxSteps != 4*25*2000 || o.Fragments != 5 || o.LearnersPerRound != 40 || o.Codec != codec.Sparse8 || o.CreatedMs != now.UnixMilli() {
		t.Errorf("outer %+v", o)
	}
	if o.MaxTokensPerStep != 64*8*128 {
		t.Errorf("MaxTokensPerStep is %d: a larger usual batch raises the largest one", o.MaxTokensPerStep)
	}
	if g.WayMs != 10 || o.GraceMinMs != 50 || o.GraceMaxMs != 120_000 || o.MinRoundMs != 20 {
		t.Errorf("timing of the lan: %d %d %d", g.WayMs, o.GraceMinMs, o.GraceMaxMs)
	}
}

// A run that nobody gave a budget is not short, whatever it is of.
func TestDefaultBudgetIsNotShort(t *testing.T) {
	for _, flags := range []string{
		"", "--model small", "--learners 1", "--learners 2", "--learners 64", "--h 100", "--batch 1", "--codec sparse",
		"--bandwidth 20mbit --step 50ms", "--bandwidth 2mbit --learners 8 --step 50ms",
	} {
		line := append(strings.Fields("new --json "+filepath.Join(t.TempDir(), "run")), strings.Fields(flags)...)
		code, stdout, stderr := typed(t, line...)
		var answer created
		if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != exitDone {
			t.Errorf("new %s: exit code %d, %v: %s", flags, code, err, stderr)
		}
		if answer.Length.Short || answer.Budget < tune.EnoughTokens*uint64(answer.Params) {
			t.Errorf("new %s: a budget of %d tokens: %+v", flags, answer.Budget, answer.Length)
		}
	}
}

// What commands have in common is typed and preset alike.
func TestFlagsInCommon(t *testing.T) {
	for _, line := range []string{"new --h=-1", "testnet --h=-1"} {
		if code, _, stderr := typed(t, strings.Fields(line)...); code != exitUsage || !strings.Contains(stderr, "--h is -1") {
			t.Errorf("%s: exit code %d: %s", line, code, stderr)
		}
	}
	var parsed commandLine
	parser, err := kong.New(&parsed)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"new", "testnet"} {
		if _, err := parser.Parse([]string{name}); err != nil {
			t.Fatal(err)
		}
	}
	if parsed.New.runFlags != parsed.Testnet.runFlags || parsed.New.Optimizer != auto {
		t.Errorf("new has %+v, testnet %+v", parsed.New.runFlags, parsed.Testnet.runFlags)
	}
}

func TestGenesisRefusesFlags(t *testing.T) {
	base := NewCmd{runFlags: runFlags{Model: "tiny", Codec: "int4"}, Tokens: tokens(1000), Learners: 4, Profile: "local", Data: someText(t)}
	for _, c := range []struct {
		change func(*NewCmd)
		want   string
	}{
		{func(c *NewCmd) { c.Tokens = tokens(0) }, "--tokens is 0"},
		{func(c *NewCmd) { c.Batch = -1 }, "--batch is -1"},
		{func(c *NewCmd) { c.Learners = 0 }, "--learners is 0"},
		{func(c *NewCmd) { c.Learners = 1 << 55 }, "--learners is 36028797018963968; use 1 to 1048576"},
		{func(c *NewCmd) { c.H = -1 }, "--h is -1"},
		{func(c *NewCmd) { c.LR = 11 }, "--lr is 11"},
		{func(c *NewCmd) { c.Fragments = -1 }, "--fragments is -1"},
		{func(c *NewCmd) { c.Fragments = 39 }, "only 38 tensors"},
		{func(c *NewCmd) { c.Name = strings.Repeat("x", 201) }, "name has 201 bytes"},
	} {
		cmd := base
		c.change(&cmd)
		if _, err := made(&cmd, time.UnixMilli(0)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}

func TestFileName(t *testing.T) {
	if got := fileName("a run/of mine"); got != "a-run-of-mine" {
		t.Error(got)
	}
}
