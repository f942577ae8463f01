package main

import "github.com/alecthomas/kong"

const helpHelp = `
Shows what a command does and which flags it has, as --help after the command does.

    atoll help
    atoll help join
    atoll help bench step`

// HelpCmd is `atoll help`.
type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"Name of a command."`
}

// Help implements kong.HelpProvider.
func (*HelpCmd) Help() string { return helpHelp }

// Run shows the help of a command.
func (c *HelpCmd) Run(app *kong.Kong) error {
	named, err := kong.Trace(app, append(c.Command, "--help")) // a default subcommand is not meant
	if err == nil {
		err = named.Error
	}
	if err != nil {
		return badUsage("%v", err)
	}
	return named.PrintUsage(false)
}
