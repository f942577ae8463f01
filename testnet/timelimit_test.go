package testnet

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTimeLimit(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	l := newTimeLimit(time.Hour, 0, began)
	if err := l.exceeded(began.Add(time.Hour-1), 0); err != nil {
		t.Errorf("a world that has folded nothing yet: %v", err)
	}
	err := l.exceeded(began.Add(time.Hour), 50)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "did not end within 1h; raise --timeout") {
		t.Errorf("error %v", err)
	}
}

func TestTimeLimitWhileItGoesOn(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	l := newTimeLimit(0, stallTime/stallRounds, began)
	for i := range 100 { // more is folded just in time
		if err := l.exceeded(began.Add(time.Duration(i)*(stallTime-1)), uint64(i)); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	last := began.Add(99 * (stallTime - 1))
	if err := l.exceeded(last.Add(stallTime-1), 99); err != nil { // no more than before
		t.Errorf("error %v", err)
	}
	err := l.exceeded(last.Add(stallTime), 99)
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), "nothing was folded for 30m") {
		t.Errorf("error %v", err)
	}
	if err := l.exceeded(last.Add(stallTime), 98); err != nil {
		t.Errorf("a node begins anew in the last moment: %v", err)
	}
}

// A barrier waits for its slowest learner: with long rounds a world that goes on is not taken for one that hangs.
func TestTimeLimitWithLongRounds(t *testing.T) {
	const round = time.Hour
	began := time.UnixMilli(1_700_000_000_000)
	l := newTimeLimit(0, round, began)
	if err := l.exceeded(began.Add(stallRounds*round-1), 0); err != nil {
		t.Errorf("before the first rounds end: %v", err)
	}
	if err := l.exceeded(began.Add(stallRounds*round), 0); !errors.Is(err, ErrTimeout) {
		t.Errorf("error %v", err)
	}
}

func TestRoundTimeIsThatOfTheSlowest(t *testing.T) {
	w := world{cfg: Config{Nodes: 3, Speed: []float64{1, 4, 2}}, calibration: Calibration{PaceMs: 100, StepMs: 30}}
	w.genesis.Outer.H = 24
	if got, want := w.roundTime(), 24*400*time.Millisecond; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	w.calibration.PaceMs = 1 // asked for, where a step takes longer
	if got, want := w.roundTime(), 24*120*time.Millisecond; got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// A node that lost its chain, or began anew, says less than others do: what it folds from there on is progress all the same.
func TestProgressOfANodeThatIsBehind(t *testing.T) {
	ahead, behind := &life{}, &life{}
	ahead.last.TokensFolded, behind.last.TokensFolded = 5000, 100
	w := world{members: []*member{{lives: []*life{ahead}}, {lives: []*life{{}, behind}}, {}}}
	before := w.foldedInSum()
	behind.last.TokensFolded = 200
	if got := w.foldedInSum(); before != 5100 || got != 5200 {
		t.Errorf("%d tokens, and then %d", before, got)
	}
}
