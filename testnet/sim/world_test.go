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
func TestPartitionMerges(t *testing.T) {
	t.Parallel()
	w, err := New(withFaults(t, 4, 60, "partition 0+1 @3s, merge @14s"))
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(13_000)
	a, _ := w.nodes[0].machine.View().Digests()
	b, _ := w.nodes[2].machine.View().Digests()
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

// All lose power at once, and each goes on from its own disk with some damaged
// files.
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
	s := withFaults(t, 4, 200, "kill 1 @4s, kill 2 @4s, kill 3 @4s")
	s.CalmMs = 60_000
	w := newWorld(t, s)
	w.RunFor(5000)
	w.stepsAsAlone(t, 15_000)
	if up := len(w.alive()); up != 1 {
		t.Errorf("%d nodes are up", up)
	}
}

// A full disk stops nothing but publishing, and nothing is lost by it.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 3, 60, "disk-full 1 @3s, disk-free 1 @9s"))
	if r.Did.Unwritten == 0 {
		t.Error("no draft was returned")
	}
}

// A lid is closed for some seconds: connections break, and nothing else does.
func TestPause(t *testing.T) {
	t.Parallel()
	play(t, withFaults(t, 3, 80, "pause 1 @3s, resume 1 @15s"))
}

// A node alone closes many rounds while the others, slower and with more tokens,
// close few. It takes their snapshot, and cannot publish until they come to rounds
// that it did not sign. Nobody stops for it meanwhile.
func TestMarkAheadOfTheChain(t *testing.T) {
	t.Parallel()
	s := calmScenario(5, 1000)
	for i := range s.Founders[1:] {
		s.Founders[1+i].Slow = 3
	}
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 8
	s.Faults = []Fault{{At: 3000, Kind: fault.Partition, Others: []int{0}}, {At: 43_000, Kind: fault.Merge}}
	w := newWorld(t, s)
	fast := w.nodes[0]
	w.RunFor(43_000)
	w.until(t, "a snapshot is taken", 20_000, func() bool { return fast.Installs > 0 })
	mark, _ := fast.disk.Mark(0) // which has no errors
	if closed := w.nodes[1].machine.Rounds().Fragment(0).Closed(); mark < closed+10 {
		t.Fatalf("the mark is %d, others closed %d", mark, closed)
	}
	w.stepsAsAlone(t, 10_000)
	w.Finish()
}

// stepsAsAlone lets time pass, in which all nodes that run step at their full rates.
func (w *World) stepsAsAlone(t *testing.T, span Time) {
	t.Helper()
	before := map[*Node]int{}
	for _, n := range w.nodes {
		before[n] = n.Steps
	}
	w.RunFor(span)
	for _, n := range w.nodes {
		if got, want := n.Steps-before[n], int(span/n.stepMs()); n.up && n.paused == 0 && got < want-1 {
			t.Errorf("node %d takes %d steps in %d ms, want %d", n.index, got, span, want)
		}
	}
}

// A peer that hangs with its connections open stalls no step and no round.
func TestHungPeerStallsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withFaults(t, 4, 60, "pause 3 @5s, resume 3 @17s"))
	w.RunFor(5000)
	n := w.nodes[0]
	closed := n.machine.Rounds().Fragment(0).Closed()
	const span = noticeMs - 500
	w.stepsAsAlone(t, span)
	if !n.linked(w.nodes[3]) {
		t.Fatal("the connection is closed already")
	}
	if got, want := n.machine.Rounds().Fragment(0).Closed()-closed, uint32(span/(2*w.s.StepMs*Time(w.s.Params.H))); got < want {
		t.Errorf("%d rounds closed in %d ms, want at least %d", got, span, want)
	}
	w.Finish()
}

// A node that was alone is killed while a round of its own is open.
func TestAloneRestarts(t *testing.T) {
	t.Parallel()
	for seed := range Time(8) {
		s := calmScenario(1, 200)
		s.Faults = []Fault{{At: 6000 + 37*seed, Kind: fault.Kill}, {At: 6100 + 37*seed, Kind: fault.Start}}
		play(t, s)
	}
}

// Nodes join and leave, one comes without its disk, another with a wrong clock.
func TestComingAndGoing(t *testing.T) {
	t.Parallel()
	r := play(t, withFaults(t, 4, 60, "join @3s, leave 1 @5s, skew 2 by -5s @1s, kill 2 @4s, start 2 @5s, lose 3 @6s, slow 0 x3 @6s"))
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
		{func(s *Scenario) { s.Params.CreatedMs = Start + 1 }, "created"},
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

// Founders are one network also where one is lost that was the only way from another one to the rest.
func TestFounderWhoseOnlyContactIsLost(t *testing.T) {
	t.Parallel()
	s := calmScenario(3, 200)
	s.Degree = 1 // each founder names the one before it
	s.Faults, s.CalmMs = []Fault{{At: 1, Kind: fault.Lose, Node: 1}}, 1000
	play(t, s)
}
