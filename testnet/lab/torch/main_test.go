package torch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"atoll/optimizer/trainer"
)

// TestTrainIsATrainersRun: an exchange leads where a trainer goes that draws the same itself.
func TestTrainIsATrainersRun(t *testing.T) {
	p := microPlan()
	e := microExchange(t, p)
	optim := trainer.DefaultOptim()
	own, err := trainer.New(trainer.Config{Model: micro, Batch: p.batch, Optim: optim, Seed: p.seed, Threads: 1}, words())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	bits, err := train(context.Background(), e, 1, func(step int, loss float64) {
		want, err := own.Step(context.Background(), e.rates[step])
		if err != nil || step != told || loss != want.Loss {
			t.Errorf("step %d after %d: loss %v, want %v, %v", step, told, loss, want.Loss, err)
		}
		told++
	})
	if err != nil || told != len(e.rates) {
		t.Fatalf("%d steps of %d, %v", told, len(e.rates), err)
	}
	if want, err := score(context.Background(), e, own.Slab()); err != nil || bits != want {
		t.Errorf("%v bits per byte, want %v, %v", bits, want, err)
	}
}

// compared trains micro with PyTorch, or with a program in its place.
func compared(t *testing.T, p interpreter, pl plan) (answer, string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "exchange")
	e, err := handOver(microExchange(t, pl), file)
	if err != nil {
		t.Fatal(err)
	}
	var notes bytes.Buffer
	a, err := settings{plan: pl, python: p, threads: 1, every: 4}.compare(context.Background(), e, file, &notes)
	return a, notes.String(), err
}

// PyTorch goes the same way, step by step.
func TestPyTorchAgrees(t *testing.T) {
	const with = interpreter("/usr/bin/python3")
	if version, err := with.version(t.Context()); err != nil {
		t.Skip(err)
	} else {
		t.Log("PyTorch", version)
	}
	untied := microPlan()
	untied.model.Tied = false
	for _, p := range []plan{microPlan(), untied} {
		a, notes, err := compared(t, with, p)
		if err != nil {
			t.Fatal(err)
		}
		if !(a.LossApart < 1e-4) || !(math.Abs(a.Apart) < 1e-4) || !(a.Theirs > 1) {
			t.Errorf("tied %v: %+v\n%s", p.model.Tied, a, notes)
		}
	}
}

// stub is a program in the place of Python that says the lines.
func stub(t *testing.T, status int, lines ...string) interpreter {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("it takes a shell")
	}
	text := "#!/bin/sh\n"
	for _, line := range lines {
		text += "echo '" + line + "'\n"
	}
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte(text+fmt.Sprintf("echo trace >&2\necho why >&2\nexit %d\n", status)), 0o700); err != nil {
		t.Fatal(err)
	}
	return interpreter(path)
}

func losses(n int) []string {
	var lines []string
	for i := range n {
		lines = append(lines, fmt.Sprintf(`{"step": %d, "loss": %d}`, i, 8+i))
	}
	return lines
}

func TestWhatPythonSays(t *testing.T) {
	const end = `{"val_bpb": 4}`
	for _, c := range []struct {
		want   string
		status int
		lines  []string
	}{
		{"", 0, append(losses(10), end)},
		{`it says "{\"val_bpb\": 4}" after 9 steps of 10`, 0, append(losses(9), end)},
		{"after 10 steps of 10", 0, append(losses(11), end)},
		{"after 2 steps of 10", 0, append(append(losses(2), losses(12)[4:]...), end)},
		{"it ends without bits per byte", 0, losses(10)},
		{"exit status 3: why", 3, losses(10)},
		{`it says "hello", which is no JSON object`, 0, []string{"hello"}},
		{"after 0 steps", 0, []string{`{"step": 1}`}},
	} {
		a, notes, err := compared(t, stub(t, c.status, c.lines...), microPlan())
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("error %v, want %q", err, c.want)
		case err == nil && (a.Theirs != 4 || a.Apart != (a.Ours-4)/4 || a.LossApart < 0.3 || strings.Count(notes, "\n") != 2+3+3):
			t.Errorf("%+v\n%s", a, notes)
		}
	}
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none")
	for want, p := range map[string]interpreter{
		"there is no Python at " + none + ": pass one that has PyTorch with --python": interpreter(none),
		"there is no Python at no-such-python":                                        "no-such-python",
		"cannot load PyTorch: exit status 1: why":                                     stub(t, 1),
	} {
		if _, err := p.version(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	p := stub(t, 1)
	script := "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n"
	if err := os.WriteFile(string(p), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.version(t.Context()); err == nil || !strings.Contains(err.Error(), "has no PyTorch") || !strings.Contains(err.Error(), "python3-torch") {
		t.Errorf("error %v", err)
	}
	if v, err := stub(t, 0, "1.2.3").version(t.Context()); err != nil || v != "1.2.3" {
		t.Errorf("version %q, %v", v, err)
	}
}

func TestFlags(t *testing.T) {
	s, err := parse(strings.Fields("--tokens 2e6 --threads 2"), &bytes.Buffer{})
	if err != nil || s.steps() != 976 || s.threads != 2 || s.data != "goroot" || s.keep != "" {
		t.Errorf("%+v, %v", s, err)
	}
	for line, want := range map[string]string{
		"--model huge":   `--model is "huge"`,
		"--tokens many":  "--tokens is many",
		"--tokens NaN":   "--tokens is NaN",
		"--tokens 2047":  "at least the 2048 of one step",
		"--batch 0":      "--batch is 0",
		"--lr -1":        "Schedule Peak is -1",
		"--threads 0":    "--threads is 0",
		"--every 0":      "--every is 0",
		"--pace 1":       "not defined",
		"--threads 1 up": `"up" is no flag`,
	} {
		if _, err := parse(strings.Fields(line), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", line, err, want)
		}
	}
}

// Half a per cent is the most.
func TestAnswerAgreesOrNot(t *testing.T) {
	for _, c := range []struct {
		apart float64
		fails bool
	}{{0.0049, false}, {-0.0049, false}, {0.0051, true}, {-0.0051, true}, {math.NaN(), true}} {
		var out bytes.Buffer
		if err := (answer{Apart: c.apart}).print(&out, false); (err != nil) != c.fails || out.Len() == 0 {
			t.Errorf("%v: error %v, %q", c.apart, err, out.String())
		}
	}
	var out bytes.Buffer
	want := answer{Ours: 2, Theirs: 2, Tokens: 7}
	var got answer
	if err := errors.Join(want.print(&out, true), json.Unmarshal(out.Bytes(), &got)); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// With --keep the file stays where it was asked for; without, nothing does.
func TestPlace(t *testing.T) {
	file, remove, err := settings{}.place()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := handOver(microExchange(t, microPlan()), file); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(filepath.Dir(file)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left behind: %v", err)
	}
	kept := filepath.Join(t.TempDir(), "kept")
	if file, remove, err = (settings{keep: kept}).place(); err != nil || file != kept {
		t.Fatal(file, err)
	}
	if _, err := handOver(microExchange(t, microPlan()), file); err != nil {
		t.Fatal(err)
	}
	remove()
	if _, err := os.Stat(kept); err != nil {
		t.Error(err)
	}
}
