package main

import (
	"time"

	"atoll/optimizer/trainer/external/standin"
)

// StandInCmd is `atoll standin`, which a node starts with --learner standin.
type StandInCmd struct {
	Step    time.Duration `help:"Time of a step." default:"1s"`
	InPlace bool          `help:"Step the shared values themselves, without a copy."`
}

// Run serves the node.
func (c *StandInCmd) Run() error {
	return standin.Serve(standin.Config{Step: c.Step, InPlace: c.InPlace})
}
