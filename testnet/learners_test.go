package testnet

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/hello"
	"atoll/node"
)

func TestLearnersOfNodes(t *testing.T) {
	ls, err := parseLearners([]string{"torch --device cpu", "1,3-4:idle", "3:python3 -c 'a:b'", "5:torchrun:2 hf --fsdp", "6:go"})
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[int]string{0: "torch --device cpu", 1: "idle", 3: "python3 -c 'a:b'", 4: "idle", 5: "torchrun:2 hf --fsdp", 6: node.BuiltinLearner, 9: "torch --device cpu"} {
		if got := ls.of(index); got != want {
			t.Errorf("node %d: %q, want %q", index, got, want)
		}
		if got := ls.inProcess(index); got != (index != 6) {
			t.Errorf("node %d trains in a process of its own: %v", index, got)
		}
	}
	if got := choices(nil).of(0); got != "" {
		t.Errorf("without --learner: %q", got)
	}
}

// A program is killed by the process group that its node gave it, a data-parallel group's process alone. What
// a process of a data-parallel group starts has its rank too.
func TestVictim(t *testing.T) {
	all := []relative{
		{pid: 10, parent: 1, command: "atoll join"}, {pid: 14, parent: 13, rank: "1", command: "compiler"}, {pid: 11, parent: 10, command: "torchrun"},
		{pid: 12, parent: 11, rank: "0"}, {pid: 13, parent: 11, rank: "1"},
	}
	for rank, want := range map[string]int{"": -11, "0": 12, "1": 13, "2": 0} {
		if got := victim(all, 10, rank); got != want {
			t.Errorf("rank %q: process %d, want %d", rank, got, want)
		}
	}
	if got := victim(all[:1], 10, ""); got != 0 {
		t.Errorf("without a learner: process %d", got)
	}
}

// What a node has started is found by its mark, and not what another has started whose name
// begins so.
func TestRelatives(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the environment of processes")
	}
	dir := t.TempDir()
	w := &world{cfg: Config{Place: Place{Dir: dir}}}
	m, other := &member{dir: filepath.Join(dir, "node1")}, &member{dir: filepath.Join(dir, "node10")}
	cmd := exec.Command("sleep", "1000")
	cmd.Env = []string{"RANK=3", m.mark()}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	// Linux closes the pipe on which Start waits before it shows the environment of the new program.
	all, err := relatives(m.mark())
	for until := time.Now().Add(10 * time.Second); err == nil && len(all) == 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
		all, err = relatives(m.mark())
	}
	want := relative{pid: cmd.Process.Pid, parent: os.Getpid(), rank: "3", command: "sleep 1000"}
	if err != nil || !slices.Equal(all, []relative{want}) {
		t.Errorf("%+v, %v; want %+v", all, err, want)
	}
	if all, err := relatives(other.mark()); err != nil || len(all) > 0 {
		t.Errorf("of another: %+v, %v", all, err)
	}
	if c := w.checkOrphans(0); c == nil || c.Passed || !strings.Contains(c.Detail, "sleep 1000") {
		t.Errorf("%+v", c)
	}
	<-ended // the check has ended it
	if c := w.checkOrphans(0); c == nil || !c.Passed {
		t.Errorf("%+v", c)
	}
}

func TestLearnerErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":              `--learner "" names no program`,
		"1:":            `--learner "1:" names no program`,
		"1-0:torch":     "--learner",
		"2:torch":       "--learner names node 2: there are only nodes 0 to 1",
		"c:/torch.exe":  "",
		"torchrun:2":    "",
		"0:torch --cpu": "",
	} {
		cfg := toyWorld(t)
		cfg.Learner = []string{text}
		if err := cfg.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// A process of a data-parallel group is killed only where there is one.
func TestKillsOfRanks(t *testing.T) {
	for _, c := range []struct{ learner, chaos, want string }{
		{"1:torchrun:2 --fsdp", "kill learner 1 rank 1 @1s", ""},
		{"1:torchrun --nproc-per-node 4 train.py", "kill learner 1 rank 3 @1s", ""},
		{"1:torchrun:2", "kill learner 1 rank 2 @1s", `"kill-learner 1 rank 2 @1s": the learner "torchrun:2" of node 1 has no process of rank 2; give it a data-parallel group`},
		{"1:torch", "kill learner 1 rank 0 @1s", `the learner "torch" of node 1 has no process of rank 0; give it a data-parallel group, such as --learner 1:torchrun:2`},
		{"1:torch", "kill learner any rank 0 @1s", "kill-learner any rank 0"},
		{"1:torchrun:2", "kill learner any rank 1 @1s", ""},
		{"1:torch", "kill learner any @1s", ""},
		{"1:go", "kill learner any @1s", "node 0 trains by itself"},
	} {
		cfg := toyWorld(t)
		cfg.Learner, cfg.Chaos = []string{c.learner}, c.chaos
		if err := cfg.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: error %v, want %q", c.learner, c.chaos, err, c.want)
		}
	}
}

// Two flags that are wrong are told of in one order.
func TestTargetsAreToldInOrder(t *testing.T) {
	cfg := toyWorld(t)
	cfg.Learner, cfg.Precision = []string{"7:torch"}, []string{"8:bf16"}
	for range 20 {
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--learner names node 7") || !strings.Contains(err.Error(), "--precision names node 8") {
			t.Fatal(err)
		}
	}
}

func TestPrecisionErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":       `--precision "" names none; write it like bf16 or 1:bf16`,
		"fp8":    `--precision: precision "fp8": use f32, bf16, or auto`,
		"2:bf16": "--precision names node 2: there are only nodes 0 to 1",
		"1:bf16": "",
		"auto":   "",
	} {
		cfg := toyWorld(t)
		cfg.Precision = []string{text}
		if err := cfg.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	cfg := toyWorld(t)
	cfg.Precision, cfg.Baseline = []string{"bf16"}, "dp"
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "dp trains in f32") {
		t.Errorf("error %v", err)
	}
}

// Programs train beside the built-in trainer. One is killed, one dies, one says that it diverged:
// that costs what they had not published, and nothing else.
func TestLearnersInProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some time")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: the learner of this test is a program in Python")
	}
	cfg := chaosWorld(t, uint64(9*toyRate), "kill learner 1 @30%")
	once := filepath.Join(t.TempDir(), "once")
	cfg.Learner = []string{
		"1:idle --step-seconds 0.03", "2:idle --step-seconds 0.03 --die-at-step 60 --once " + once + "2",
		"3:idle --step-seconds 0.03 --nan-at-step 100 --once " + once + "3",
	}
	cfg.Timeout = 5 * time.Minute
	r := runWorld(t, cfg)
	for i, n := range r.NodesReport {
		if n.Capability == nil || (n.Capability.Trainer == hello.External) != (i > 0) {
			t.Errorf("%s: %+v", n.Name, n.Capability)
		}
		if n.Share < 0.05 {
			t.Errorf("%s has a share of %v", n.Name, n.Share)
		}
	}
	if len(r.LearnerS) != 1 || r.Learners != 1 {
		t.Errorf("%d learners were killed, and back after %v s", r.Learners, r.LearnerS)
	}
	if gone := r.TokensTrained - r.TokensFolded; gone == 0 || gone > 10_000 {
		t.Errorf("three learners have died, and %d tokens are not in the model", gone)
	}
}

// Baselines train with atoll's own trainer, or with what stands in for one.
func TestLearnersOfABaseline(t *testing.T) {
	for learner, well := range map[string]bool{"go": true, "standin": true, "1:standin --step 1s": true, "torch --threads 1": false, "0:jax": false, "standing": false} {
		for _, name := range []string{"dp", Atoll} {
			err := Config{Nodes: 2, Baseline: name, Learner: []string{learner}}.Validate()
			if want := well || name == Atoll; (err == nil) != want {
				t.Errorf("%s with %q: %v", name, learner, err)
			}
		}
	}
}
