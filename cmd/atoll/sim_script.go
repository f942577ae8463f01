package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/cmd/atoll/internal/cli"
	"atoll/testnet/scenario"
	"atoll/testnet/sim"
)

// scriptResult is the answer of `atoll sim --script --json`.
type scriptResult struct {
	sim.Result
	Script   string        `json:"script"`
	Expected []expectation `json:"expected"`
	Failure  string        `json:"failure,omitempty"`
}

// expectation is one of a script, and what became of it.
type expectation struct {
	Line  int    `json:"line"`
	Text  string `json:"text"`
	Found string `json:"found"`
	Good  bool   `json:"good"` // holds, or fails as it is known to
	Known string `json:"known_to_fail,omitempty"`
}

// playScript plays a script, shows what came of it, and holds that against what
// the script expects. The outcome that is written in it is for its tests: it is
// not compared here, so that a script may be changed to see what happens.
func (c *SimCmd) playScript(out *cli.Console) error {
	text, err := os.ReadFile(c.Script)
	if err != nil {
		return fmt.Errorf("read the script: %w: pass a file, such as one of testnet/scenario/testdata", err)
	}
	s, err := scenario.Parse(filepath.ToSlash(c.Script), text)
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	s.World.Trace = c.TraceOut != ""
	o, err := scenario.Play(s)
	if err != nil {
		return cli.BadUsage("%s: %v", s.Name, err)
	}
	if err := c.keep(s.World, o.Result); err != nil {
		return err
	}
	verdicts, err := s.Judge(o)
	if c.JSON {
		return errors.Join(out.JSON(resultOf(s, o, verdicts, err)), silently(verdicts, err))
	}
	fmt.Fprint(out.Out, o)
	for _, v := range verdicts {
		fmt.Fprintf(out.Out, "line %d: %s\n", v.Line, v)
	}
	if err != nil {
		return err
	}
	return silently(verdicts, nil)
}

// silently is the error of an answer that says already what is wrong, or nil.
func silently(verdicts []scenario.Verdict, err error) error {
	for _, v := range verdicts {
		if !v.Good() {
			err = errSilent
		}
	}
	if err != nil {
		return errSilent
	}
	return nil
}

func resultOf(s *scenario.Script, o *scenario.Outcome, verdicts []scenario.Verdict, err error) scriptResult {
	r := scriptResult{Result: o.Result, Script: s.Name}
	for _, v := range verdicts {
		r.Expected = append(r.Expected, expectation{v.Line, v.Text, v.Found, v.Good(), v.Fails})
	}
	if err != nil {
		r.Failure = err.Error()
	}
	return r
}
