package node

import (
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// layoutRun is a run of a model that is not built in, and the file of its first values.
func layoutRun(t *testing.T, budget uint64) (g genesis.Genesis, file string) {
	t.Helper()
	g = toyGenesis(budget)
	g.Model, g.Data = llama.Config{Context: 32}, genesis.Data{}
	g.Layout = genesis.Layout{{Name: "wte.weight", Shape: []int{400, 200}}, {Name: "h.0.weight", Shape: []int{64, 32}}, {Name: "scale"}}
	slab := g.NewSlab()
	for i := range slab.Data {
		slab.Data[i] = float32(i%101)/101 - 0.5
	}
	g.First = genesis.CutFirst(slab.Data).Digests()
	dir := t.TempDir()
	if err := g.SaveFirst(dir, slab); err != nil {
		t.Fatal(err)
	}
	return g, filepath.Join(dir, genesis.FirstFile)
}

// needsPython skips where the learner of a test, a program in Python, cannot run.
func needsPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here")
	}
}

// A run whose model only its learners know: joiners fetch its first values from a peer, the
// founder may be gone by then, and all end with the same bits.
func TestLayoutRun(t *testing.T) {
	t.Parallel()
	needsPython(t)
	const idle = "idle --step-seconds 0.02"
	g, values := layoutRun(t, 60_000)
	first := launch(t, Config{Genesis: g.Encode(), Init: values, Observe: true}) // a learner would stay for what it alone had folded
	out := filepath.Join(t.TempDir(), "models")
	second := launch(t, Config{Link: first.link(), Learner: idle, Pace: slowPace, Export: out, ExportEvery: 20_000})
	second.until("it contributes", contributes)
	link := second.link()
	first.leave()
	third := launch(t, Config{Link: link, Learner: idle, Pace: slowPace / 4})
	observer := launch(t, Config{Link: link, Observe: true})
	third.until("it contributes", contributes)
	ends := []status.Snapshot{second.end(), third.end(), observer.end()}
	for i, s := range ends {
		if !s.Finished || s.StateDigest != ends[0].StateDigest || s.Model != "3 tensors of 82049 parameters" {
			t.Errorf("node %d: finished %v, state %.8s, want %.8s, model %s", i, s.Finished, s.StateDigest, ends[0].StateDigest, s.Model)
		}
	}
	for _, m := range []*launched{second, third, observer} {
		checkVerify(t, m.cfg.Dir, ends[0])
	}
	checkNothingLost(t, third.cfg.Dir, ends[1])
	written, err := filepath.Glob(filepath.Join(out, "tokens-*"))
	if err != nil || len(written) < 2 {
		t.Errorf("%v: models %v were written, want one each 20,000 of 60,000 tokens", err, written)
	}
	for _, dir := range written {
		if _, err := g.LoadTensors(dir); err != nil {
			t.Error(err)
		}
	}
}

// What is wrong with the first values, or that no program trains, is said.
func TestLayoutRunThatCannotStart(t *testing.T) {
	t.Parallel()
	g, values := layoutRun(t, 1000)
	other, wrong := layoutRun(t, 1000)
	slab := other.NewSlab()
	if err := other.SaveFirst(filepath.Dir(wrong), slab); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]Config{
		"--init":               {Genesis: g.Encode(), Learner: "idle"},
		"not those":            {Genesis: g.Encode(), Learner: "idle", Init: wrong},
		"no such file":         {Genesis: g.Encode(), Learner: "idle", Init: values + ".nothing"},
		"no built-in model":    {Genesis: g.Encode(), Init: values},
		"was not found":        {Genesis: g.Encode(), Init: values, Learner: "a-program-that-is-not-there"},
		"trains other tensors": {Genesis: g.Encode(), Init: values, Learner: "idle --layout wrong"},
	} {
		if strings.HasPrefix(cfg.Learner, "idle ") {
			if _, err := exec.LookPath("python3"); err != nil {
				continue
			}
		}
		m := launch(t, cfg)
		select {
		case <-m.ended:
		case <-time.After(longestWait):
			t.Fatalf("%s: it runs", want)
		}
		if m.err == nil || !strings.Contains(m.err.Error(), want) {
			t.Errorf("error %v, want one with %q", m.err, want)
		}
	}
}

// A model that only its learners know has a live quality: what they say of the global parameters.
func TestLearnersEvaluate(t *testing.T) {
	t.Parallel()
	needsPython(t)
	const idle = "idle --step-seconds 0.02"
	g, file := layoutRun(t, 1<<40)
	slab, err := g.LoadTensors(file)
	if err != nil {
		t.Fatal(err)
	}
	want := tensor.SumSquares(slab.Data) / float64(len(slab.Data)) // what the idle learner says of values
	first := launch(t, Config{Genesis: g.Encode(), Init: file, Learner: idle, Pace: slowPace, EvalBytes: 100, EvalEvery: time.Millisecond})
	second := launch(t, Config{Link: first.link(), Learner: idle, Pace: slowPace})
	s := first.until("two evaluations", func(s status.Snapshot) bool { return s.ValAtTokens > 2000 })
	if s.ValTokens != 96 || math.Abs(s.ValLoss/want-1) > 0.01 || s.ValBPB != 0 || s.Time.Evaluate == 0 {
		t.Errorf("loss %v on %d tokens, want %v on 96; %v bits per byte; %v s", s.ValLoss, s.ValTokens, want, s.ValBPB, s.Time.Evaluate)
	}
	s = second.until("its peer's quality", func(s status.Snapshot) bool { return len(s.Peers) > 1 && s.Peers[1].Bits > 0 })
	if got := s.Peers[1].Bits; math.Abs(got*math.Ln2/want-1) > 0.01 || s.Peers[0].Bits != 0 {
		t.Errorf("the peer says %v bits, want %v", got, want/math.Ln2)
	}
	if share := first.leave().Time; share.Evaluate > share.Total/evalShare+1 {
		t.Errorf("%v s of %v went to evaluations", share.Evaluate, share.Total)
	}
	second.leave()
}
