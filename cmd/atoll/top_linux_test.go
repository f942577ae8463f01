package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pseudoTerminal is both ends of one of 80 x 24: what a person has, and what a program has.
func pseudoTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80})
	}
	if err == nil {
		program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// watched is atoll top in a terminal.
type watched struct {
	t       *testing.T
	cmd     *exec.Cmd
	person  *os.File
	program *os.File
	before  unix.Termios
	wrote   chan []byte // what it has written
	all     bytes.Buffer
}

// watch starts atoll top on folders, and waits until it has drawn the run.
func watch(t *testing.T, dir string) *watched {
	t.Helper()
	w := &watched{t: t, wrote: make(chan []byte)}
	w.person, w.program = pseudoTerminal(t)
	w.before = w.modes()
	w.cmd = exec.Command("atoll", "top", dir)
	w.cmd.Stdin, w.cmd.Stdout, w.cmd.Stderr = w.program, w.program, w.program
	w.cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cmd.Process.Kill() }) // it may have ended
	go func() {
		defer close(w.wrote)
		for {
			b := make([]byte, 4096)
			n, err := w.person.Read(b)
			if err != nil {
				return
			}
			w.wrote <- b[:n]
		}
	}()
	w.until("opticks")
	return w
}

func (w *watched) modes() unix.Termios {
	w.t.Helper()
	modes, err := unix.IoctlGetTermios(int(w.program.Fd()), unix.TCGETS)
	if err != nil {
		w.t.Fatal(err)
	}
	return *modes
}

// until reads until the program has written a text.
func (w *watched) until(text string) {
	w.t.Helper()
	late := time.After(longestWait)
	for !strings.Contains(w.all.String(), text) {
		select {
		case b, ok := <-w.wrote:
			if !ok {
				w.t.Fatalf("it never wrote %q: %q", text, w.all.String())
			}
			w.all.Write(b)
		case <-late:
			w.t.Fatalf("it never wrote %q: %q", text, w.all.String())
		}
	}
}

// marker is written by the test behind the program's last word, so that all of that was read.
const marker = "\nthe program has ended\n"

// ended waits for the program's end and returns its exit code and what it wrote after it gave the
// screen back, without escape sequences. It fails the test if the terminal is not as before.
func (w *watched) ended() (code int, last string) {
	w.t.Helper()
	done := make(chan error, 1)
	go func() { done <- w.cmd.Wait() }()
	late := time.After(longestWait)
	for running := true; running; {
		select {
		case b := <-w.wrote:
			w.all.Write(b)
		case <-done:
			running = false
		case <-late:
			w.t.Fatalf("it does not end: %q", w.all.String())
		}
	}
	if now := w.modes(); now != w.before {
		w.t.Errorf("the terminal was %+v and is %+v", w.before, now)
	}
	if _, err := io.WriteString(w.program, marker); err != nil {
		w.t.Fatal(err)
	}
	w.until("the program has ended\r\n")
	drawn, after, _ := strings.Cut(w.all.String(), leaveAltScreen)
	w.asBefore(drawn + leaveAltScreen + after)
	text, _, _ := strings.Cut(after, "\r\nthe program has ended")
	return w.cmd.ProcessState.ExitCode(), strings.TrimSpace(escapes.ReplaceAllString(text, ""))
}

const leaveAltScreen = "\x1b[?1049l"

var (
	escapes = regexp.MustCompile(`\x1b(\[[0-9;:<=>?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>78])`)
	modes   = regexp.MustCompile(`\x1b\[\?([0-9;]+)([hl])`)
	keys    = regexp.MustCompile(`\x1b\[[=><][0-9;]*u`)
	// otherKeys is of xterm: modified keys are told apart.
	otherKeys = regexp.MustCompile(`\x1b\[>4[0-9;]*m`)
)

// asBefore fails the test if a mode that was set is left set: the other screen, a hidden cursor, the
// marks around what is pasted, the reports of keys and of the mouse.
func (w *watched) asBefore(written string) {
	w.t.Helper()
	const wraps, cursor = "7", "25" // those that are on before
	last := map[string]string{}
	for _, m := range modes.FindAllStringSubmatch(written, -1) {
		last[m[1]] = m[2]
	}
	if last["1049"] == "" {
		w.t.Errorf("it was never on the other screen: %q", written)
	}
	for mode, to := range last {
		if (to == "h") != (mode == cursor || mode == wraps) {
			w.t.Errorf("mode %s is left at %s: %q", mode, to, written)
		}
	}
	if reports := keys.FindAllString(written, -1); len(reports) < 2 || reports[len(reports)-1] != "\x1b[<1u" {
		w.t.Errorf("reports of keys are left on: %q", reports)
	}
	if others := otherKeys.FindAllString(written, -1); len(others) < 2 || others[len(others)-1] != "\x1b[>4m" {
		w.t.Errorf("names of other keys are left on: %q", others)
	}
}

// However it ends, atoll top leaves the terminal as it was. It says in one line what became of the
// node if that has ended, and nothing if a person had enough.
func TestTopGivesTheTerminalBack(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes, and waits until they miss a node")
	}
	trains := trainingStatus()
	finished := trains
	finished.Finished, finished.TokensFolded = true, 3_000_000
	for _, c := range []struct {
		name string
		do   func(t *testing.T, top *watched, node *exec.Cmd, dir string) error
		code int
		last string // how the last line begins; "" = there is none
	}{
		{"q", func(_ *testing.T, top *watched, _ *exec.Cmd, _ string) error { return top.typed("q") }, exitDone, ""},
		{"Ctrl-C", func(_ *testing.T, top *watched, _ *exec.Cmd, _ string) error { return top.typed("\x03") }, exitDone, ""},
		{"Escape", func(_ *testing.T, top *watched, _ *exec.Cmd, _ string) error { return top.typed("\x1b") }, exitDone, ""},
		{"SIGTERM", func(_ *testing.T, top *watched, _ *exec.Cmd, _ string) error {
			return top.cmd.Process.Signal(syscall.SIGTERM)
		}, exitDone, ""},
		{"the node leaves", func(_ *testing.T, _ *watched, node *exec.Cmd, _ string) error {
			return node.Process.Signal(syscall.SIGTERM)
		}, exitDone, "the node has ended: left in order: 750k tokens folded"},
		{"the run ends after the last look", func(t *testing.T, _ *watched, node *exec.Cmd, dir string) error {
			writeStatus(t, dir, finished)
			return node.Process.Signal(syscall.SIGTERM)
		}, exitDone, "the node has ended: the run is over: 3.00M tokens folded"},
		{"the node dies", func(_ *testing.T, _ *watched, node *exec.Cmd, _ string) error { return node.Process.Kill() },
			exitFailed, "atoll: the node has ended, and died without leaving in order: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir, node := nodeOfStatus(t, trains)
			top := watch(t, dir)
			if err := c.do(t, top, node, dir); err != nil {
				t.Fatal(err)
			}
			code, last := top.ended()
			if code != c.code || !strings.HasPrefix(last, c.last) || (last == "") != (c.last == "") {
				t.Errorf("exit code %d, last line %q; want %d and %q", code, last, c.code, c.last)
			}
		})
	}
}

func (w *watched) typed(keys string) error {
	_, err := io.WriteString(w.person, keys)
	return err
}
