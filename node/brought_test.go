package node

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"atoll/node/genesis"
	"atoll/node/inspect"
)

// A model in bfloat16 is trained by learners that have its tokenizer from the run alone, on the founder and on who joined. What comes
// out of either is the run's model rounded to that type, with the source's files.
func TestLearnersTrainWhatWasBrought(t *testing.T) {
	home := os.Getenv("ATOLL_FRAMEWORKS")
	if home == "" {
		t.Skip("needs PyTorch and transformers: ATOLL_FRAMEWORKS=FOLDER names that of their Python")
	}
	t.Setenv("PATH", filepath.Join(home, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	const program = "genesis/testdata/models.py"
	sources := t.TempDir()
	python(t, program, "make", sources, "llama3")
	source := filepath.Join(sources, "llama3")
	m, err := genesis.ReadModel(source)
	if err != nil {
		t.Fatal(err)
	}
	g, _, err := genesis.Spec{From: m, Tokens: 20_000, Context: 64, H: 10, Fragments: 2, Learners: 2, Profile: "local", CreatedMs: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, bytes.Repeat([]byte("the sun and its light. "), 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	const learner = "hf --threads 1"
	first := launch(t, Config{Genesis: g.Encode(), Init: source, Data: text, Learner: learner, Pace: slowPace})
	second := launch(t, Config{Link: first.link(), Data: text, Learner: learner, Pace: slowPace})
	a, b := first.end(), second.end()
	if !a.Finished || a.StateDigest != b.StateDigest {
		t.Fatalf("finished %v, %v; states %.8s and %.8s", a.Finished, b.Finished, a.StateDigest, b.StateDigest)
	}
	out := t.TempDir()
	for name, n := range map[string]*launched{"first": first, "second": second} {
		g, values, folded, err := inspect.LoadModel(t.Context(), n.cfg.Dir)
		if err != nil {
			t.Fatal(err)
		}
		if begun, err := g.LoadTensors(source); err != nil || bytes.Equal(genesis.EncodeValues(begun.Data), genesis.EncodeValues(values.Data)) {
			t.Errorf("%s: nothing was trained, %v", name, err)
		}
		whole, same := filepath.Join(out, name), filepath.Join(out, name+" float32")
		if err := inspect.Export(n.cfg.Dir, g, whole, values, folded, ""); err != nil {
			t.Fatal(err)
		}
		if err := inspect.Export(n.cfg.Dir, g, same, values, folded, "float32"); err != nil {
			t.Fatal(err)
		}
		haveFiles(t, whole, m.Beside)
		python(t, program, "rounded", whole, same)
	}
}

// python runs a program that has to succeed.
func python(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("python3", args...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
}
