package node

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
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
	source := withFiles(t, &g, filepath.Dir(values))
	first := launch(t, Config{Genesis: g.Encode(), Init: filepath.Dir(values), Observe: true}) // a learner would stay for what it alone had folded
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
		haveFiles(t, dir, source)
	}
	for i, m := range []*launched{third, observer} { // who came when the founder had gone
		out := filepath.Join(out, fmt.Sprint("late", i))
		if err := inspect.Export(m.cfg.Dir, g, out, g.NewSlab(), 1, ""); err != nil {
			t.Fatal(err)
		}
		haveFiles(t, out, source)
	}
}

// withFiles gives a run files beside its weights, and writes them to the folder of its first values.
func withFiles(t *testing.T, g *genesis.Genesis, dir string) map[string][]byte {
	t.Helper()
	source := map[string][]byte{"additional_chat_templates/rag.jinja": []byte("{{ x }}"), "tokenizer.json": bytes.Repeat([]byte(`{"a": "b"} `), 60_000)} // of several parts
	for _, name := range slices.Sorted(maps.Keys(source)) {
		d := wire.Sum(source[name])
		g.Files = append(g.Files, genesis.File{Name: name, Size: int64(len(source[name])), Digest: hex.EncodeToString(d[:])})
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, source[name], 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return source
}

func haveFiles(t *testing.T, dir string, want map[string][]byte) {
	t.Helper()
	for name, text := range want {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Equal(b, text) {
			t.Errorf("%s: %d bytes of %s, want %d; %v", dir, len(b), name, len(text), err)
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
	lacking, values2 := layoutRun(t, 1000)
	withFiles(t, &lacking, t.TempDir())
	for want, cfg := range map[string]Config{
		"--init": {Genesis: g.Encode(), Learner: "idle"},
		"copy additional_chat_templates/rag.jinja into": {Genesis: lacking.Encode(), Learner: "idle", Init: values2},
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
