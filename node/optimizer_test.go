package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/status"
	"atoll/optimizer"
)

// began lists what a node said of a checkpoint that it could not use.
func began(s status.Snapshot) (said []string) {
	for _, e := range s.Events {
		if strings.Contains(e.Text, "begins anew") {
			said = append(said, e.Text)
		}
	}
	return said
}

// A run with Muon is taken up where it stopped, momentum and all. A checkpoint of
// the other optimizer is no ground to go on from: the node says so and begins
// with fresh moments.
func TestMuonAndItsCheckpoint(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	adamw, muon := toyGenesis(1<<40), toyGenesis(1<<40)
	muon.Inner.Optimizer = optimizer.NameMuon
	stepped := func(from status.Snapshot) func(status.Snapshot) bool {
		return func(s status.Snapshot) bool { return s.Step > from.Step+2 }
	}
	run := func(cfg Config, from status.Snapshot) status.Snapshot {
		cfg.Data, cfg.Pace = text, slowPace
		m := launch(t, cfg)
		m.until("a few steps", stepped(from))
		return m.leave()
	}
	other, cfg := Config{Dir: t.TempDir(), Genesis: adamw.Encode()}, Config{Dir: t.TempDir(), Genesis: muon.Encode()}
	if s := run(other, status.Snapshot{}); s.Optimizer != optimizer.NameAdamW {
		t.Errorf("the status says %q", s.Optimizer)
	}
	first := run(cfg, status.Snapshot{})
	if first.Optimizer != optimizer.NameMuon {
		t.Errorf("the status says %q", first.Optimizer)
	}
	cfg.Genesis = nil
	again := run(cfg, first)
	if said := began(again); said != nil {
		t.Errorf("after a restart: %q", said)
	}
	foreign, err := os.ReadFile(filepath.Join(other.Dir, "checkpoint"))
	if err == nil {
		err = os.WriteFile(filepath.Join(cfg.Dir, "checkpoint"), foreign, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const want = "it is of adamw and this run trains with muon: start without it"
	if said := began(run(cfg, again)); len(said) != 1 || !strings.Contains(said[0], want) {
		t.Errorf("with the other's checkpoint: %q, want %q", said, want)
	}
}
