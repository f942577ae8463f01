// Package program builds and calls the atoll program for benchmarks that run real processes.
package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrUsage is wrapped by errors of what was typed, and ErrMissed says that less came out than is asked.
var (
	ErrUsage  = errors.New("it is typed otherwise")
	ErrMissed = errors.New("less came out than is asked")
)

// leaveWithin is how long a program that is interrupted may take to end what it has started.
const leaveWithin = 30 * time.Second

// Build makes the program of the source that the caller is run from, in a folder, and returns
// its path.
func Build(ctx context.Context, dir string, log io.Writer) (string, error) {
	path := filepath.Join(dir, "atoll")
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", path, "./cmd/atoll")
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build atoll: %w, or pass --atoll", err)
	}
	return path, nil
}

// Output calls a program and returns what it printed, also where it fails. What it says on
// stderr goes to log, and its last line into the error. The environment is this process's if env
// is nil. The end of ctx interrupts the program.
func Output(ctx context.Context, log io.Writer, env []string, name string, args ...string) ([]byte, error) {
	out, _, err := Measured(ctx, log, env, name, args...)
	return out, err
}

// Measured is Output, and tells the time that processors spent for the program and, on Unix, for the
// processes that it started and waited for.
func Measured(ctx context.Context, log io.Writer, env []string, name string, args ...string) ([]byte, time.Duration, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay, cmd.Env = leaveWithin, env
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&said, log)
	err := cmd.Run()
	spent := time.Duration(0)
	if cmd.ProcessState != nil {
		spent = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err != nil {
		err = errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, LastLine(said.Bytes())))
	}
	return out.Bytes(), spent, err
}

// LastLine is the last line of a text, without what is white around it.
func LastLine(text []byte) []byte {
	text = bytes.TrimSpace(text)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// module is the line by which go.mod of the repository's top is known.
const module = "module atoll\n"

// AtTop makes the top of the repository the folder that this process works in: go run -C starts it elsewhere, and what is
// typed, built and written begins there. Where there is no repository around, it stays.
func AtTop() error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), module) {
			return os.Chdir(dir)
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
		dir = filepath.Dir(dir)
	}
}
