package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"

	"atoll/testnet/lab/python"
)

// Child is a command that measures in a process of its own and answers with one JSON
// object, the last line of its stdout.
type Child struct {
	Name string   // in errors
	Args []string // the program first
}

// Ask runs the command and decodes its answer. The error holds the last line of its
// stderr, where programs say what went wrong.
func (c Child) Ask(ctx context.Context, answer any) error {
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = python.PipeWait
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return c.explain(err, python.LastLine(stderr.String()))
	}
	line := python.LastLine(stdout.String())
	if err := json.Unmarshal([]byte(line), answer); err != nil {
		return fmt.Errorf("%s: its last line is %.100q, not a JSON object: %w", c.Name, line, err)
	}
	return nil
}

func (c Child) explain(err error, said string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("%s: there is no program %s: %w", c.Name, c.Args[0], err)
	case said != "":
		return fmt.Errorf("%s: %w: %s", c.Name, err, said)
	}
	return fmt.Errorf("%s: %w", c.Name, err)
}
