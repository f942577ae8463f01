package testnet

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
	"atoll/node/trace"
)

func someReport() Report {
	return Report{
		Setup:   Setup{Baseline: "atoll", Nodes: 3, Model: "tiny", Params: 824448, Optimizer: "adamw", Seed: 1, Data: "Opticks.txt", SHA256: "ab", Dir: "DIR", DirBytes: 30 << 20, Temporary: true, Run: "cd"},
		Tokens:  Tokens{TokensBudget: 3_000_000, TokensTrained: 3_010_000, TokensFolded: 3_002_000, TokensDiscarded: 5000, TokensUnpublished: 2000, TokensLost: 1000},
		Outcome: Outcome{WallS: 200, TokensPerS: 15010, EndIdleS: measured(1.5), EndDeltasS: measured(0.9), ValBPB: measured(2.1), TrainLoss: measured(1.4)},
		Ledger:  Ledger{Rounds: 480, Deltas: 1900, Late: 3},
		Traffic: Traffic{BytesSent: 1, BytesReceived: 250e6, BytesPerToken: 83.3, Amplification: measured(1.02), Goodput: measured(0.91), GoodputUp: measured(0.95)},
		Faults:  Faults{Joins: 1, Kills: 1, JoinS: []float64{3.21}, RecoverS: []float64{2.5}},
		Digests: Digests{ChainDigest: "c0", StateDigest: "d0", DigestsEqual: true, ChainEqual: true},
		Trace: &trace.Shares{
			Deltas: 3800, Late: 3, ByAuthor: 2600, Requests: 4100, Busy: 290, Failed: 10, MeanS: 1.1, MedianS: 0.98, P95S: 2.4,
			Stages: []trace.StageSum{{Until: "announced", Share: 0.1, MedianS: 0.1, P95S: 0.2}, {Until: "heard", Share: 0.9, MedianS: 0.88, P95S: 2.2}},
			Own:    map[trace.End]int{trace.Adopted: 1900, trace.Returned: 2}, Others: map[trace.End]int{trace.Adopted: 3800},
		},
		Checks:      []Check{{"one chain", true, "3 nodes hold c0"}, {"one digest", false, "they differ"}},
		Calibration: Calibration{StepMs: 25, Cores: 2, Utilisation: 0.8, PaceMs: 47, Note: "calibrated"},
		NodesReport: []NodeReport{
			{Name: "node0", ID: "aa", Role: "learner", End: "done", Divisor: 1, Tokens: 2_000_000, TokensFolded: 1_990_000, Share: 0.66,
				TokensPerS: measured(9000.), Time: &status.TimeAccount{Step: 90, Paced: 95, Total: 200}, RSSBytes: measured(uint64(150e6))},
			{Name: "node1", ID: "bb", Role: "learner", End: "killed", Divisor: 2.5, Tokens: 12},
			{Name: "guest 0102030405", ID: "cc", Role: "learner", Tokens: 1_000_000, Share: 0.34},
		},
	}
}

// fields are the names of a JSON object, sorted.
func fields(t *testing.T, v any) []string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// documented are the names that the report promises.
var documented = []string{
	"arm", "nodes", "model", "params", "optimizer", "seed", "data_sha256", "tokens_trained", "tokens_folded", "tokens_returned", "tokens_discarded",
	"tokens_lost", "wall_s", "tokens_per_s", "val_bpb", "train_loss", "rounds", "deltas", "late", "refused", "bytes_sent",
	"bytes_received", "bytes_per_token", "payload_amplification", "goodput", "goodput_up", "joins", "leaves", "kills", "join_s",
	"recover_s", "chain_digest", "state_digest", "digests_equal", "chain_equal", "trace", "checks", "calibration", "nodes_report",
}

func TestReportNames(t *testing.T) {
	have := fields(t, someReport())
	for _, name := range documented {
		if !slices.Contains(have, name) {
			t.Errorf("the report has no %q", name)
		}
	}
	row := fields(t, someReport().NodesReport[0])
	for _, name := range []string{"id", "role", "tokens", "share", "tokens_per_s", "time", "rss_bytes"} {
		if !slices.Contains(row, name) {
			t.Errorf("a node's report has no %q", name)
		}
	}
}

func TestReportLeavesOutWhatWasNotMeasured(t *testing.T) {
	have := fields(t, Report{})
	for _, name := range []string{"val_bpb", "train_loss", "payload_amplification", "goodput", "goodput_up", "join_s", "recover_s"} {
		if slices.Contains(have, name) {
			t.Errorf("an empty report has %q", name)
		}
	}
}

// The check says how long a learner waited, and how long is too long.
func TestCheckWaiting(t *testing.T) {
	for waiting, want := range map[float64]string{0.03: "a learner waited for 0.03 % of its time at most; 2 % are allowed", 3: "a learner waited for 3.00 % of its time at most; 2 % are allowed"} {
		got := checkWaiting(Report{NodesReport: []NodeReport{{Time: &status.TimeAccount{Waiting: waiting, Total: 100}}, {}}})
		if got.Detail != want || got.Passed != (waiting < 2) {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

func TestReportPassed(t *testing.T) {
	r := someReport()
	if r.Passed() {
		t.Error("a report with a failed check passed")
	}
	r.Checks[1].Passed = true
	if !r.Passed() {
		t.Error("a report without failed checks did not pass")
	}
}

// pacedWorld is two nodes; the second joined after 40 of 100 s and left
// after 80.
func pacedWorld() (*world, account, time.Time) {
	began := time.Unix(1_000_000, 0)
	at := func(s int) time.Time { return began.Add(time.Duration(s) * time.Second) }
	stays := &member{planned: at(0), lives: []*life{{
		began: at(0), ended: at(102), seen: true, last: status.Snapshot{Time: status.TimeAccount{Step: 30, Paced: 60}},
	}}}
	leaves := &member{index: 1, joiner: true, planned: at(40), lives: []*life{{
		began: at(40), ended: at(80), asked: true, seen: true, last: status.Snapshot{JoinS: 5, Time: status.TimeAccount{Step: 30}},
	}}}
	w := &world{began: began, members: []*member{stays, leaves}}
	a := account{chain: &chain{params: []uint64{1}}, entries: []entry{
		{trained: 900, folded: []uint64{900}}, {trained: 300, folded: []uint64{150}},
	}}
	return w, a, at(100)
}

func TestGoodput(t *testing.T) {
	w, a, end := pacedWorld()
	var r Report
	r.TokensFolded = 1050
	w.fillTimes(&r, a, end)
	// 90 s and half of 30 s, over 100 s and 40 s.
	if r.Goodput == nil || *r.Goodput != 105.0/140 || *r.GoodputUp != 105.0/140 {
		t.Errorf("goodput %v, up %v", r.Goodput, r.GoodputUp)
	}
	if r.WallS != 100 || r.TokensPerS != 10.5 {
		t.Errorf("%v s, %v tokens/s", r.WallS, r.TokensPerS)
	}
	if !slices.Equal(r.JoinS, []float64{5}) || r.RecoverS != nil {
		t.Errorf("joined in %v, recovered in %v", r.JoinS, r.RecoverS)
	}
}

func TestGoodputCountsDeadTime(t *testing.T) {
	w, a, end := pacedWorld()
	l := w.members[1].lives[0]
	l.asked, l.killed = false, true // nobody asked it to go: the time it was dead is the run's loss
	var r Report
	w.fillTimes(&r, a, end)
	if *r.Goodput != 105.0/160 || *r.GoodputUp != 105.0/140 {
		t.Errorf("goodput %v, up %v", *r.Goodput, *r.GoodputUp)
	}
}

func TestSharesCheck(t *testing.T) {
	for _, c := range []struct {
		shares []float64
		passed bool
	}{
		{[]float64{0.36, 0.37, 0.18, 0.09}, true},
		{[]float64{0.30, 0.40, 0.20, 0.10}, false},
	} {
		w := &world{}
		r := Report{Outcome: Outcome{WallS: 60}}
		for i, d := range []float64{1, 1, 2, 4} {
			w.members = append(w.members, &member{index: i, divisor: d})
			r.NodesReport = append(r.NodesReport, NodeReport{Share: c.shares[i]})
		}
		got := w.checkShares(r)
		if got == nil || got.Passed != c.passed {
			t.Errorf("%v: %+v", c.shares, got)
		}
		r.WallS = 3
		if w.checkShares(r) != nil {
			t.Error("shares of a run of seconds are compared")
		}
	}
}

// A program that was late or slow has the share that it trained; one whose work is left out has
// not.
func TestSharesOfPrograms(t *testing.T) {
	w := &world{members: []*member{{divisor: 1}, {index: 1, divisor: 1}}, learners: choices{{value: "torch"}}}
	r := Report{Outcome: Outcome{WallS: 60}, NodesReport: []NodeReport{{Share: 0.8, Tokens: 8000}, {Share: 0.2, Tokens: 2000}}}
	if got := w.checkShares(r); got == nil || !got.Passed || !strings.Contains(got.Detail, "node1 20.0 %, expected 20.0 %") {
		t.Errorf("%+v", got)
	}
	r.NodesReport[1].Tokens = 3000
	if got := w.checkShares(r); got.Passed {
		t.Errorf("%+v", got)
	}
}

func TestSharesOfABusyMachineAreNotJudged(t *testing.T) {
	w := &world{members: []*member{{divisor: 1}, {index: 1, divisor: 4}}}
	r := Report{Outcome: Outcome{WallS: 60}, NodesReport: []NodeReport{
		{Share: 0.6, Time: &status.TimeAccount{Step: 50, Paced: 2}},
		{Share: 0.4, Time: &status.TimeAccount{Step: 20, Paced: 30}}, // the slow one holds its pace for long
	}}
	if got := w.checkShares(r); !got.Passed || !strings.Contains(got.Detail, "too busy") {
		t.Errorf("%+v", got)
	}
	r.NodesReport[0].Time.Paced = 3
	if got := w.checkShares(r); got.Passed {
		t.Errorf("%+v", got)
	}
}

// For a node of two processes every column is the sum, the column of its sleep
// too.
func TestTimeAccountAddsUp(t *testing.T) {
	one := status.TimeAccount{Step: 1, Paced: 2, Publish: 3, Adopt: 4, Save: 5, Joining: 6, Ending: 7, Asleep: 8, Waiting: 9, Gone: 10, Paused: 11, Total: 66}
	m := &member{lives: []*life{{last: status.Snapshot{Time: one}}, {last: status.Snapshot{Time: one}}}}
	want := status.TimeAccount{Step: 2, Paced: 4, Publish: 6, Adopt: 8, Save: 10, Joining: 12, Ending: 14, Asleep: 16, Waiting: 18, Gone: 20, Paused: 22, Total: 132}
	if got := *m.timeAccount(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
