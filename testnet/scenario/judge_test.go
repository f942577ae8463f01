package scenario

import (
	"errors"
	"math"
	"strings"
	"testing"

	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// planted is an outcome made by hand.
func planted() *Outcome {
	return &Outcome{
		Result: sim.Result{Rounds: 40, Trained: 1000, Tokens: 900, Counts: sim.Counts{Faults: map[fault.Verb]int{fault.Kill: 1}}},
		Reports: []sim.Report{
			{Index: 0, Idle: 1500, Marks: []int{2}, Tokens: sim.Tokens{Folded: 600, Lost: 100}},
			{Index: 1, Idle: 200, Tokens: sim.Tokens{Folded: 300}},
			{Index: 2, Liar: true, Idle: 99_000},
		},
		WholeChain: true, Said: map[string]int{"signed two deltas": 3},
		Recoveries: []Recovery{
			{Kind: fault.Start, At: 5000, TogetherMs: 400, Rounds: 2, ContributeMs: 900},
			{Kind: fault.Merge, Node: -1, At: 9000, TogetherMs: 2000, Rounds: 1, ContributeMs: math.NaN()},
		},
		faults: []sim.Fault{{Kind: fault.Kill}},
	}
}

// Each expectation holds up to its limit and fails beyond it.
func TestExpectationsHoldUpToTheirLimit(t *testing.T) {
	for _, c := range []struct{ good, bad string }{
		{"rounds at least 40", "rounds at least 41"},
		{"rounds is 40", "rounds is 39"},
		{"lost at most 100", "lost at most 99"},
		{"lost at most 10%", "lost at most 9.9%"},
		{"folded at least 90%", "folded at least 91%"},
		{"idle at most 1.5s", "idle at most 1.4s"},
		{"idle of 1 within 200ms", "idle of 1 within 199ms"},
		{"share of 1 at least 33%", "share of 1 at least 34%"},
		{"one chain within 2s", "one chain within 1.9s"},
		{"one chain within 2 rounds", "one chain within 1 rounds"},
		{"contributing within 900ms", "contributing within 800ms"},
		{"unaccounted at most 0", "unaccounted at least 1"},
		{"marked 2", "marked nobody"},
		{"excluded nobody", "excluded 1-2"},
		{"said two deltas", "said nothing of the kind"},
	} {
		for text, want := range map[string]bool{c.good: true, c.bad: false} {
			for _, known := range []bool{false, true} {
				full := "nodes 3\nexpect " + text
				if known {
					full += " known to fail: for a test"
				}
				s, err := Parse("s.txt", []byte(full))
				if err != nil {
					t.Fatal(err)
				}
				verdicts, err := s.Judge(planted())
				if err != nil {
					t.Fatal(err)
				}
				if v := verdicts[0]; v.Held != want || v.Good() != (want != known) {
					t.Errorf("%s: held %v, good %v: %s", full, v.Held, v.Good(), v)
				}
			}
		}
	}
}

// A recovery that never came breaks every limit.
func TestNeverIsLaterThanAnyLimit(t *testing.T) {
	o := planted()
	o.Recoveries[0].TogetherMs, o.Recoveries[0].ContributeMs = math.Inf(1), math.Inf(1)
	s, err := Parse("s.txt", []byte("nodes 3\nexpect one chain within 24h\nexpect one chain within 1000000 rounds\nexpect contributing within 24h"))
	if err != nil {
		t.Fatal(err)
	}
	verdicts, _ := s.Judge(o)
	for _, v := range verdicts {
		if v.Held {
			t.Error(v)
		}
	}
	if text := o.String(); !strings.Contains(text, "never") {
		t.Error(text)
	}
}

// A broken promise fails a script whatever it expects, unless it is known, and a
// known one fails it once it is kept.
func TestBrokenPromisesAreJudgedFirst(t *testing.T) {
	broken := &Outcome{Result: sim.Result{Check: "converges", Error: "converges: test", Err: errors.New("converges: test")}}
	other := &Outcome{Result: sim.Result{Check: "account", Error: "account: test", Err: errors.New("account: test")}}
	plain, marked := "nodes 3\nexpect rounds at least 1", "nodes 3\nbreaks converges: for a test"
	for _, c := range []struct {
		text string
		o    *Outcome
		want string
	}{
		{plain, planted(), ""},
		{plain, broken, "a promise is broken: converges"},
		{marked, broken, ""},
		{marked, other, `broken is "account", not "converges"`},
		{marked, planted(), `the promise behind "converges" is kept now`},
	} {
		s, err := Parse("s.txt", []byte(c.text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Judge(c.o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
	}
}

// A kill of a node that is down is a slip of the script, not a test.
func TestEventsThatDoNothingAreFound(t *testing.T) {
	s, err := Parse("s.txt", []byte("nodes 2\nrounds 5\nat 1s kill 1\nat 2s kill 1\nat 3s start 1"))
	if err != nil {
		t.Fatal(err)
	}
	o, err := Play(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Judge(o); err == nil || !strings.Contains(err.Error(), `1 of 2 events "kill" found nothing to do`) {
		t.Error(err)
	}
}
