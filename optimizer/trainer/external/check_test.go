package external

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/optimizer/trainer"
)

// wrong are the findings that are not as they have to be.
func wrong(findings []Finding) (list []string) {
	for _, f := range findings {
		if f.Wrong != "" {
			list = append(list, f.What+": "+f.Wrong)
		}
	}
	return list
}

// values are what a check begins with.
func values() []float32 {
	v := make([]float32, 23)
	for i := range v {
		v[i] = float32(i) / 8
	}
	return v
}

// adder is what the fake learner is, in this process.
type adder struct {
	trainer.Trainer
	values []float32
	loss   float64
}

func (a *adder) Params() []float32 { return a.values }

func (a *adder) Step(_ context.Context, lr float64) (trainer.StepResult, error) {
	for i := range a.values {
		a.values[i] += float32(lr)
	}
	return trainer.StepResult{Loss: a.loss}, nil
}

func TestCheckOfAGoodLearner(t *testing.T) {
	findings := Check(t.Context(), testConfig(t, "well"), values(), testPace, &Judge{&adder{values: values(), loss: 1.5}, 5})
	if bad := wrong(findings); len(bad) > 0 || len(findings) != 14 {
		t.Errorf("%d findings, wrong: %v", len(findings), bad)
	}
	if bad := wrong(Check(t.Context(), testConfig(t, "well"), values(), testPace, &Judge{&adder{values: values(), loss: 2}, 5})); len(bad) != 1 || !strings.Contains(bad[0], "loss") {
		t.Errorf("beside another trainer: %v", bad)
	}
}

func TestCheckOfBadLearners(t *testing.T) {
	for how, want := range map[string]string{
		"takes any layout": "whose tensor scale is larger than before", "blames another tensor": "does not name tensor scale", "ends without a word": "an error that names tensor scale is due",
		"mute": "no module named torch", "other layout": "other tensors", "dies": "exit status 3", "garbage": "no frame",
	} {
		if bad := wrong(Check(t.Context(), testConfig(t, how), values(), testPace, nil)); len(bad) == 0 || !strings.Contains(strings.Join(bad, "\n"), want) {
			t.Errorf("%s: %v", how, bad)
		}
	}
}

// testPace is that of a run of two fragments.
var testPace = Pace{H: 24, Fragments: 2}

// What is too slow is named, with what that means; small models may take a moment.
func TestPace(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		step, flush, load time.Duration
		bytes             int
		text, want        string
	}{
		{100 * time.Millisecond, 30 * time.Millisecond, 30 * time.Millisecond, 100 * mib, "a step takes 100ms: with H = 24 each of 2 fragments is flushed and loaded every 2.4s, and all of that takes 60ms, 2.4 % of the time", ""},
		{time.Millisecond, 900 * time.Millisecond, 0, 4, "every 24ms", ""},
		{29 * time.Second, 0, 0, mib, "every 11m36s", ""},
		{31 * time.Second, 0, 0, mib, "", "a step takes 31s: a node that leaves waits 30s"},
		{time.Second, 3100 * time.Millisecond, 0, 512 * mib, "", "a flush of 512 MiB takes 3.1s, at most 3s are allowed"},
		{time.Second, 2 * time.Second, 9 * time.Second, 512 * mib, "", "a load of 512 MiB takes 9s"},
	} {
		text, err := testPace.judge(c.step, c.flush, c.load, c.bytes)
		if !strings.Contains(text, c.text) || (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
}

// A name of the package is a Python module, and Python finds the package; a line is the shell's.
func TestCommand(t *testing.T) {
	dir := t.TempDir()
	c, err := Command("torch --device cpu", dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Args[len(c.Args)-1]; got != "exec python3 -m atoll.torch --device cpu" {
		t.Errorf("%q", got)
	}
	i := slices.IndexFunc(c.Env, func(s string) bool { return strings.HasPrefix(s, "PYTHONPATH=") })
	path, _, _ := strings.Cut(strings.TrimPrefix(c.Env[i], "PYTHONPATH="), string(os.PathListSeparator))
	for _, name := range []string{"atoll/__init__.py", "atoll/torch/__main__.py", "atoll/idle.py"} {
		if _, err := os.Stat(filepath.Join(path, name)); err != nil {
			t.Error(err)
		}
	}
	for line, want := range map[string]string{
		"torchrun:2":            "-m atoll.torch ",
		"torchrun:2 --fsdp":     "-m atoll.torch --fsdp",
		"torchrun:2 hf --fsdp":  "-m atoll.hf --fsdp",
		"torchrun:2 torch":      "-m atoll.torch ",
		"torchrun:0":            "! 1 to 64",
		"torchrun:x torch":      "! 1 to 64",
		"torchrun:2 jax":        `! "jax" cannot be a data-parallel group; use torchrun:2 torch or hf`,
		"torchrun:2 train.py":   `! "train.py" cannot be a data-parallel group`,
		"torchrun -m atoll.hf ": "",
	} {
		want, refused := strings.CutPrefix(want, "! ")
		c, err := Command(line, dir)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
		if err == nil && want != "" {
			want = "exec python3 -m torch.distributed.run --standalone --nproc-per-node 2 " + want
		}
		if err == nil && c.Args[len(c.Args)-1] != cmp.Or(want, line) {
			t.Errorf("%s: %q, want %q", line, c.Args, want)
		}
		if err == nil && slices.Contains(c.Env, "OMP_NUM_THREADS=1") != (want != "") {
			t.Errorf("%s: environment %q", line, c.Env)
		}
	}
	broken := filepath.Join(path, "atoll/idle.py")
	if err := os.WriteFile(broken, []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err = Command(`CUDA_VISIBLE_DEVICES=1 python3 "my script.py"`, dir); err != nil || c.Args[len(c.Args)-1] != `CUDA_VISIBLE_DEVICES=1 python3 "my script.py"` {
		t.Errorf("%v %v", c.Args, err)
	}
	if b, err := os.ReadFile(broken); err != nil || string(b) == "broken" {
		t.Error("a damaged file of the package stays", err)
	}
	if c, err = Command("standin --step 1s", dir); err != nil || !slices.Equal(c.Args[1:], []string{"standin", "--step", "1s"}) {
		t.Errorf("%v %v", c.Args, err)
	}
}
