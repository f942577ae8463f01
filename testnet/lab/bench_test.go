package main

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/testnet/lab/program"
)

func TestThreadCounts(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for _, c := range []struct {
		list, before, want []int
	}{
		{nil, nil, []int{cores}},
		{[]int{3, 1}, []int{1}, []int{3, 1}},
		{[]int{0}, nil, []int{cores}},
		{nil, []int{cores}, []int{cores}}, // not twice
	} {
		got, err := threadCounts(c.list, c.before...)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v before %v: %v, %v; want %v", c.before, c.list, got, err, c.want)
		}
	}
	if _, err := threadCounts([]int{1, -2}); !errors.Is(err, program.ErrUsage) {
		t.Errorf("error %v", err)
	}
}

func TestModelNames(t *testing.T) {
	if got := strings.Join(modelNames([]string{"x.json", "all"}), " "); got != "x.json tiny small base" {
		t.Errorf("models %s", got)
	}
}

// Steps are those of runs, unless somebody asks for another optimizer.
func TestDefaultOptimizer(t *testing.T) {
	for c, want := range map[*BenchStepCmd]string{
		{}: "muon", {Optimizer: "auto"}: "muon", {Optimizer: "adamw"}: "adamw", {Optimizer: "auto", Compare: compareTorch}: "adamw",
	} {
		if got := c.optimizer(); got != want {
			t.Errorf("%+v: %s, want %s", c, got, want)
		}
	}
}

// Only who waits hears what is measured.
func TestStages(t *testing.T) {
	var text bytes.Buffer
	out := &console{err: &text}
	quiet := newStages(out, time.Hour)
	quiet.report("products")
	quiet.end()
	if text.Len() > 0 {
		t.Errorf("said %q at once", text.String())
	}
	s := &stages{out: out, timer: time.NewTimer(time.Hour)}
	s.report("")
	s.report("products")
	s.report("")
	s.end()
	s.report("steps")
	if want := "measuring products\nmeasuring products\n"; text.String() != want {
		t.Errorf("said %q, want %q", text.String(), want)
	}
}

// show prints either lines of JSON or a table under its title, with a line between two.
func TestShow(t *testing.T) {
	type result struct {
		Rate int `json:"rate"`
	}
	row := func(result) []string { return []string{"7"} }
	for _, c := range []struct {
		json bool
		want string
	}{
		{true, "{\"rate\":7}\n{\"rate\":7}\n"},
		{false, "Rates\nRATE\n7\n\nRates\nRATE\n7\n"},
	} {
		var text bytes.Buffer
		r := &benchRun{out: &console{out: &text}, json: c.json}
		for range 2 {
			if err := show(r, "Rates", []string{"RATE"}, []result{{7}}, row); err != nil {
				t.Fatal(err)
			}
		}
		if text.String() != c.want {
			t.Errorf("%q, want %q", text.String(), c.want)
		}
	}
}

func TestBenchmarkInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := benchmark(ctx, &console{err: &bytes.Buffer{}}, false, 1, func(ctx context.Context, r *benchRun) error {
		if r.meter.For != time.Second {
			t.Errorf("measures for %v", r.meter.For)
		}
		cancel()
		return ctx.Err()
	})
	if !errors.Is(err, errInterrupted) {
		t.Errorf("error %v", err)
	}
}
