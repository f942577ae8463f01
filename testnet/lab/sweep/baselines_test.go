package sweep

import (
	"bytes"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/testnet/baseline/lockstep"
)

// microLab has a text that the micro model learns something of in some steps.
func microLab() *Lab {
	l := NewLab()
	l.texts["words"] = []*corpus.Corpus{corpus.New("words", []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200)))}
	return l
}

// micro is a setting that takes milliseconds.
func micro(set ...string) Setting {
	s := Default()
	s.Model, s.Data, s.M, s.Batch, s.Tokens, s.LR, s.H, s.P = "micro", "words", 2, 2, 64*40, 0.01, 4, 4
	for _, word := range set {
		if err := assign(&s, word); err != nil {
			panic(err)
		}
	}
	return s
}

func play(t *testing.T, s Setting, seed uint64) Trial {
	t.Helper()
	trial, err := microLab().Run(s, seed)
	if err != nil {
		t.Fatal(err)
	}
	if trial.Failed != "" {
		t.Fatal(trial.Failed)
	}
	trial.Seconds = 0
	return trial
}

// One seed has one result, other seeds have others, and each baseline learns.
func TestBaselines(t *testing.T) {
	for _, name := range Baselines {
		t.Run(name, func(t *testing.T) {
			a, b, c := play(t, micro("arm="+name), 1), play(t, micro("arm="+name), 1), play(t, micro("arm="+name), 2)
			if a.ValBPB != b.ValBPB || !slices.Equal(a.Curve, b.Curve) || a.PayloadPerToken != b.PayloadPerToken {
				t.Errorf("one seed came to %+v and %+v", a, b)
			}
			if a.ValBPB == c.ValBPB {
				t.Error("two seeds came to the same")
			}
			if a.ValBPB > 6 || len(a.Curve) != curvePoints || a.Curve[0].BPB < a.ValBPB {
				t.Errorf("%v bits per byte of 8, on the way %v", a.ValBPB, a.Curve)
			}
			if over := float64(a.Folded)/float64(a.Tokens) - 1; over < 0 || over > 0.1 {
				t.Errorf("folded %d tokens of %d", a.Folded, a.Tokens)
			}
		})
	}
}

// Learners that crash, come back, leave and join still make one model, and what a
// crash loses is not folded.
func TestAtollWithFaults(t *testing.T) {
	s := micro("m=3", "tokens=6000", "faults=kill_1_@9s;start_1_@20s;join_@15s;leave_2_@30s", "speeds=1:1:2")
	got := play(t, s, 1)
	if got.Folded < s.Tokens || got.Trained < got.Folded || got.ValBPB > 6 || got.Rounds == 0 {
		t.Errorf("%+v", got)
	}
	if calm := play(t, micro("m=3", "tokens=6000", "speeds=1:1:2"), 1); calm.ValBPB == got.ValBPB {
		t.Error("faults changed nothing")
	}
}

// constant makes the rate the same at every step, whatever is folded.
var constant = []string{"warmup=0", "final=1"}

// A learner alone trains as if there were no protocol.
func TestAtollOfOneIsLocal(t *testing.T) {
	set := append(slices.Clone(constant), "m=1", "codec=f32", "grace=0")
	a, b := play(t, micro(append(set, "arm=atoll")...), 3), play(t, micro(append(set, "arm=local")...), 3)
	if a.Folded != b.Folded || math.Abs(a.ValBPB-b.ValBPB) > 1e-4 {
		t.Errorf("alone %d tokens and %v bits, local %d and %v", a.Folded, a.ValBPB, b.Folded, b.ValBPB)
	}
}

// benchOf is a bench whose inner step is along the gradient: the root of the
// second moment is nothing beside Eps.
func benchOf(t *testing.T, s Setting) *bench {
	t.Helper()
	b, err := microLab().bench(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	b.optim.AdamW.Beta1, b.optim.AdamW.Eps, b.optim.AdamW.WeightDecay, b.optim.Clip = 0, 1e4, 0, 1e6
	return b
}

// With inner steps along the gradient, the mean of what learners come to in one
// step is a step along the mean gradient.
func TestDiLoCoOfOneStepIsDataParallel(t *testing.T) {
	set := append(slices.Clone(constant), "lr=2e3", "h=1", "eta=1", "mu=0", "codec=f32")
	var a, b Trial
	if err := benchOf(t, micro(append(set, "arm=diloco")...)).diloco(&a); err != nil {
		t.Fatal(err)
	}
	if err := benchOf(t, micro(set...)).dp(&b); err != nil {
		t.Fatal(err)
	}
	if math.Abs(a.ValBPB-b.ValBPB) > 1e-4 || a.ValBPB > 7 {
		t.Errorf("diloco comes to %v bits, data parallelism to %v; want them equal and below 7", a.ValBPB, b.ValBPB)
	}
	var momentum Trial
	if err := benchOf(t, micro(append(set, "arm=diloco", "mu=0.9")...)).diloco(&momentum); err == nil && math.Abs(momentum.ValBPB-b.ValBPB) < 1e-3 {
		t.Error("outer momentum made no difference: the test cannot fail")
	}
}

// Two learners that step together are one with twice the batch, whose rows are
// theirs; here it sees them one at a time.
func TestDataParallelOfTwoIsTwiceTheBatch(t *testing.T) {
	b, err := microLab().bench(micro(), 1)
	if err != nil {
		t.Fatal(err)
	}
	two, err := b.newTrainer(4, union(b.shards), [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := b.newTrainer(2, union(b.shards[:1]), [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	rows, dst := b.model.Context+1, make([]int32, 4*(b.model.Context+1))
	if err := union(b.shards).Batch(t.Context(), 1, [32]byte{}, 7, 4, b.model.Context, dst); err != nil {
		t.Fatal(err)
	}
	for i, s := range b.shards {
		own := make([]int32, 2*rows)
		if err := s.text.Batch(t.Context(), 1, s.author, 7, 2, b.model.Context, own); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(own, dst[2*i*rows:2*(i+1)*rows]) {
			t.Errorf("rows of learner %d are not its own", i)
		}
	}
	lossTwo, err := two.Step(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	lossOne, err := one.Step(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.newTrainer(2, union(b.shards[1:]), [32]byte{})
	if err != nil {
		t.Fatal(err)
	}
	lossOther, err := other.Step(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(lossTwo.Loss-(lossOne.Loss+lossOther.Loss)/2) > 1e-6 || lossTwo.Tokens != 2*lossOne.Tokens {
		t.Errorf("losses %v and %v alone, %v together", lossOne.Loss, lossOther.Loss, lossTwo.Loss)
	}
}

// Learners that join data parallelism after half of the steps make its batch larger from then on. A budget for 40
// steps of two takes 20 steps of two and 10 of four.
func TestDataParallelJoins(t *testing.T) {
	calm := play(t, micro("arm=dp"), 1) // 40 steps of two rows of two learners
	joined := play(t, micro("arm=dp", "faults=join_@20s;join_@20s"), 1)
	if calm.Steps != 40 || joined.Steps != 30 || joined.Folded != calm.Folded {
		t.Errorf("%d steps for %d tokens, with joins %d for %d", calm.Steps, calm.Folded, joined.Steps, joined.Folded)
	}
	if !slices.Equal(calm.Curve[:4], joined.Curve[:4]) || calm.ValBPB == joined.ValBPB {
		t.Errorf("on the way %v, with joins %v", calm.Curve, joined.Curve)
	}
	perStep := lockstep.RingBytes(2, calm.Params)
	if want := (20*perStep + 10*lockstep.RingBytes(4, calm.Params)) / 2560; math.Abs(joined.PayloadPerToken-want) > 1e-6*want || calm.PayloadPerToken != 40*perStep/2560 {
		t.Errorf("%v bytes per token, with joins %v, want %v", calm.PayloadPerToken, joined.PayloadPerToken, want)
	}
	// Momenta go on.
	anew, err := microLab().bench(micro("arm=dp"), 1)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := anew.together(anew.shards)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := tr.Step(t.Context(), 0.01); err != nil {
			t.Fatal(err)
		}
	}
	larger, err := anew.enlarge(tr, append(slices.Clip(anew.shards), anew.shard(2)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(stateOf(t, tr), stateOf(t, larger)) || !slices.Equal(tr.Params(), larger.Params()) || larger.Steps() != 3 {
		t.Error("the larger trainer does not go on where the other is")
	}
}

func stateOf(t *testing.T, tr *trainer.Builtin) []byte {
	t.Helper()
	r, err := tr.SaveState()
	var b []byte
	if err == nil {
		b, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// One learner with all tokens takes the batches of all in turn.
func TestLocalTakesAllBatches(t *testing.T) {
	b, err := microLab().bench(micro(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, want := make([]int32, 2*(b.model.Context+1)), make([]int32, 2*(b.model.Context+1))
	for step := range int64(6) {
		if err := series(b.shards).Batch(t.Context(), 1, [32]byte{}, step, 2, b.model.Context, got); err != nil {
			t.Fatal(err)
		}
		s := b.shards[step%2]
		if err := s.text.Batch(t.Context(), 1, s.author, step/2, 2, b.model.Context, want); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d has other rows", step)
		}
	}
}

// Stretches of their own have nothing in common.
func TestShardsSplit(t *testing.T) {
	l := NewLab()
	l.texts["words"] = []*corpus.Corpus{corpus.New("", []byte(strings.Repeat("a", 4500)+strings.Repeat("b", 5500)))}
	b, err := l.bench(micro("shards=split"), 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, letter := range []string{"a", "b"} {
		if text := string(b.shards[i].text.Train()); strings.Trim(text, letter) != "" || len(text) < 4000 {
			t.Errorf("learner %d reads %d bytes, not all of them %s", i, len(text), letter)
		}
	}
}

// A diverged trial says so, and has no quality.
func TestFailureIsNoQuality(t *testing.T) {
	for _, name := range Baselines {
		trial, err := microLab().Run(micro("arm="+name, "lr=1e30", "warmup=0"), 1)
		if err != nil || trial.Failed == "" || trial.ValBPB != 0 {
			t.Errorf("%s: %v bits, failed %q, %v", name, trial.ValBPB, trial.Failed, err)
		}
	}
}

// A plan that is played again runs what is missing, also where the last line was
// cut short.
func TestPlayResumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trials.jsonl")
	plan := []Entry{{micro("arm=dp"), 1}, {micro("arm=dp"), 2}, {micro("arm=dp", "lr=0.02"), 1}}
	l := microLab()
	if err := l.Play(plan[:2], path, new(bytes.Buffer)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"arm":"dp","mod`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	if err := l.Play(plan, path, &log); err != nil {
		t.Fatal(err)
	}
	if first, then, _ := strings.Cut(log.String(), "\n"); !strings.HasPrefix(first, "1 of 3 trials to run") || strings.Count(then, "\n") != 1 || !strings.HasPrefix(then, "3/3 dp seed 1") {
		t.Errorf("played again: %q", log.String())
	}
	log.Reset()
	if err := l.Play(plan, path, &log); err != nil || !strings.HasPrefix(log.String(), "all 3 trials are in ") {
		t.Errorf("nothing left to play: %q, %v", log.String(), err)
	}
	trials, err := ReadTrials(path)
	if err != nil || len(trials) != 3 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for i, got := range trials {
		if (Entry{got.Setting, got.Seed}) != plan[i] || got.ValBPB == 0 {
			t.Errorf("trial %d is %+v", i, got)
		}
	}
}

func TestReadTrialsErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trials.jsonl")
	if trials, err := ReadTrials(path); err != nil || trials != nil {
		t.Errorf("of no file: %v, %v", trials, err)
	}
	if err := os.WriteFile(path, []byte("{}\n{]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadTrials(path); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want the line", err)
	}
}
