package external

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/trainer"
)

// fillWith are values to evaluate.
func fillWith(x float32) func([]float32) error {
	return func(values []float32) error {
		for i := range values {
			values[i] = x
		}
		return nil
	}
}

// Values are evaluated, and those of the learner go on with all that was stepped and not flushed.
func TestEvaluateKeepsWhatWasStepped(t *testing.T) {
	l := begin(t, "well")
	copy(l.Params(), values())
	before, err := l.Evaluate(fillWith(3), make([]uint64, 5))
	if err != nil || before.Loss != 3 || before.Tokens != 40 || before.Bytes != 20 {
		t.Errorf("before the first step: %+v, %v", before, err)
	}
	if got := before.BitsPerByte(); math.Abs(got-2*3/math.Ln2) > 1e-12 {
		t.Errorf("%v bits per byte", got)
	}
	for want := range 3 {
		if _, err := l.Step(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if e, err := l.Evaluate(fillWith(7), nil); err != nil || e.Loss != 7 || e.BitsPerByte() != 0 {
			t.Errorf("%+v, %v", e, err)
		}
		for i, x := range values() {
			if got := l.Params()[i]; got != x+float32(want)+1 {
				t.Fatalf("after step %d and an evaluation value %d is %v, was %v", want, i, got, x)
			}
		}
	}
	if err := l.Flush(all()); err != nil || l.Params()[0] != 3 {
		t.Errorf("%v: value 0 is %v", err, l.Params()[0])
	}
	l.Params()[0] = 50
	l.Load(all())
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[0] != 51 {
		t.Errorf("%v: after a load value 0 is %v", err, l.Params()[0])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(l.cfg.Dir, "aside*")); err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
}

// A learner that has no way to evaluate trains on; one that dies of it leaves what it had flushed.
func TestEvaluateThatFails(t *testing.T) {
	for _, how := range []string{"cannot evaluate", "has no text"} {
		l := begin(t, how)
		if _, err := l.Step(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Evaluate(fillWith(3), nil); !errors.Is(err, ErrNoEvaluation) || errors.Is(err, trainer.ErrLost) {
			t.Errorf("%s: %v", how, err)
		}
		if _, err := l.Step(t.Context(), 1); err != nil {
			t.Error(err)
		}
		if err := l.Flush(all()); err != nil || l.Params()[5] != 2 {
			t.Errorf("%s: %v, value %v", how, err, l.Params()[5])
		}
	}
	l := begin(t, "dies in an evaluation")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Evaluate(fillWith(3), nil); !errors.Is(err, trainer.ErrLost) || l.Params()[5] != 1 {
		t.Errorf("%v, value %v", err, l.Params()[5])
	}
	if l.Unflushed() || l.Flush(all()) != nil {
		t.Errorf("it died with all flushed: unflushed %t, flush %v", l.Unflushed(), l.Flush(all()))
	}
	l = begin(t, "dies")
	for err := error(nil); err == nil; {
		_, err = l.Step(t.Context(), 1)
	}
	if !l.Unflushed() || l.Flush(all()) == nil {
		t.Error("one that died in a step has nothing unflushed")
	}
	if _, err := l.Evaluate(fillWith(3), nil); !errors.Is(err, trainer.ErrLost) {
		t.Error(err)
	}
}

func TestCheckOfEvaluations(t *testing.T) {
	for how, want := range map[string]string{"cannot evaluate": "", "has no text": "", "says a constant": "what it loaded last"} {
		bad := wrong(Check(t.Context(), testConfig(t, how), values(), testPace, nil))
		if want == "" && len(bad) > 0 || want != "" && !slices.ContainsFunc(bad, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%s: %v", how, bad)
		}
	}
	judge := &Judge{&adder{values: values(), loss: 1.5}, 1} // the fake's steps say 1.5, whatever its values are
	cfg := testConfig(t, "well")
	cfg.Text, cfg.HeldOut = "text", "text"
	if bad := wrong(Check(t.Context(), cfg, values(), testPace, judge)); len(bad) != 1 || !strings.Contains(bad[0], "on the same rows") {
		t.Errorf("another loss than a step's: %v", bad)
	}
}

// What a killed node left of an evaluation goes at the next start.
func TestAsideOfAKilledNode(t *testing.T) {
	cfg := testConfig(t, "well")
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"aside", "aside.safetensors"} {
		if err := os.WriteFile(filepath.Join(cfg.Dir, name), []byte("left"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if left, err := filepath.Glob(filepath.Join(cfg.Dir, "aside*")); err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
}

// Values that cannot be filled in cost the evaluation alone. Those that cannot be read back cost what the learner had not
// published: they are unflushed.
func TestEvaluateOnABadDisk(t *testing.T) {
	l := begin(t, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("bad sector")
	if _, err := l.Evaluate(func(values []float32) error { values[0] = 9; return bad }, nil); !errors.Is(err, bad) || l.Lost() != nil {
		t.Errorf("%v, lost %v", err, l.Lost())
	}
	if _, err := l.Step(t.Context(), 1); err != nil || l.Flush(all()) != nil || l.Params()[0] != 2 {
		t.Errorf("%v: value %v after two steps of 1", err, l.Params()[0])
	}
	if _, err := l.Evaluate(func([]float32) error { return l.aside.Truncate(1) }, nil); !errors.Is(err, trainer.ErrLost) || !l.Unflushed() {
		t.Errorf("%v, unflushed %v", err, l.Unflushed())
	}
	l.Accounted()
	if err := l.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Evaluate(fillWith(3), nil); err != nil {
		t.Error(err)
	}
}
