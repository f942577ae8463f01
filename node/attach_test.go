package node

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"atoll/node/status"
)

// attachIdle starts a program that trains nothing beside a node, as its user would.
func attachIdle(t *testing.T, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("python3", append([]string{"-m", "atoll.idle", "--step-seconds", "0.02"}, flags...)...)
	source, err := filepath.Abs("../optimizer/trainer/external/python")
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(os.Environ(), "PYTHONPATH="+source, "ATOLL_DIR="+dir)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func told(s status.Snapshot, kind, text string) bool {
	for _, e := range s.Events {
		if e.Kind == kind && strings.Contains(e.Text, text) {
			return true
		}
	}
	return false
}

// A node waits for its script, serves meanwhile, and goes on when one is killed and another comes.
func TestScriptsAttachToANode(t *testing.T) {
	t.Parallel()
	needsPython(t)
	g, values := layoutRun(t, 60_000)
	first := launch(t, Config{Genesis: g.Encode(), Init: values, Learner: " attach", Pace: slowPace})
	s := first.until("it waits for a script", func(s status.Snapshot) bool { return strings.Contains(s.Stage, "atoll.join(model, folder=") })
	if dir, err := filepath.Abs(first.cfg.Dir); err != nil || !strings.Contains(s.Stage, dir) || s.Step != 0 || s.Peers[0].Trainer != "external" {
		t.Errorf("it says %q, step %d, %+v", s.Stage, s.Step, s.Peers[0])
	}
	second := launch(t, Config{Link: first.link(), Learner: "idle --step-seconds 0.02", Pace: 4 * slowPace})
	second.until("it contributes to a node that waits", contributes)
	script := attachIdle(t, first.cfg.Dir)
	first.until("its script trains", func(s status.Snapshot) bool { return s.Step > 0 && s.Stage == "" })
	script.Process.Kill()
	script.Wait()
	first.until("it waits again", func(s status.Snapshot) bool {
		return strings.Contains(s.Stage, "atoll.join(") && told(s, "learner lost", "has ended")
	})
	script = attachIdle(t, first.cfg.Dir)
	ends := []status.Snapshot{first.end(), second.end()}
	if err := script.Wait(); err != nil {
		t.Errorf("the script was not told to stop: %v", err)
	}
	if !told(ends[0], "learner back", "atoll.idle") || ends[0].StateDigest != ends[1].StateDigest {
		t.Errorf("events %+v; states %.8s, %.8s", ends[0].Events, ends[0].StateDigest, ends[1].StateDigest)
	}
	if left, err := filepath.Glob(filepath.Join(first.cfg.Dir, "learner", "*attach*")); err != nil || len(left) > 0 {
		t.Errorf("%v: %v are left", err, left)
	}
	checkNothingLost(t, second.cfg.Dir, ends[1])
}

// A script that leaves in order loses nothing, although another comes for the rest.
func TestScriptsLeaveANode(t *testing.T) {
	t.Parallel()
	needsPython(t)
	g, values := layoutRun(t, 20_000)
	m := launch(t, Config{Genesis: g.Encode(), Init: values, Learner: "attach", Pace: slowPace})
	m.until("it waits for a script", func(s status.Snapshot) bool { return s.Stage != "" })
	attachIdle(t, m.cfg.Dir, "--leave-after", "50")
	s := m.until("its script leaves", func(s status.Snapshot) bool { return told(s, "learner left", "atoll.idle") && s.Stage != "" })
	if s.Step != 50 {
		t.Errorf("%d steps, want the 50 of the script that left", s.Step)
	}
	attachIdle(t, m.cfg.Dir)
	end := m.end()
	for p, lost := range end.Account.OwnLostHere {
		if lost != 0 || end.Account.OwnDiscarded[p] != 0 {
			t.Errorf("fragment %d: %d tokens are lost, %d discarded", p, lost, end.Account.OwnDiscarded[p])
		}
	}
	checkNothingLost(t, m.cfg.Dir, end)
}
