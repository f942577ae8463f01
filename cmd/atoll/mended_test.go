package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/inspect"
	"atoll/optimizer/outer/tune"
	"atoll/optimizer/trainer/corpus"
)

// All is well only where somebody reaches the node.
func TestDoctorsLastLine(t *testing.T) {
	for _, c := range []struct {
		found inspect.Checkup
		want  string
	}{
		{inspect.Checkup{Reach: inspect.ReachOpen}, "all is well"},
		{inspect.Checkup{}, "all is well"}, // of a learner alone
		{inspect.Checkup{Reach: inspect.ReachHelped}, "through a relay"},
		{inspect.Checkup{Reach: inspect.ReachNear, Dir: "x", Running: true}, "only this node's own machine or network"},
		{inspect.Checkup{Reach: inspect.ReachUnknown, Dir: "x"}, "start it and ask again"},
		{inspect.Checkup{Reach: inspect.ReachUnknown}, "is not known"},
		{inspect.Checkup{Reach: inspect.ReachNobody, Findings: []inspect.Finding{{Name: "reach"}}}, "1 thing needs attention"},
	} {
		if got := checkupEnd(c.found); !strings.Contains(got, c.want) || c.want != "all is well" && strings.Contains(got, "all is well") {
			t.Errorf("%+v: %q, want %q", c.found, got, c.want)
		}
	}
}

// What new makes by default is what its own advice calls good: long enough, and of a text that is not worn.
func TestNewByDefaultIsGood(t *testing.T) {
	code, stdout, stderr := typed(t, "new", "--json", t.TempDir()+"/x")
	var a created
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitDone {
		t.Fatalf("exit code %d, %v, %s", code, err, stderr)
	}
	if a.Length.Short || a.Length.Worn() {
		t.Errorf("%+v", a.Length)
	}
}

func TestWornTextIsAWarning(t *testing.T) {
	a := created{Run: "x", Codec: "int4", Budget: 200e6}
	for passes, want := range map[float64]bool{39: false, 40: false, 41: true, 1958: true} {
		a.Length = tune.Length{Passes: passes}
		var b bytes.Buffer
		if err := a.print(&cli.Console{Out: &b, Err: &b}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(b.String(), "WARNING: read "); got != want {
			t.Errorf("%v passes: %s", passes, b.String())
		}
	}
	if got := wornText(tune.Length{Passes: 1958}, 200e6); !strings.Contains(got, "read 1958 times over") || !strings.Contains(got, "Pass 5.00M tokens of text or more with --data") {
		t.Error(got)
	}
}

// Eval reads a sample of a large text and all of a small one, and says which.
func TestEvalTakesASample(t *testing.T) {
	for _, c := range []struct {
		text   int
		all    bool
		scored int
		want   string
	}{
		{3_000_000, false, evalSample, "a sample of 131072 of the 299999 held-out bytes of x; --all scores them all"},
		{3_000_000, true, 299_999, "all 299999 held-out bytes of x"},
		{1_000_000, false, 99_999, "all 99999 held-out bytes of x"},
	} {
		e := evaluation{Data: "x"}
		data := corpus.New("x", bytes.Repeat([]byte("light "), c.text/6))
		windows := (&EvalCmd{All: c.all}).windows(data, 128, &e)
		targets := 0
		for _, w := range windows {
			targets += len(w) - 1
		}
		if targets != c.scored || e.Bytes != c.scored || e.text() != c.want {
			t.Errorf("%d bytes, all %v: %d targets, %+v, %q", c.text, c.all, targets, e, e.text())
		}
	}
}

// A folder that is written is measured until it is there.
func TestWritingEnds(t *testing.T) {
	var errs bytes.Buffer
	stop := writing(&cli.Console{Err: &errs}, t.TempDir(), 1)
	stop()
	if errs.Len() > 0 {
		t.Errorf("short work is silent: %s", errs.String())
	}
}
