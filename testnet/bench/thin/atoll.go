package thin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// program is an atoll to run.
type program struct {
	path string
	keep bool      // the folders of runs stay
	log  io.Writer // what it says while it runs
}

// leaveWithin is how long a testnet that is interrupted may take to end its nodes.
const leaveWithin = 30 * time.Second

// run calls the program and returns what it printed.
func (p program) run(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = leaveWithin
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&said, p.log)
	if err := cmd.Run(); err != nil {
		return out.Bytes(), errors.Join(ctx.Err(), fmt.Errorf("%w: %s", err, lastLine(said.String())))
	}
	return out.Bytes(), nil
}

func lastLine(text string) string {
	text = strings.TrimSpace(text)
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// testnet runs a world. One whose checks fail has a report as well; without one the outcome says why.
func (p program) testnet(ctx context.Context, args []string) (Outcome, error) {
	dir, err := os.MkdirTemp("", "atoll-thin-")
	if err != nil {
		return Outcome{}, fmt.Errorf("make a folder for the run: %w", err)
	}
	if !p.keep {
		defer os.RemoveAll(dir)
	}
	full := append([]string{"testnet", "--json", "--dir", filepath.Join(dir, "world")}, args...)
	out, ended := p.run(ctx, full...)
	if ctx.Err() != nil {
		return Outcome{}, ended
	}
	o, err := readReport(out)
	if err != nil {
		return Outcome{Failed: errors.Join(ended, err).Error()}, nil
	}
	return o, nil
}

// links are what learners have to spend.
type links struct {
	learners int
	bits     string // such as 20mbit
	step     time.Duration
}

// chosen is what `atoll new --bandwidth` says of links.
type chosen struct {
	H         int    `json:"h"`
	Fragments int    `json:"fragments"`
	Codec     string `json:"codec"`
	Expected  struct {
		LinkShare float64 `json:"link_share"`
	} `json:"expected"`
}

// choose asks for the settings of a run.
func (p program) choose(ctx context.Context, model string, l links) (c chosen, err error) {
	dir, err := os.MkdirTemp("", "atoll-thin-")
	if err != nil {
		return c, fmt.Errorf("make a folder for a genesis: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := p.run(ctx, "new", "--json", "--model", model, "--bandwidth", l.bits, "--learners", fmt.Sprint(l.learners),
		"--step", l.step.String(), "--out", filepath.Join(dir, "genesis"))
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		return c, fmt.Errorf("what suits %d learners on links of %s: %w", l.learners, l.bits, err)
	}
	return c, nil
}

// build makes the program of the source that this command is run from.
func build(ctx context.Context, dir string, log io.Writer) (string, error) {
	path := filepath.Join(dir, "atoll")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/atoll")
	cmd.Stderr = log
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build atoll: %w; run this at the top of the repository, or pass --atoll", err)
	}
	return path, nil
}
