package shaping

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const ms = time.Millisecond

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Link
		back string // canonical; "" = text
	}{
		{"", Link{}, "rate=none"},
		{"rate=none", Link{}, ""},
		{"rate=100mbit,delay=40ms", Link{Up: 12_500_000, Down: 12_500_000, Delay: 40 * ms}, ""},
		{"up=20mbit,down=100mbit,delay=40ms,jitter=10ms,loss=0.1%", Link{2_500_000, 12_500_000, 40 * ms, 10 * ms, 0.001}, ""},
		{" rate=0.5gbit, up=8kbit", Link{Up: 1000, Down: 62_500_000}, "up=8kbit,down=500mbit"},
		{"rate=20mbit,down=none", Link{Up: 2_500_000}, "up=20mbit"},
		{"loss=7%", Link{Loss: 0.07}, ""},
		{"delay=1s", Link{Delay: time.Second}, ""},
		{"rate=8bit", Link{Up: 1, Down: 1}, ""},
	} {
		got, err := Parse(c.text)
		back := c.back
		if back == "" {
			back = c.text
		}
		if err != nil || got != c.want || got.String() != back {
			t.Errorf("%q: %+v %q, %v", c.text, got, got, err)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for text, want := range map[string]string{
		"rate=100":              "write it like 20mbit",
		"rate=-1mbit":           "write it like 20mbit",
		"up=NaNmbit":            "write it like 20mbit",
		"down=1e9gbit":          "from 8bit to 1000gbit",
		"delay=-1s":             "delay is -1s: use 0s to 10s",
		"delay=1h":              "delay is 1h0m0s: use 0s to 10s",
		"delay=40":              "missing unit",
		"jitter=10ms":           "jitter is 10ms: use at most the delay, 0s",
		"loss=1":                `"1" is no share of the packets; write it like 0.1%`,
		"loss=NaN%":             "loss is NaN%: use 0% to 20%",
		"loss=21%":              "loss is 21%: use 0% to 20%",
		"rate":                  "write it like 20mbit",
		",":                     `"" is no trait of a link; use something like rate=20mbit,delay=40ms or`,
		"rate=1mbit,speed=3":    `link "rate=1mbit,speed=3": "speed=3" is no trait of a link`,
		"delay=1ms,jitter=-1ms": "jitter is -1ms",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, error %v, want %q", text, got, err, want)
		}
	}
}

// What is not named stays.
func TestChange(t *testing.T) {
	is := Link{Up: 100, Down: 200, Delay: 40 * ms, Jitter: ms, Loss: 0.01}
	got, err := is.Change("up=8kbit,loss=0%")
	if want := (Link{1000, 200, 40 * ms, ms, 0}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := is.Change("delay=0s"); err == nil {
		t.Error("a jitter without a delay was taken")
	}
}

// What is written is read as the same link.
func TestPrintedIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Link{
			Up: rapid.Int64Range(0, MaxBytes).Draw(t, "up"), Down: rapid.Int64Range(0, MaxBytes).Draw(t, "down"),
			Delay: time.Duration(rapid.Int64Range(0, int64(MaxDelay)).Draw(t, "delay")),
			Loss:  float64(rapid.IntRange(0, 20_000).Draw(t, "loss")) / 1000 / 100,
		}
		l.Jitter = time.Duration(rapid.Int64Range(0, int64(l.Delay)).Draw(t, "jitter"))
		if again, err := Parse(l.String()); err != nil || again != l {
			t.Fatalf("%q is read as %+v (%v), want %+v", l, again, err, l)
		}
	})
}
