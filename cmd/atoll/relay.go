package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/node/joinlink"
	"atoll/node/limits"
	"atoll/node/relay"
	"atoll/node/store"
)

const relayHelp = `
Runs on a machine that others reach, such as a small server, for runs whose learners are all at home. It introduces nodes to each other, and forwards traffic between two that find no direct way. It holds no model. Within limits, it also helps members of any run to find each other. An argument that begins with atoll: is a join link of a run, or atoll: and the 64 digits of a run that is open, as atoll new shows them; one relay serves several runs. Any other argument is the folder. For a run that admits by invitation pass a join link, in quotes: the relay is invited like any node. Make it one of its own, with atoll invite DIR --uses 1: by a link that others have too it takes one of that link's uses, and atoll revoke of that link ends it as well. A relay goes on after its invite has expired where nodes know it.

    atoll relay "$(atoll invite opticks --uses 1)" --up 50mbit
    atoll relay atoll:RUN DIR                                for a run that is open
    atoll join opticks --peer ADDR                           the first node, with the address that the relay shows
    atoll join LINK                                          all others, with the link that the relay prints
    atoll relay atoll:RUN --port-443                         for nodes in offices whose network allows only web traffic

It prints a join link for each run. Ctrl-C ends it; direct connections between nodes last.`

// RelayCmd is `atoll relay`.
type RelayCmd struct {
	Words    []string    `arg:"" name:"link" help:"Join links of the runs to relay for, and the folder of the relay's key, so that its address stays. Default: ./atoll-relay."`
	Listen   []string    `help:"Addresses to listen on for the first run. Default: port 27182, and the next ones for other runs; any free one where that is taken." placeholder:"MULTIADDR"`
	As       string      `help:"Name of the relay, as of atoll join. Default: this machine's name in its network." placeholder:"NAME"`
	Port443  bool        `name:"port-443" help:"Listen on port 443 as well, for TCP and WebSocket: nodes whose network allows only web traffic take part through it. For the first run. Needs root, or the right to low ports."`
	Up       limits.Rate `help:"Rate that each run's nodes may send each other through the relay, such as 50mbit. Default: 100mbit." placeholder:"RATE"`
	LogLevel string      `help:"What to log on stderr: ${enum}." enum:"debug,info,warn,error" default:"info"`
	JSON     bool        `name:"json" help:"Print each link as a line of JSON."`
}

// Help implements kong.HelpProvider.
func (*RelayCmd) Help() string { return relayHelp }

// Run relays until it is interrupted.
func (c *RelayCmd) Run(ctx context.Context, out *cli.Console) error {
	outliveReaders()
	runs, dir, err := c.sortWords()
	if err != nil {
		return err
	}
	if err := p2p.CheckListen(c.Listen); err != nil {
		return cli.BadUsage("--listen: %v", err)
	}
	name, err := machineName(c.As)
	if err != nil {
		return err
	}
	handler, err := logHandler(out, c.LogLevel)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	key, _, err := store.LoadKey(dir)
	if err != nil {
		return store.Explain(err, dir)
	}
	cfg := relay.Config{
		Key: key, Name: name, Dir: dir, Runs: runs, Listen: c.Listen, Web: c.Port443, BytesPerSecond: int64(c.Up.BytesPerSecond()), Agent: node.Agent, Log: slog.New(handler),
	}
	var printed error
	err = relay.Run(ctx, cfg, func(l joinlink.Link) { printed = errors.Join(printed, c.print(out, l)) })
	return errors.Join(err, printed)
}

// sortWords tells the runs, each once, from the folder.
func (c *RelayCmd) sortWords() (runs []joinlink.Link, dir string, err error) {
	for _, word := range c.Words {
		if !joinlink.Is(word) {
			if dir != "" {
				return nil, "", cli.BadUsage("%q and %q are two folders: a join link begins with %q", quoted(dir), quoted(word), joinlink.Scheme)
			}
			dir = word
			continue
		}
		link, err := joinlink.Parse(word)
		if err != nil {
			return nil, "", cli.BadUsage("%v", err)
		}
		if !slices.ContainsFunc(runs, func(l joinlink.Link) bool { return l.Run == link.Run }) {
			runs = append(runs, link)
		}
	}
	if len(runs) == 0 {
		return nil, "", cli.BadUsage("which run? Pass a join link, or %q and the 64 digits of a run that is open", joinlink.Scheme)
	}
	return runs, cmp.Or(dir, "atoll-relay"), nil
}

func (c *RelayCmd) print(out *cli.Console, l joinlink.Link) error {
	if c.JSON {
		return out.JSON(map[string]any{"run": l.Run, "link": l.String()})
	}
	out.Answer("%s", l)
	return nil
}
