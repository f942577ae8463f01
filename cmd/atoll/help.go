package main

import (
	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"atoll/cmd/atoll/internal/cli"
)

const helpHelp = `
Shows what a command does and which flags it has, as --help after the command does.

    atoll help
    atoll help join
    atoll help data build`

// HelpCmd is `atoll help`.
type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"Name of a command."`
}

// Help implements kong.HelpProvider.
func (*HelpCmd) Help() string { return helpHelp }

// Run shows the help of a command.
func (c *HelpCmd) Run(app *kong.Kong, out *cli.Console) error {
	named, err := kong.Trace(app, append(c.Command, "--help"))
	if err == nil {
		err = named.Error
	}
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	return named.PrintUsage(false)
}

const completionHelp = `
Says what to type so that a shell completes commands, flags and their values.

    atoll completion
    atoll completion fish`

// CompletionCmd is `atoll completion`.
type CompletionCmd struct {
	kongcompletion.Completion `embed:""`
}

// Help implements kong.HelpProvider.
func (*CompletionCmd) Help() string { return completionHelp }
