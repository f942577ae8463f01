package main

import (
	"context"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/cmd/atoll/internal/settings"
	"atoll/node"
)

const setHelp = `
Changes what the node of a folder may cost, and how it works there. It stays with the folder, as what atoll join was given does: a bare atoll join after a restart goes on with it. A running node takes limits and pace at once, and the rest at its next start. Without a change the command shows all settings, and where each comes from.

    atoll set first --up 5mbit --quota 300GB/month
    atoll set first --reset up,quota        no limit any more
    atoll set first --learner torch         from the next start on
    atoll set first                         show them

What is typed for atoll join, its environment and the file of --config go before what stays.`

// SetCmd is `atoll set`.
type SetCmd struct {
	dirArg
	Learner   string   `help:"Program that trains from the next start on, or builtin: see atoll join --help." placeholder:"CMD"`
	Reset     []string `help:"Settings to put back to their defaults, such as up,quota." placeholder:"NAME"`
	JSON      bool     `name:"json" help:"Show the settings as JSON."`
	nodeFlags `group:"Settings, which stay with the folder:"`
}

// Help implements kong.HelpProvider.
func (*SetCmd) Help() string { return setHelp }

// Run shows or changes settings.
func (c *SetCmd) Run(ctx context.Context, out *cli.Console, parsed *kong.Context) error {
	dir, err := c.folder(out)
	if err != nil {
		return err
	}
	if !isNodeFolder(dir) && !isFile(dir, keyName) {
		return cli.BadUsage("%s holds no node: type the folder of one", dir)
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	f, err := settings.Open(ctx, dir, parsed)
	if err != nil {
		return err
	}
	changed, err := f.Changed(parsed, c.Reset)
	if err != nil {
		return err
	}
	if len(changed) == 0 && c.Learner == "" {
		return f.Show(out, c.JSON)
	}
	if err := f.Overlay(changed, c.Reset); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	limits, err := c.limits()
	if err != nil {
		return err
	}
	return f.Change(ctx, out, changed, node.Change{Limits: limits, Pace: c.Pace}, c.Learner)
}
