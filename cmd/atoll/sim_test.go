package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"atoll/testnet/sim"
)

// A scenario that is saved plays the same history again.
func TestSimReplaysWhatItSaved(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "scenario.json")
	first := SimCmd{Seed: 3, Nodes: 3, Rounds: 10, Faults: "kill 1 @2s, start 1 @3s"}
	s, err := first.scenario(first.Seed)
	if err != nil {
		t.Fatal(err)
	}
	if err := saveScenario(file, s); err != nil {
		t.Fatal(err)
	}
	again, err := (&SimCmd{Scenario: file}).scenario(0)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := sim.Run(s)
	b, errB := sim.Run(again)
	if errA != nil || errB != nil || a.Err != nil || a.History != b.History {
		t.Errorf("histories %s and %s; %v %v %v", a.History, b.History, a.Err, errA, errB)
	}
}

func TestSimRefuses(t *testing.T) {
	t.Parallel()
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []SimCmd{
		{Faults: "kill 1 @2s"},
		{Nodes: 3, Faults: "sneeze"},
		{Scenario: bad},
		{Scenario: bad + ".none"},
	} {
		if _, err := c.scenario(1); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}

// The answer for programs has the digests and the counts by name.
func TestSimResultAsJSON(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(simResult{sim.Result{Seed: 7, Rounds: 3, History: "00"}, 1.5})
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"seed", "rounds", "wall_s", "history_digest", "state_digest", "counts"} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s in %s", name, b)
		}
	}
}

// An interrupt ends a world at once, and is not taken for a broken promise.
func TestSimIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for _, c := range []SimCmd{{Seed: 1, Seeds: 2, Rounds: 5}, {Seed: 1, Seeds: 1, Nodes: 3, Rounds: 5}} {
		if err := c.Run(ctx, nil); !errors.Is(err, errUnfinished) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
