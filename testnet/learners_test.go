package testnet

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/gossip/hello"
)

func TestLearnersOfNodes(t *testing.T) {
	ls, err := parseLearners([]string{"torch --device cpu", "1,3-4:idle", "3:python3 -c 'a:b'"})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[int]string{0: "torch --device cpu", 1: "idle", 3: "python3 -c 'a:b'", 4: "idle", 9: "torch --device cpu"} {
		if got := ls.of(node); got != want {
			t.Errorf("node %d: %q, want %q", node, got, want)
		}
	}
	if got := learners(nil).of(0); got != "" {
		t.Errorf("without --learner: %q", got)
	}
}

func TestLearnerErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":              `--learner "" names no program`,
		"1:":            `--learner "1:" names no program`,
		"1-0:torch":     "--learner",
		"2:torch":       "--learner names node 2: there are only nodes 0 to 1",
		"c:/torch.exe":  "",
		"0:torch --cpu": "",
	} {
		cfg := toyWorld(t)
		cfg.Learner = []string{text}
		if err := cfg.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// Programs train beside the built-in trainer. One dies in the middle, one says that it diverged:
// that costs what they had not published, and nothing else.
func TestLearnersInProcesses(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some time")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3 here: the learner of this test is a program in Python")
	}
	cfg := chaosWorld(t, uint64(12*toyRate), "")
	once := filepath.Join(t.TempDir(), "once")
	cfg.Learner = []string{
		"1:idle --step-seconds 0.02", "2:idle --step-seconds 0.02 --die-at-step 60 --once " + once + "2",
		"3:idle --step-seconds 0.02 --nan-at-step 100 --once " + once + "3",
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
	if gone := r.TokensTrained - r.TokensFolded; gone == 0 || gone > 10_000 {
		t.Errorf("two learners have died, and %d tokens are not in the model", gone)
	}
}
