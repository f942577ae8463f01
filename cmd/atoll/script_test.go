package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets scripts run this program.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"atoll": main, serverOfStatus: serveStatus})
}

// TestScripts runs testdata/script: each file is a session at a shell.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:  "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"damage": damage, "interrupt": interrupt},
		Setup: func(env *testscript.Env) error {
			// The go command finds the text that ships with Go.
			for _, name := range []string{"GOROOT", "GOCACHE", "GOPATH"} {
				if value, ok := os.LookupEnv(name); ok {
					env.Setenv(name, value)
				}
			}
			env.Setenv("GOFLAGS", "")
			env.Setenv("GOTOOLCHAIN", "local")
			return nil
		},
	})
}

// damage flips one bit of one file in a folder, or in one below it.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	path := ""
	ts.Check(filepath.WalkDir(ts.MkAbs(args[0]), func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && path == "" {
			path = file
		}
		return err
	}))
	b, err := os.ReadFile(path)
	ts.Check(err)
	b[len(b)/2] ^= 1
	ts.Check(os.WriteFile(path, b, 0o600))
}

// interrupt runs a command until its first line of stdout, sends it signals
// and expects an exit code and a text on stderr:
//
//	interrupt CODE TEXT SIGNAL[,SIGNAL] COMMAND...
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	signals := map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM, "KILL": os.Kill}
	cmd := exec.Command(args[3], args[4:]...)
	cmd.Dir = ts.MkAbs(".")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	ts.Check(err)
	for name := range strings.SplitSeq(args[2], ",") {
		ts.Check(cmd.Process.Signal(signals[name]))
	}
	_ = cmd.Wait() // its error is the exit code
	if code := fmt.Sprint(cmd.ProcessState.ExitCode()); code != args[0] || !strings.Contains(stderr.String(), args[1]) {
		ts.Fatalf("exit code %s, stderr %q; want %s, %q", code, stderr.String(), args[0], args[1])
	}
}
