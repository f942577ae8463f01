package sim

import (
	"atoll/testnet/fault"
	"math"
	"strings"
	"testing"
)

// withFaults is a world of n learners to which these faults happen.
func withFaults(t *testing.T, n int, rounds uint32, spec string) Scenario {
	t.Helper()
	faults, err := ParseFaults(spec, n)
	if err != nil {
		t.Fatal(err)
	}
	return Small(n, rounds, faults, 7)
}

// Both sides of a partition go on, and are one chain after it.
func TestPartitionHeals(t *testing.T) {
	t.Parallel()
	w, err := New(withFaults(t, 4, 60, "partition 0+1 @3s, merge @14s"))
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(13_000)
	a, _ := w.nodes[0].machine.Digests()
	b, _ := w.nodes[2].machine.Digests()
	if a == b {
		t.Fatal("the partition parted nothing")
	}
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
}

// What nothing gets through in one direction only is a partition for streams and
// half of one for gossip; both sides go on.
func TestOneWayCut(t *testing.T) {
	t.Parallel()
	play(t, withFaults(t, 4, 60, "cut 0>1+2+3 @3s, mend @14s"))
}

// A node that is killed goes on from its disk; what it had published stays.
func TestCrashAndRestart(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 3, 60, "kill 1 @4s, start 1 @7s, kill 2 @9s, start 2 @9500ms"))
	if r.Counts.Faults[fault.Start] != 2 {
		t.Errorf("%d restarts", r.Counts.Faults[fault.Start])
	}
}

// All lose power at once, and each goes on from its own disk, of which some files
// are damaged.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 3, 60, "power-cut 0 @6s, power-cut 1 @6s, power-cut 2 @6s, start 0 @7s, start 1 @7s, start 2 @8s"))
	if r.Counts.FilesDamaged == 0 {
		t.Error("no file was damaged")
	}
}

// With every other node dead, inner steps go on at full rate.
func TestOneSurvivorNeverWaits(t *testing.T) {
	t.Parallel()
	w, err := New(withFaults(t, 4, 200, "kill 1 @4s, kill 2 @4s, kill 3 @4s"))
	if err != nil {
		t.Fatal(err)
	}
	w.s.CalmMs = 60_000
	w.RunFor(5000)
	n, before := w.nodes[0], w.nodes[0].Steps
	const span = 15_000
	w.RunFor(span)
	if got, want := n.Steps-before, int(span/w.s.StepMs); w.Now() < Start+w.s.CalmMs && got < want {
		t.Errorf("%d steps in %d ms, want %d", got, span, want)
	}
}

// A full disk stops nothing but publishing, and nothing is lost by it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 3, 60, "disk-full 1 @3s, disk-free 1 @9s"))
	if r.Did.TakenBack == 0 {
		t.Error("no draft was taken back")
	}
}

// A lid is closed for some seconds: connections break, and nothing else does.
func TestPause(t *testing.T) {
	t.Parallel()
	play(t, withFaults(t, 3, 80, "pause 1 @3s, resume 1 @15s"))
}

// Nodes join and leave, one comes without its disk, another with a wrong clock.
func TestComingAndGoing(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 4, 60, "join @3s, leave 1 @5s, skew 2 x-5000 @1s, kill 2 @4s, start 2 @5s, lose 3 @6s, slow 0 x3 @6s"))
	if r.Nodes != 5 {
		t.Errorf("%d nodes", r.Nodes)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	for _, c := range []struct {
		spoil func(*Scenario)
		want  string
	}{
		{func(s *Scenario) { s.Founders = nil }, "founders"},
		{func(s *Scenario) { s.StepMs = 0 }, "step"},
		{func(s *Scenario) { s.LimitMs = 0 }, "limit"},
		{func(s *Scenario) { s.Link.Loss = 1 }, "loss"},
		{func(s *Scenario) { s.Params.CreatedMs = 1 }, "created"},
		{func(s *Scenario) { s.Params.Fragments = 6 }, "Fragments"},
		{func(s *Scenario) { s.Faults = []Fault{{Kind: "sneeze"}} }, "sneeze"},
	} {
		s := calmScenario(2, 100)
		c.spoil(&s)
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want a word about %s", err, c.want)
		}
	}
}

// Watching a world and asking it for reports leaves its history as it is, and
// the columns of its nodes add up to what they trained.
func TestReportsChangeNothing(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 3, 30, "kill 1 @4s, start 1 @6s, partition 0 @8s, merge @11s")
	want := play(t, s)
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	looks, apart := 0, 0
	w.Watch(100, func() {
		looks++
		w.Reports()
		if !w.Together() {
			apart++
		}
	})
	w.Finish()
	if got := w.Result(); got.History != want.History || looks < int(got.VirtualMs/100)-1 || apart == 0 {
		t.Errorf("history %s after %d looks, %d apart, want %s", got.History, looks, apart, want.History)
	}
	reports, whole := w.Reports()
	for _, r := range reports {
		sum := r.Tokens.Folded + r.Tokens.Pending + r.Tokens.InFlight + r.Tokens.Discarded + r.Tokens.Lost
		if !whole || math.Abs(sum-float64(r.Trained)) > 1 {
			t.Errorf("node %d trained %d tokens, its columns are %+v", r.Index, r.Trained, r.Tokens)
		}
	}
	if r := reports[1]; r.Contributed < 6000 || r.Contributed > 11_000 {
		t.Errorf("a node restarted at 6 s contributes at %d ms", r.Contributed)
	}
}
