package external

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"atoll/optimizer/trainer"
)

// waits is a learner that waits for scripts, and the file by which they find it.
func waits(t *testing.T) (*Learner, string) {
	t.Helper()
	cfg := testConfig(t, "")
	cfg.Command = Run{Attach: filepath.Join(cfg.Dir, attachFile)}
	l, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, cfg.Command.Attach
}

// noticed waits until the file has what a test wants to see.
func noticed(t *testing.T, path string, seen func(notice) bool) (n notice) {
	t.Helper()
	for end := time.Now().Add(helloWithin); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil && json.Unmarshal(b, &n) == nil && seen(n) {
			return n
		}
	}
	t.Fatalf("%s has %+v", path, n)
	return n
}

func open(n notice) bool { return n.Address != "" }

// script starts a program that attaches, as its user would.
func script(t *testing.T, n notice, how string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), envFake+"="+how, EnvAddress+"="+n.Address, EnvToken+"="+n.Token)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

// attached has a script attach and start.
func attached(t *testing.T, l *Learner, path, how string) *exec.Cmd {
	t.Helper()
	c := script(t, noticed(t, path, open), how)
	noticed(t, path, func(n notice) bool { return n.Attached == "fake 1" })
	for l.Absent() {
		runtime.Gosched()
	}
	if err := l.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

// A script attaches, ends, and comes back; the values go on, and the node ends no process.
func TestScriptAttaches(t *testing.T) {
	l, path := waits(t)
	first := noticed(t, path, open)
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v: mode %v, want 0600: it has a secret", err, info.Mode())
	}
	if !l.Absent() {
		t.Error("somebody is there")
	}
	for _, err := range []error{l.Flush(all()), l.Restart(t.Context())} {
		if err != nil && !errors.Is(err, ErrNobody) {
			t.Errorf("before a script came: %v", err)
		}
	}
	if _, err := l.Step(t.Context(), 1); !errors.Is(err, ErrNobody) || !errors.Is(err, trainer.ErrLost) {
		t.Errorf("a step before a script came: %v", err)
	}
	c := attached(t, l, path, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[3] != 1 || l.Name() != "fake 1" {
		t.Errorf("%v: value %v, name %s", err, l.Params()[3], l.Name())
	}
	c.Process.Kill()
	if _, err := l.Step(t.Context(), 1); !errors.Is(err, trainer.ErrLost) || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("after its end: %v", err)
	}
	if second := noticed(t, path, open); second.Token == first.Token {
		t.Error("a token is taken twice")
	}
	c = attached(t, l, path, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[3] != 2 {
		t.Errorf("%v: a second script came to value %v", err, l.Params()[3])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the script did not end by itself: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file is still there: %v", err)
	}
}

// Who does not know the token is nobody, and whoever comes second finds nobody to speak with.
func TestOthersDoNotAttach(t *testing.T) {
	l, path := waits(t)
	n := noticed(t, path, open)
	stranger := script(t, notice{Address: n.Address, Token: "guessed"}, "well")
	if err := stranger.Wait(); err != nil { // the fake ends in peace when the connection does
		t.Error(err)
	}
	if !l.Absent() {
		t.Error("a stranger came in")
	}
	attached(t, l, path, "well")
	second := script(t, n, "well")
	if err := second.Wait(); err == nil || second.ProcessState.ExitCode() != 4 {
		t.Errorf("a second script: %v, want no connection", err)
	}
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Errorf("the first one's step: %v", err)
	}
}

// Strangers that connect and say nothing keep no script out. One after the other they would, for longer than noticed waits.
func TestSilentStrangersKeepNobodyOut(t *testing.T) {
	l, path := waits(t)
	n := noticed(t, path, open)
	strangers := make([]net.Conn, 2*mostGreeted+8)
	for i := range strangers {
		strangers[i] = connects(t, n)
	}
	attached(t, l, path, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Error(err)
	}
	for i, conn := range strangers {
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("stranger %d was told something", i)
		}
	}
}

// connects is somebody on this machine who says nothing.
func connects(t *testing.T, n notice) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", n.Address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// A door closes at once, whoever stands before it.
func TestDoorClosesOnSilentStrangers(t *testing.T) {
	l, path := waits(t)
	conn := connects(t, noticed(t, path, open))
	began := time.Now()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) >= greetWithin {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// A script that leaves before the node has use for it is nobody, and another may come.
func TestScriptLeavesBeforeItIsTaken(t *testing.T) {
	l, path := waits(t)
	c := script(t, noticed(t, path, open), "well")
	noticed(t, path, func(n notice) bool { return n.Attached != "" })
	c.Process.Kill()
	noticed(t, path, open)
	if !l.Absent() {
		t.Error("somebody is there")
	}
	attached(t, l, path, "well")
}

// A script of another model is told so, and the next one may be right.
func TestScriptThatDoesNotFit(t *testing.T) {
	l, path := waits(t)
	c := script(t, noticed(t, path, open), "other layout")
	for l.Absent() {
		runtime.Gosched()
	}
	if err := l.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "the model of the run") {
		t.Errorf("another model: %v", err)
	}
	c.Wait()
	attached(t, l, path, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

// The state of an earlier script is given to the next; one that refuses it stays, and begins without.
func TestScriptRefusesAState(t *testing.T) {
	l, path := waits(t)
	c := attached(t, l, path, "refuses a state and stays")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.State(); err != nil {
		t.Fatal(err)
	}
	c.Process.Kill()
	if err := l.Flush(all()); !errors.Is(err, trainer.ErrLost) {
		t.Errorf("flush: %v", err)
	}
	l.Accounted()
	attached(t, l, path, "refuses a state and stays")
	if _, err := l.Step(t.Context(), 1); err != nil || l.Steps() != 2 {
		t.Errorf("%v after %d steps", err, l.Steps())
	}
}

// A script that leaves in order gives what it has stepped, and the next one goes on from there.
func TestScriptLeaves(t *testing.T) {
	l, path := waits(t)
	attached(t, l, path, "leaves")
	for range 2 {
		if _, err := l.Step(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.Step(t.Context(), 1); !errors.Is(err, ErrLeft) || !errors.Is(err, trainer.ErrLost) || !strings.Contains(err.Error(), "fake 1") {
		t.Fatal(err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[3] != 2 || l.Steps() != 2 {
		t.Errorf("%v: value %v after %d steps", err, l.Params()[3], l.Steps())
	}
	attached(t, l, path, "well")
	if _, err := l.Step(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(all()); err != nil || l.Params()[3] != 3 {
		t.Errorf("%v: value %v", err, l.Params()[3])
	}
}

func TestAttachTakesNoFlags(t *testing.T) {
	if _, err := Command("attach --device cuda", t.TempDir()); err == nil || !strings.Contains(err.Error(), "no flags") {
		t.Error(err)
	}
	dir := filepath.Join(t.TempDir(), "learner")
	c, err := Command("attach", dir)
	if err != nil || c.Attach != filepath.Join(dir, attachFile) || len(c.Args) > 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if line := Attached(dir); !strings.Contains(line, `folder="`+filepath.Dir(dir)+`"`) {
		t.Error(line)
	}
}
