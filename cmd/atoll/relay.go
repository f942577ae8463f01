package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/node/joinlink"
	"atoll/node/relay"
	"atoll/node/store"
)

const relayHelp = `
Runs on a machine that others reach, such as a small server, for runs whose learners are all at home. It introduces them to each other and passes on what goes between two that find no direct way. It holds no model. It also answers members of any run who ask where others of theirs are, within limits. RUN is the 64 digits after "atoll:" in the run's join links, as atoll new shows them; one relay serves several runs. For a run that admits by invitation pass a join link, in quotes: the relay is invited like any node.

    atoll relay "$(atoll invite --genesis opticks.genesis)" --up 50mbit
    atoll relay 3f2a...                                      for a run that is open
    atoll join --genesis opticks.genesis --peer ADDR         the first node, with the address that the relay shows
    atoll join atoll:3f2a...,ADDR                            all others
    atoll relay 3f2a... --web                                for nodes in offices, whose network lets only the web out

It prints a join link for each run. Ctrl-C ends it; direct connections between nodes last.`

// RelayCmd is `atoll relay`.
type RelayCmd struct {
	Runs     []string `arg:"" name:"run" help:"Runs to relay for: their RunIDs, or join links."`
	Dir      string   `help:"Folder of the relay's key, so that its address stays. Default: ./atoll-relay." default:"atoll-relay" placeholder:"DIR"`
	Listen   []string `help:"Addresses to listen on for the first run. Default: port 27182, and the next ones for other runs; any free one where that is taken." placeholder:"MULTIADDR"`
	Web      bool     `help:"Listen on port 443 as well, for TCP and WebSocket: nodes whose network lets only the web out take part through it. For the first run. Needs root, or the right to low ports."`
	Up       rate     `help:"What each run's nodes may send each other through this one, such as 50mbit. Default: 100mbit." placeholder:"RATE"`
	LogLevel string   `help:"What to log on stderr: ${enum}." enum:"debug,info,warn,error" default:"info"`
	JSON     bool     `name:"json" help:"Print each link as a line of JSON."`
}

// Help implements kong.HelpProvider.
func (*RelayCmd) Help() string { return relayHelp }

// Run relays until it is interrupted.
func (c *RelayCmd) Run(ctx context.Context, out *console) error {
	outliveReaders()
	runs, err := c.runs()
	if err != nil {
		return err
	}
	if err := p2p.CheckListen(c.Listen); err != nil {
		return badUsage("--listen: %v", err)
	}
	handler, err := logHandler(out, c.LogLevel)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o755); err != nil {
		return err
	}
	key, _, err := store.LoadKey(c.Dir)
	if err != nil {
		return store.Explain(err, c.Dir)
	}
	cfg := relay.Config{
		Key: key, Dir: c.Dir, Runs: runs, Listen: c.Listen, Web: c.Web, BytesPerSecond: int64(c.Up.bytesPerSecond()), Agent: node.Agent, Log: slog.New(handler),
	}
	var printed error
	err = relay.Run(ctx, cfg, func(l joinlink.Link) { printed = errors.Join(printed, c.print(out, l)) })
	return errors.Join(err, printed)
}

// runs are the runs of the arguments, each once.
func (c *RelayCmd) runs() (runs []joinlink.Link, err error) {
	for _, text := range c.Runs {
		link, err := joinlink.Parse(text)
		if err != nil && link.Run.UnmarshalText([]byte(text)) != nil {
			return nil, badUsage("%q is no run: pass the 64 digits after %q in a join link, or the link", joinlink.Shown(text), linkScheme)
		}
		if !slices.ContainsFunc(runs, func(l joinlink.Link) bool { return l.Run == link.Run }) {
			runs = append(runs, link)
		}
	}
	return runs, nil
}

func (c *RelayCmd) print(out *console, l joinlink.Link) error {
	if c.JSON {
		return out.json(map[string]any{"run": l.Run, "link": l.String()})
	}
	out.answer("%s", l)
	return nil
}
