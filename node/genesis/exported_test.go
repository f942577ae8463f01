package genesis

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// modelsProgram makes models by transformers, and compares exports with them.
const modelsProgram = "testdata/models.py"

// exportedFrom makes a run of a model, and exports it before the first step, with the files of a node's folder. The error is that of ReadModel.
func exportedFrom(t *testing.T, source, out string) (*Source, error) {
	t.Helper()
	m, err := ReadModel(source)
	if err != nil {
		return m, err
	}
	g, home := madeFrom(t, m), t.TempDir()
	if err := m.SaveBeside(home); err != nil {
		t.Fatal(err)
	}
	values, err := g.LoadTensors(source)
	if err != nil {
		t.Fatal(err)
	}
	files, err := g.ReadFiles(home)
	if err == nil {
		err = g.Export(out, values, 0, Form{Files: files})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m, nil
}

// A model of many architectures comes out of a run as transformers wrote it: each tensor's bits, config, tokenizer, templates, and what
// all of them do there.
func TestExportsAreWhatWentIn(t *testing.T) {
	home := os.Getenv(frameworksVariable)
	if home == "" {
		t.Skipf("needs PyTorch and transformers: %s=FOLDER names that of their Python", frameworksVariable)
	}
	python := filepath.Join(home, "bin", "python3")
	sources, exports := t.TempDir(), t.TempDir()
	if out, err := exec.Command(python, modelsProgram, "make", sources).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	folders, err := os.ReadDir(sources)
	if err != nil || len(folders) < 16 {
		t.Fatalf("%d models, %v", len(folders), err)
	}
	for _, f := range folders {
		m, err := exportedFrom(t, filepath.Join(sources, f.Name()), filepath.Join(exports, f.Name()))
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		if f.Name() == "mixtral" && !strings.Contains(strings.Join(m.Notes, ";"), "learners need transformers") {
			t.Errorf("%s: %v: it does not say which transformers trains its experts", f.Name(), m.Notes)
		}
	}
	out, err := exec.Command(python, modelsProgram, "compare", sources, exports).CombinedOutput()
	t.Logf("%s", out)
	if err != nil || strings.Count(string(out), " ok\n") != len(folders) {
		t.Errorf("%v", err)
	}
}
