package torch

import (
	"bufio"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"atoll/testnet/lab/python"
)

//go:embed trainer.py
var script string

// interpreter is the Python that has PyTorch.
type interpreter string

// version returns the version of PyTorch, or an error that says what is missing.
func (p interpreter) version(ctx context.Context) (string, error) {
	if err := python.Installed(string(p)); err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, string(p), "-c", "import torch; print(torch.__version__)").Output()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && strings.Contains(string(exit.Stderr), python.NoTorch):
		return "", fmt.Errorf("%s has no PyTorch: %s", p, python.TorchRemedy)
	case errors.As(err, &exit):
		return "", fmt.Errorf("%s cannot load PyTorch: %w: %s", p, err, python.LastLine(string(exit.Stderr)))
	case err != nil:
		return "", fmt.Errorf("ask %s for PyTorch: %w", p, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// said is a line of the program: a step's loss, or at last the bits per byte.
type said struct {
	Step *int     `json:"step"`
	Loss *float64 `json:"loss"`
	Bits *float64 `json:"val_bpb"`
}

// train is the function of that name in PyTorch, on the exchange in a file, of so many steps.
func (p interpreter) train(ctx context.Context, file string, threads, steps int, tell func(step int, loss float64)) (float64, error) {
	cmd := exec.CommandContext(ctx, string(p), "-c", script, file, fmt.Sprint(threads))
	var stderr strings.Builder
	cmd.Stderr, cmd.WaitDelay, cmd.Env = &stderr, python.PipeWait, python.Env(threads)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", p, err)
	}
	bits, heard := listen(bufio.NewScanner(out), steps, tell)
	wrong := heard != nil && !errors.Is(heard, errEnded)
	if wrong {
		cmd.Process.Kill() // it might go on for long
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err != nil && !wrong:
		return 0, fmt.Errorf("PyTorch: %w: %s", err, python.LastLine(stderr.String()))
	case heard != nil:
		return 0, fmt.Errorf("PyTorch: %w", heard)
	}
	return bits, nil
}

// errEnded says that the program ended too early; its exit status may say more.
var errEnded = errors.New("it ends without bits per byte")

// listen reads what the program says until it ends: the losses of all steps in order, then bits per byte.
func listen(lines *bufio.Scanner, steps int, tell func(step int, loss float64)) (bits float64, err error) {
	for next := 0; lines.Scan(); next++ {
		var s said
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return 0, fmt.Errorf("it says %.100q, which is no JSON object: %w", lines.Text(), err)
		}
		switch {
		case next == steps && s.Bits != nil:
			return *s.Bits, nil
		case next < steps && s.Step != nil && *s.Step == next && s.Loss != nil:
			tell(next, *s.Loss)
		default:
			return 0, fmt.Errorf("it says %.100q after %d steps of %d", lines.Text(), next, steps)
		}
	}
	return 0, cmp.Or(lines.Err(), errEnded)
}
