package testnet

import (
	"math"
	"strings"
	"testing"
	"time"
)

// need is how many cores learners with these divisors use at a calibration.
func need(c Calibration, step time.Duration, divisors []float64) float64 {
	cores := 0.0
	for _, d := range divisors {
		cores += step.Seconds() / c.pace(d).Seconds()
	}
	return cores
}

func TestPaceUsesItsPartOfTheCores(t *testing.T) {
	step := 43 * time.Millisecond
	for _, divisors := range [][]float64{{1, 1, 1, 1}, {1, 1, 2, 4}, {1, 1, 1, 1, 1, 1, 1, 16}} {
		c := paceFor(step, divisors, 2)
		if got := need(c, step, divisors); math.Abs(got-utilisation*2) > 1e-6 {
			t.Errorf("%v: learners need %.4f cores, want %.1f", divisors, got, utilisation*2)
		}
		if c.pace(4) < 4*c.pace(1)-time.Microsecond || c.pace(4) > 4*c.pace(1)+4*time.Microsecond {
			t.Errorf("%v: pace of divisor 4 is %v, of divisor 1 %v", divisors, c.pace(4), c.pace(1))
		}
	}
}

func TestPaceIsNoFasterThanAStep(t *testing.T) {
	c := paceFor(40*time.Millisecond, []float64{1}, 8)
	if c.PaceMs != 40 || c.Utilisation != 1.0/8 {
		t.Errorf("one learner on 8 cores: %+v", c)
	}
}

func TestPaceAskedForSaysWhatItNeeds(t *testing.T) {
	step := 40 * time.Millisecond
	if c := paceAsked(100*time.Millisecond, step, []float64{1, 2}, 2); math.Abs(c.Utilisation-0.3) > 1e-9 || strings.Contains(c.Note, "free-running") {
		t.Errorf("slow enough: %+v", c)
	}
	if c := paceAsked(10*time.Millisecond, step, []float64{1, 1, 1}, 2); !strings.Contains(c.Note, "more cores than there are") {
		t.Errorf("too fast for the cores: %+v", c)
	}
}

// Learners share what cores there are.
func TestStepsTakeWhatTheCoresGive(t *testing.T) {
	for _, c := range []struct {
		pace, step time.Duration
		divisors   []float64
		want       float64 // ms
	}{
		{100 * time.Millisecond, 40 * time.Millisecond, []float64{1, 1}, 100},
		{10 * time.Millisecond, 40 * time.Millisecond, []float64{1}, 40},                       // one learner on one of two cores
		{10 * time.Millisecond, 40 * time.Millisecond, []float64{1, 1, 1, 1, 1, 1, 1, 1}, 160}, // eight on two
	} {
		if got := paceAsked(c.pace, c.step, c.divisors, 2).step(); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%d learners, asked for %v: %v ms, want %v", len(c.divisors), c.pace, got, c.want)
		}
	}
}

// A part of the cores that there is not is not shown: such learners take what they get.
func TestUtilisationShownIsOneThatThereIs(t *testing.T) {
	step, divisors := 100*time.Millisecond, []float64{1, 2}
	if c := paceOfOthers(time.Second, 2); c.step() != 1000 || c.pace(2) != 2*time.Second {
		t.Errorf("%+v", c)
	}
	if got := paceAsked(500*time.Millisecond, step, divisors, 2).utilisationText(); got != ", 15 % of 2 cores" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct {
		pace       time.Duration
		text, note string
	}{
		{100 * time.Millisecond, ", 75 % of 2 cores", "pace as asked for"},
		{130 * time.Millisecond, ", 58 % of 2 cores", "pace as asked for"},
		{80 * time.Millisecond, ", 81 % of 2 cores", "free-running: a step takes longer"},
		{50 * time.Millisecond, ", 100 % of 2 cores", "free-running: a step takes longer"},
	} {
		if got := paceAsked(c.pace, step, divisors, 2); got.utilisationText() != c.text || !strings.HasPrefix(got.Note, c.note) {
			t.Errorf("%v: %q, %s; want %q, %s", c.pace, got.utilisationText(), got.Note, c.text, c.note)
		}
	}
	nearlyAll := []float64{1, 1, 1, 2}
	if c := paceAsked(190*time.Millisecond, step, nearlyAll, 2); c.utilisationText() != ", 92 % of 2 cores" || !strings.Contains(c.Note, "leaves little") {
		t.Errorf("nearly all of the cores: %q, %s", c.utilisationText(), c.Note)
	}
	if c := paceAsked(time.Millisecond, step, nearlyAll, 2); c.utilisationText() != "" || !strings.Contains(c.Note, "than there are") {
		t.Errorf("more than all of them: %q, %s", c.utilisationText(), c.Note)
	}
}
