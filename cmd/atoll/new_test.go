package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestGenesisOfFlags(t *testing.T) {
	c := NewCmd{
		Name: "mine", Model: "tiny", Tokens: 1000, Seed: 9, Batch: 8, Optimizer: "muon", LR: 1e-3, H: 2000, Fragments: 5, Answerers: 40, Learners: 1000,
		Codec: "bf16", Profile: "lan", Data: someText(t),
	}
	now := time.UnixMilli(1_700_000_000_000)
	g, text, err := c.genesis(now)
	if err != nil {
		t.Fatal(err)
	}
	o := g.Outer
	if g.Name != "mine" || g.Seed != 9 || g.Batch != 8 || g.Inner.LR != 1e-3 || g.Inner.OptimizerName() != "muon" || g.Data.Name != "text.txt" || g.Data.SHA256 != text.SHA256() {
		t.Errorf("genesis %+v", g)
	}
	if o.Budget != 1000 || o.H != 2000 || o.HMin != 500 || o.MaxSteps != 4*25*2000 || o.Fragments != 5 || o.Answerers != 40 || o.Codec != codec.BF16 || o.CreatedMs != now.UnixMilli() {
		t.Errorf("outer %+v", o)
	}
	if o.MaxTokensPerStep != 64*8*128 {
		t.Errorf("MaxTokensPerStep is %d: a larger usual batch raises the largest one", o.MaxTokensPerStep)
	}
	if g.BeatMs != 2000 || g.QuietMs != 6000 || o.GraceMinMs != 200 || o.GraceMaxMs != 30_000 {
		t.Errorf("timing of the lan: %d %d %d %d", g.BeatMs, g.QuietMs, o.GraceMinMs, o.GraceMaxMs)
	}
}

func TestGenesisRefusesFlags(t *testing.T) {
	base := NewCmd{Model: "tiny", Tokens: 1000, Learners: 4, Codec: "int4", Profile: "local", Data: someText(t)}
	for _, c := range []struct {
		change func(*NewCmd)
		want   string
	}{
		{func(c *NewCmd) { c.Tokens = 0 }, "--tokens is 0"},
		{func(c *NewCmd) { c.Batch = -1 }, "--batch is -1"},
		{func(c *NewCmd) { c.Learners = 0 }, "--learners is 0"},
		{func(c *NewCmd) { c.Learners = 1 << 55 }, "--learners is 36028797018963968; use 1 to 1048576"},
		{func(c *NewCmd) { c.H = -1 }, "--H is -1"},
		{func(c *NewCmd) { c.LR = 11 }, "--lr is 11"},
		{func(c *NewCmd) { c.Fragments = -1 }, "--fragments is -1"},
		{func(c *NewCmd) { c.Fragments = 39 }, "only 38 tensors"},
		{func(c *NewCmd) { c.Name = strings.Repeat("x", 201) }, "--name has 201 bytes"},
	} {
		cmd := base
		c.change(&cmd)
		if _, _, err := cmd.genesis(time.UnixMilli(0)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
