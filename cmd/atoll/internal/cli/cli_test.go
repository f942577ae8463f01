package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Percent(1, 4), "25.0 %"},
		{Percent(1, 0), Unknown},
		{Measured(0, "%.1f"), Unknown},
		{Measured(2, "%.1f"), "2.0"},
		{Seconds(75.4), "1m15s"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// A value of another kind is said with the kind that belongs there, in words of no language.
func TestKindsInWords(t *testing.T) {
	for text, want := range map[string]string{
		`{"n":1.5}`: "n is of the kind number 1.5, and a whole number belongs there", `{"u":"x"}`: "u is of the kind string, and a whole number belongs there",
		`{"f":"x"}`: "f is of the kind string, and a number belongs there", `{"s":1}`: "s is of the kind number, and a text in quotes belongs there",
		`{"b":1}`: "b is of the kind number, and true or false belongs there", `{"m":1}`: "m is of the kind number, and another belongs there", `[]`: "it is of the kind array, and another belongs there",
	} {
		var v struct {
			N int                `json:"n"`
			U uint32             `json:"u"`
			F float64            `json:"f"`
			S string             `json:"s"`
			B *bool              `json:"b"`
			M map[string][]uint8 `json:"m"`
		}
		if err := json.Unmarshal([]byte(text), &v); err == nil || InWords(err) != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, []string{"A", "LONG"}, []string{"wide", "x"}); err != nil {
		t.Fatal(err)
	}
	if want := "A     LONG\nwide  x\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestMeter(t *testing.T) {
	var errs bytes.Buffer
	m := NewMeter(&Console{Err: &errs}, "replaying rounds")
	clock := m.begun
	m.now = func() time.Time { return clock }
	for _, step := range []struct {
		after     time.Duration
		done, all float64
	}{{time.Second, 1, 8}, {5 * time.Second, 0, 0}, {5 * time.Second, 2, 8}, {9 * time.Second, 3, 8}, {12 * time.Second, 6, 8}, {20 * time.Second, 8, 8}} {
		clock = m.begun.Add(step.after)
		m.At(step.done, step.all)
	}
	want := "replaying rounds: 25 %, 15s left\nreplaying rounds: 75 %, 4s left\nreplaying rounds: 100 %\n"
	if got := errs.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMeterLine(t *testing.T) {
	if got := meterLine("x", 1, 4, 10*time.Second); got != "x: 25 %, 30s left" {
		t.Error(got)
	}
}
