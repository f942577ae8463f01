package thin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"atoll/testnet/lab/program"
)

// caller is an atoll to run.
type caller struct {
	path string
	keep bool      // the folders of runs stay
	log  io.Writer // what it says while it runs
}

// run calls the program and returns what it printed.
func (p caller) run(ctx context.Context, args ...string) ([]byte, error) {
	return program.Output(ctx, p.log, nil, p.path, args...)
}

// testnet runs a world. One whose checks fail has a report as well; without one the outcome says why.
func (p caller) testnet(ctx context.Context, args []string) (Outcome, error) {
	dir, err := os.MkdirTemp("", "atoll-thin-")
	if err != nil {
		return Outcome{}, fmt.Errorf("make a folder for the run: %w", err)
	}
	if !p.keep {
		defer os.RemoveAll(dir)
	}
	full := append([]string{"testnet", "--json", filepath.Join(dir, "world")}, args...)
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
func (p caller) choose(ctx context.Context, model string, l links) (c chosen, err error) {
	dir, err := os.MkdirTemp("", "atoll-thin-")
	if err != nil {
		return c, fmt.Errorf("make a folder for a genesis: %w", err)
	}
	defer os.RemoveAll(dir)
	out, err := p.run(ctx, "new", "--json", "--model", model, "--bandwidth", l.bits, "--learners", fmt.Sprint(l.learners),
		"--step", l.step.String(), filepath.Join(dir, "run"))
	if err == nil {
		err = json.Unmarshal(out, &c)
	}
	if err != nil {
		return c, fmt.Errorf("what suits %d learners on links of %s: %w", l.learners, l.bits, err)
	}
	return c, nil
}
