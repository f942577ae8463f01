package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"

	"atoll/tensor"
)

//go:embed trainer.py
var script string

// python is the interpreter that has PyTorch.
type python string

// remedy says how to get what is missing.
const remedy = "Debian and Ubuntu have it as python3-torch (apt-get install python3-torch, then --python /usr/bin/python3)"

// pipeWait bounds the wait for what a killed program has itself started.
const pipeWait = time.Second

// coreType is what OpenBLAS, which PyTorch multiplies with on Debian, calls processors with AVX-512: it
// takes those that are newer than itself for less.
const coreType = "OPENBLAS_CORETYPE"

// version returns that of PyTorch, or an error that says what is missing.
func (p python) version(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, string(p), "-c", "import torch; print(torch.__version__)").Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("there is no Python at %s: pass one that has PyTorch with --python; %s", p, remedy)
	case errors.As(err, &exit) && bytes.Contains(exit.Stderr, []byte("No module named 'torch'")):
		return "", fmt.Errorf("%s has no PyTorch: %s", p, remedy)
	case errors.As(err, &exit):
		return "", fmt.Errorf("%s cannot load PyTorch: %w: %s", p, err, lastLine(exit.Stderr))
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
func (p python) train(ctx context.Context, file string, threads, steps int, tell func(step int, loss float64)) (float64, error) {
	cmd := exec.CommandContext(ctx, string(p), "-c", script, file, fmt.Sprint(threads))
	var stderr bytes.Buffer
	cmd.Stderr, cmd.WaitDelay = &stderr, pipeWait
	cmd.Env = append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%d", threads), fmt.Sprintf("OPENBLAS_NUM_THREADS=%d", threads))
	if os.Getenv(coreType) == "" && tensor.Kernel() == "avx512" {
		cmd.Env = append(cmd.Env, coreType+"=SKYLAKEX")
	}
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
		return 0, fmt.Errorf("PyTorch: %w: %s", err, lastLine(stderr.Bytes()))
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

// lastLine is where programs say what went wrong.
func lastLine(stderr []byte) []byte {
	text := bytes.TrimSpace(stderr)
	return text[bytes.LastIndexByte(text, '\n')+1:]
}
