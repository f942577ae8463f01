package main

import (
	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
)

const helpHelp = `
Shows what a command does and which flags it has, as --help after the command does.

    atoll help
    atoll help join
    atoll help data build
    atoll help --man man1          the manual: a page for each command, atoll.1, atoll-join.1`

// HelpCmd is `atoll help`.
type HelpCmd struct {
	Command []string `arg:"" optional:"" help:"Name of a command."`
	Man     string   `help:"Write the pages of the manual into this folder instead." placeholder:"DIR"`
}

// Help implements kong.HelpProvider.
func (*HelpCmd) Help() string { return helpHelp }

// Run shows the help of a command.
func (c *HelpCmd) Run(app *kong.Kong, out *cli.Console) error {
	if c.Man != "" {
		if len(c.Command) > 0 {
			return cli.BadUsage("--man writes the pages of all commands: leave %q out", c.Command[0])
		}
		pages, err := writeMan(c.Man, app.Model.Node)
		for _, page := range pages {
			out.Answer("%s", page)
		}
		return err
	}
	named, err := kong.Trace(app, append(c.Command, "--help"))
	if err == nil {
		err = named.Error
	}
	if err != nil {
		return cli.BadUsage("%v", err)
	}
	return named.PrintUsage(false)
}
