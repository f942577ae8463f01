package thin

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"atoll/testnet/lab/trials"
)

// fake makes this test the program that it plays worlds with, and names the file of the lines that it was called with.
const fake = "ATOLL_THIN_FAKE"

func TestMain(m *testing.M) {
	if path := os.Getenv(fake); path != "" {
		if err := pretend(path, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// pretend answers as atoll does. A run over a link takes twice as long.
func pretend(path string, args []string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintln(f, strings.Join(args, " "))
	if args[0] == "new" {
		fmt.Println(`{"h":12,"fragments":3,"codec":"sparse8","expected":{"link_share":0.5}}`)
		return nil
	}
	o := steadily(1000)
	if slices.Contains(args, "--link") {
		o = steadily(500)
	}
	if slices.Contains(args, "--baseline") {
		return fmt.Errorf("no dp today")
	}
	fmt.Println("what happens")
	return json.NewEncoder(os.Stdout).Encode(o)
}

// steadily is the outcome of four nodes that together fold so many tokens per second for a minute, and end after ten more.
func steadily(perSecond uint64) Outcome {
	bits := 4.2
	o := Outcome{TokensBudget: 60 * perSecond, TokensFolded: 60 * perSecond, WallS: 70, TokensPerS: float64(60*perSecond) / 70, ValBPB: &bits, GoodputUp: &bits}
	for s := range uint64(61) {
		o.Progress = append(o.Progress, Point{float64(s), s * perSecond})
	}
	o.PayloadBytes = 4 * 3 * o.TokensFolded
	o.Nodes = slices.Repeat([]Node{{Share: 0.25, Tokens: 15 * perSecond, TokensFolded: 15 * perSecond, Time: Times{EndingS: 10}}}, 4)
	o.Calibration.Ms = 320
	return o
}

func TestRates(t *testing.T) {
	o := steadily(100)
	for what, c := range map[string]struct{ got, want float64 }{
		"steady":                       {o.steady(), 100},
		"of each node":                 {o.perNode(o.PayloadBytes), 300},
		"between two points":           {o.rate(10.5, 11.25), 100},
		"after the end":                {o.rate(60, 70), 0},
		"of no time":                   {o.rate(5, 5), 0},
		"idle":                         {o.idle(), 10},
		"when half of it was folded":   {o.at(3000), 30},
		"when more than all is folded": {o.at(1e9), 70},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
}

// The median lies among the values, and a target is met exactly within its bounds.
func TestSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-10, 10), 1, 7).Draw(t, "values")
		low := rapid.Float64Range(-10, 10).Draw(t, "low")
		high := rapid.Float64Range(low, 10).Draw(t, "high")
		var turns [][]Figure
		for _, v := range values {
			turns = append(turns, []Figure{{"a", v, trials.Between(low, high)}, {"b", v, trials.Shown}})
		}
		all := summarize(turns)
		a, b := all[0], all[1]
		below, above := 0, 0
		for _, v := range values {
			if v <= a.Median {
				below++
			}
			if v >= a.Median {
				above++
			}
		}
		if 2*below < len(values) || 2*above < len(values) || a.Median < a.Min || a.Median > a.Max {
			t.Fatalf("%v have the median %v", values, a.Median)
		}
		if b.Met != nil || a.Met == nil || *a.Met != (a.Median >= low && a.Median <= high) {
			t.Fatalf("%+v, %+v", a, b)
		}
	})
}

func settingsFor(t *testing.T, only string, runs int) (s Settings, called func() []string) {
	t.Helper()
	dir := t.TempDir()
	calls := filepath.Join(dir, "calls")
	t.Setenv(fake, calls)
	s = Settings{Atoll: os.Args[0], Out: filepath.Join(dir, "out"), Only: strings.Split(only, ","), Runs: runs, Scale: 0.5, Model: "small", Data: "goroot", Log: io.Discard}
	return s, func() []string {
		b, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

func results(t *testing.T, s Settings) (all []Result) {
	t.Helper()
	if err := Run(t.Context(), s, func(r Result) { all = append(all, r) }); err != nil {
		t.Fatal(err)
	}
	return all
}

// find is the summary of a figure of a row.
func find(t *testing.T, r Result, name string) Summary {
	t.Helper()
	i := slices.IndexFunc(r.Figures, func(s Summary) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("%s has no %q: %+v", r.Row, name, r.Figures)
	}
	return r.Figures[i]
}

// Worlds are played in turn, the other way round every second time, with the pace of the first. What is in the file is
// not played again.
func TestRowsArePlayedInTurn(t *testing.T) {
	s, called := settingsFor(t, "thin", 2)
	r := results(t, s)[0]
	if got := find(t, r, "tokens/s of loopback"); got.Median != 0.5 || got.Turns != 2 || *got.Met || r.Met() {
		t.Errorf("%+v", got)
	}
	var linked, paced []int
	for i, line := range called() {
		if strings.Contains(line, "--link") {
			linked = append(linked, i)
		}
		if strings.Contains(line, "--pace 320ms") {
			paced = append(paced, i)
		}
		if !strings.Contains(line, "--tokens 200000") {
			t.Errorf("not half of the tokens: %s", line)
		}
	}
	if !slices.Equal(linked, []int{1, 2}) || !slices.Equal(paced, []int{1, 2, 3}) {
		t.Errorf("links in calls %v, a pace in %v", linked, paced)
	}
	s.Runs = 3
	if got := find(t, results(t, s)[0], "bits per byte of loopback"); got.Turns != 3 || len(called()) != 6 {
		t.Errorf("after a third turn: %+v, %d calls", got, len(called()))
	}
}

// The worlds of a row differ in what the row is about alone, and their figures have the targets that were set.
func TestRowsCompareOneThing(t *testing.T) {
	s, called := settingsFor(t, "home,loss,fall,dp", 1)
	s.Before, s.Only = s.Atoll, append(s.Only, "before")
	for _, r := range results(t, s) {
		if len(r.Figures) == 0 && len(r.Failed) == 0 {
			t.Errorf("%s has no figures", r.Row)
		}
	}
	all := strings.Join(called(), "\n")
	for _, want := range []string{
		"--nodes 3", "--link rate=100mbit,delay=20ms --link 3:up=5mbit,down=100mbit,delay=20ms", "loss=0.1%", "--chaos link 0 rate=5mbit @30s..60s",
		"--link rate=20mbit,delay=40ms --baseline dp", "--link rate=100mbit,delay=40ms --baseline dp",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no world has %q:\n%s", want, all)
		}
	}
}

// A corner asks what to choose, plays that, and compares the shares of the link.
func TestCorners(t *testing.T) {
	s, called := settingsFor(t, "corners", 1)
	s.Pace = 400 * time.Millisecond
	all := results(t, s)
	if len(all) != 10 || len(called()) != 20 {
		t.Fatalf("%d rows, %d calls", len(all), len(called()))
	}
	last := called()[19]
	for _, want := range []string{"--h 12", "--fragments 3", "--codec sparse8", "--link rate=20mbit,delay=40ms", "--pace 400ms", "--nodes 8"} {
		if !strings.Contains(last, want) {
			t.Errorf("no %q in %s", want, last)
		}
	}
	if got := find(t, all[2], "measured of promised"); math.Abs(got.Median-1500/625e3/0.5) > 1e-9 || *got.Met {
		t.Errorf("%s: %+v", all[2].Row, got)
	}
}

// A run without a report is told of, and the row is not met.
func TestRunsThatFail(t *testing.T) {
	s, _ := settingsFor(t, "dp", 1)
	r := results(t, s)[0]
	if r.Met() || len(r.Failed) != 1 || !strings.Contains(r.Text(), "no dp today") {
		t.Errorf("%+v", r)
	}
	s.Only = []string{"before"}
	if err := Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "--before") {
		t.Errorf("without a program of before: %v", err)
	}
	s.Only = []string{"mars"}
	if err := Run(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), `no row "mars"; use thin, home`) {
		t.Errorf("an unknown row: %v", err)
	}
}

// A line that was not written whole is left out.
func TestTrialsAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trials")
	want := Trial{Row: "thin", World: "loopback", Turn: 1, Args: []string{"--nodes", "4"}, Outcome: steadily(3)}
	if err := trials.Append(path, want); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, b[:len(b)/2]...), 0o600)
	}
	got, readErr := trials.Read[Trial](path)
	if err != nil || readErr != nil || len(got) != 1 || got[0].Outcome.steady() != 3 || !got[0].is("thin", World{Name: "loopback", Args: want.Args}, 1) {
		t.Errorf("%+v, %v, %v", got, err, readErr)
	}
}
