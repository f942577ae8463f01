package testnet

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/store"
)

// long says whether tests may take minutes.
func long() bool { return os.Getenv("ATOLL_LONG") != "" }

// chaosWorld is a toy world of four that steps at a fixed pace, so that a run of
// some seconds has some seconds' worth of rounds.
func chaosWorld(t *testing.T, tokens uint64, chaos string) Config {
	t.Helper()
	if testing.Short() {
		t.Skip("starts processes that train for some time")
	}
	if !long() { // which compares rates
		t.Parallel() // such nodes rest most of the time
	}
	cfg := toyWorld(t)
	cfg.Binary = buildAtoll(t)
	cfg.Nodes, cfg.Tokens, cfg.Pace, cfg.Chaos = 4, tokens, toyPace, chaos
	cfg.Timeout = 10 * time.Minute
	return cfg
}

// toyPace is the pace of the toy learners: 64 tokens a step, so four of them make
// about toyRate tokens a second.
const (
	toyPace = 40 * time.Millisecond
	toyRate = 4 * 64 * int(time.Second/toyPace)
)

// runWorld runs a world to its end, where all checks must have passed.
func runWorld(t *testing.T, cfg Config) Report {
	t.Helper()
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, cfg.Out)
	}
	for _, c := range r.Checks {
		if !c.Passed {
			t.Errorf("%s: %s", c.Name, c.Detail)
		}
	}
	if t.Failed() {
		t.Logf("%s", cfg.Out)
	}
	return r
}

// check finds a check of a report.
func (r Report) check(t *testing.T, name string) Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("the report has no check %q", name)
	}
	return r.Checks[i]
}

// playedByChaos skips a world of half a minute of all cores, which the stage chaos of .ci/run plays.
func playedByChaos(t *testing.T) {
	t.Helper()
	if !long() && os.Getenv("ATOLL_CHAOS") == "" {
		t.Skip("takes half a minute of all cores: ATOLL_CHAOS=1 runs it")
	}
}

// TestEverydayLife is what happens to a volunteer run: one joins, one is killed
// and comes back, one sleeps, one leaves for good, and a bit flips in the memory of
// one, which mends itself. Others are slow, far and lie meanwhile. Only the kill loses tokens.
func TestEverydayLife(t *testing.T) {
	chaos, tokens := "slow 0 x2 @3s, link 2 delay=20ms @3s, attack inverted-gradient 3 @4s, join @4s, corrupt 0 @5s, kill 1 @7s, start 1 @9s, pause 2 @8s, resume 2 @12s, leave 3 @14s", 20*toyRate
	if long() {
		chaos, tokens = "join @10s, corrupt 0 @12s, kill 1 @20s, start 1 @30s, pause 2 @35s, resume 2 @95s, leave 3 @100s", 120*toyRate
	}
	r := runWorld(t, chaosWorld(t, uint64(tokens), chaos))
	if len(r.RecoverS) != 1 || len(r.JoinS) != 1 || len(r.WakeS) != 1 {
		t.Errorf("recovered in %v, joined in %v, woke in %v", r.RecoverS, r.JoinS, r.WakeS)
	}
	if c := r.check(t, "damage noticed"); !strings.Contains(c.Detail, "node0") {
		t.Error(c.Detail)
	}
	for _, n := range r.NodesReport {
		if lost := n.TokensLost > 0; lost && n.Name != "node1" {
			t.Errorf("%s lost %d tokens and was not killed", n.Name, n.TokensLost)
		}
	}
}

// TestPowerCut kills all nodes at once: the run goes on from where the disks are.
func TestPowerCut(t *testing.T) {
	playedByChaos(t)
	r := runWorld(t, chaosWorld(t, uint64(20*toyRate),
		"kill 0 @12s, kill 1 @12s, kill 2 @12s, kill 3 @12s, start 0 @14s, start 1 @14s, start 2 @15s, start 3 @16s"))
	if len(r.RecoverS) != 4 || r.Kills != 4 {
		t.Errorf("%d kills, recovered in %v", r.Kills, r.RecoverS)
	}
}

// TestTheLastOneGoesOn kills all but one for a while. It trains on at full rate,
// by its own step log, and the others find the same chain when they are back.
func TestTheLastOneGoesOn(t *testing.T) {
	if !long() {
		t.Skip("compares rates, for which it needs a minute: set ATOLL_LONG=1")
	}
	cfg := chaosWorld(t, uint64(50*toyRate),
		"kill 1 @20s, kill 2 @20s, kill 3 @20s, start 1 @40s, start 2 @40s, start 3 @41s")
	r := runWorld(t, cfg)
	if len(r.RecoverS) != 3 {
		t.Errorf("recovered in %v", r.RecoverS)
	}
	began, err := firstStep(cfg.Dir + "/node0")
	if err != nil {
		t.Fatal(err)
	}
	rate := func(from, to time.Duration) float64 {
		n := 0
		err := store.EachStep(cfg.Dir+"/node0", func(s store.Step) {
			if at := time.UnixMilli(s.EndMs).Sub(began); at >= from && at < to {
				n++
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return float64(n) / (to - from).Seconds()
	}
	together, alone := rate(8*time.Second, 18*time.Second), rate(24*time.Second, 38*time.Second)
	t.Logf("%.1f steps a second with three others, %.1f alone", together, alone)
	if alone < 0.8*together {
		t.Error("the last one slowed down")
	}
}

// firstStep is when a node took its first step.
func firstStep(dir string) (at time.Time, err error) {
	err = store.EachStep(dir, func(s store.Step) {
		if at.IsZero() {
			at = time.UnixMilli(s.EndMs)
		}
	})
	return at, err
}

// TestHalvesReconcile parts the run in two halves that both train. Inside the window
// both keep all that either did.
func TestHalvesReconcile(t *testing.T) {
	playedByChaos(t)
	chaos, tokens := "partition 0,1|2,3 @6s..14s", 22*toyRate
	if long() {
		chaos, tokens = "partition 0,1|2,3 @20s..80s", 120*toyRate
	}
	r := runWorld(t, chaosWorld(t, uint64(tokens), chaos))
	if len(r.MergeS) != 1 || r.Partitions != 1 {
		t.Errorf("%d partitions, merged in %v", r.Partitions, r.MergeS)
	}
	if r.TokensDiscarded > r.TokensFolded/100 {
		t.Errorf("%d tokens of %d discarded by a partition inside the window", r.TokensDiscarded, r.TokensFolded)
	}
}

// TestOneChainWins parts the run for longer than the window. The chain of one
// side becomes the chain of the run, and the report says whose work the other
// one was.
func TestOneChainWins(t *testing.T) {
	playedByChaos(t)
	cfg := chaosWorld(t, uint64(26*toyRate), "partition 0,1,2|3 @6s..19s")
	cfg.H, cfg.Window = 12, 16 // a quarter of a second a round: the window is four
	r := runWorld(t, cfg)
	if r.TokensDiscarded == 0 || r.NodesReport[3].TokensDiscarded == 0 {
		t.Errorf("nothing discarded: %+v", r.NodesReport)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "discarded") {
		t.Errorf("%v, the report does not list what was discarded:\n%s", err, text.String())
	}
}

// TestRandomChaos is ten minutes of everything.
func TestRandomChaos(t *testing.T) {
	if !long() {
		t.Skip("takes ten minutes: set ATOLL_LONG=1; .ci/run has two of them")
	}
	cfg := chaosWorld(t, uint64(500*toyRate), "random every 8s")
	cfg.Seed, cfg.Timeout = 7, 30*time.Minute
	runWorld(t, cfg)
}

// A node that is still paused when the run ends keeps no world waiting; the plan
// says what was never done.
func TestRunEndsWhileOneIsPaused(t *testing.T) {
	cfg := chaosWorld(t, uint64(4*toyRate), "pause 2 @5s, resume 2 @10m")
	cfg.Timeout = 3 * time.Minute
	r, err := Run(context.Background(), cfg)
	if err != nil {
		t.Fatalf("%v\n%s", err, cfg.Out)
	}
	if c := r.check(t, "chaos as planned"); c.Passed || !strings.Contains(c.Detail, "resume 2") {
		t.Errorf("%+v", c)
	}
}
