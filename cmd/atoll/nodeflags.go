package main

import (
	"cmp"
	"os"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/hello"
)

// nodeFlags are the flags of a node that stay with its folder. Where they are embedded the tag group says so to people, and to
// settings.Standing: no other flag has one.
type nodeFlags struct {
	As string `help:"Name of this machine, which the members of the run see on their screens; guests see ids. Up to 32 bytes: letters, digits, - _ . and blanks. Default: this machine's name in its network." placeholder:"NAME"`
	limitFlags
	Pace time.Duration `help:"Least time of a step, such as 100ms, to leave room for other work. Default: none." placeholder:"TIME"`
	cli.ThreadsFlag
	Batch     int    `help:"Rows of text in one step. Default: by the measured speed of this machine." placeholder:"ROWS"`
	Precision string `help:"Arithmetic of matrix products in atoll's own trainer: ${enum}. bf16 needs a processor with AMX; auto takes what is faster here." enum:"auto,f32,bf16" default:"auto"`
	Observe   bool   `help:"Hold and serve the model without training."`
	webFlag
	Keep      keep   `help:"Disk space for the ledger, or all for no limit. The oldest payloads are deleted, and atoll verify then begins later. Payloads of the union window, see --union-window-size of atoll new, always stay. Default: 20GB." placeholder:"SIZE" default:"20GB"`
	DataDisk  size   `help:"Disk space for shards of the run's corpus that the node fetches, such as 20GB. The shards that it needs least are deleted first. Default: no limit." placeholder:"SIZE"`
	Export    string `help:"Folder to write the model to while it trains, as atoll export does, after every --every folded tokens." placeholder:"DIR" type:"path"`
	Every     amount `help:"Folded tokens between two writes to --export." default:"1e8"`
	EvalBytes *int   `help:"Bytes of held-out text on which the model is measured while it trains, or tokens where a program that trains measures it; 0 for none. Default: 16384 on a terminal or with --web, otherwise 0." placeholder:"N"`
	Profile   string `help:"Network that the node is in: ${enum}. local is this machine alone, lan a network whose nodes reach each other directly, wan any other." enum:"local,lan,wan" default:"wan"`
	NoMDNS    bool   `name:"no-mdns" help:"Do not announce the node on this network by multicast, nor look for others there."`
	Stay      bool   `help:"Keep serving after the run has ended."`
	Trace     bool   `help:"Write the life of every delta to trace.jsonl in the node's folder."`
}

// machineName is that of a machine: as its owner says, or its host's.
func machineName(as string) (string, error) {
	if as != "" {
		if err := hello.CheckName(as); err != nil {
			return "", cli.BadUsage("--as: %v", err)
		}
	}
	host, _ := os.Hostname() // without one it has no name
	return cmp.Or(as, hello.HostName(host)), nil
}

// check refuses what cannot be meant, before anything is made of it.
func (s *nodeFlags) check() error {
	switch {
	case s.Export != "" && s.Every < 1:
		return cli.BadUsage("--every is %d; use 1 or more tokens", s.Every)
	case s.Pace < 0:
		return cli.BadUsage("--pace is %v; use a duration such as 100ms, or 0s for as fast as it goes", s.Pace)
	case s.EvalBytes != nil && *s.EvalBytes < 0:
		return cli.BadUsage("--eval-bytes is %d; use a number of bytes, or 0 for no live evaluation", *s.EvalBytes)
	}
	_, badName := machineName(s.As)
	_, err := s.limits()
	return cmp.Or(badName, s.ThreadsFlag.Check(), cli.CheckWhole("--batch", s.Batch, maxBatch, "to plan it by the measured speed"), s.checkWeb(), err)
}
