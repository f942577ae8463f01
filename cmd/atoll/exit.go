package main

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/gossip/hello"
	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer/trainer/external"
)

// Exit codes.
const (
	exitDone    = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRefused = 3
	exitTimeout = 4
	exitKilled  = 130 // as shells have it of who dies of SIGINT
)

// errAborted ends a command at the second interrupt.
var errAborted = errors.New("interrupted twice: ended at once, without publishing the rest; the same command goes on from what was published")

// errSilent ends a command with exitFailed whose answer says already what is wrong.
var errSilent = errors.New("the answer says why")

// exitCode says how a command ended.
func exitCode(err error) int {
	var (
		parse   *kong.ParseError
		usage   *cli.UsageError
		refusal *hello.Refusal
	)
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &parse), errors.As(err, &usage), errors.Is(err, genesis.ErrModelName), errors.Is(err, genesis.ErrVocab), errors.Is(err, external.ErrProcesses), errors.Is(err, node.ErrDamaged):
		return exitUsage
	case errors.As(err, &refusal), errors.Is(err, p2p.ErrRefusedByPeer), errors.Is(err, node.ErrRevoked):
		return exitRefused
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, node.ErrNoPeers):
		return exitTimeout
	}
	return exitFailed
}

// fail prints an error, unless it is nil, and returns its exit code. A wrong command line
// is pointed to help.
func fail(c *cli.Console, err error, help string) int {
	code := exitCode(err)
	if err != nil && !errors.Is(err, errSilent) {
		c.Say("atoll: %s", cli.InWords(explained(err)))
	}
	if code == exitUsage && !errors.Is(err, node.ErrDamaged) {
		c.Say("Run `%s` to see what there is.", help)
	}
	return code
}

// explained adds what to do about a disk that is full, read-only or failing. Of rights it says nothing: who may not read a file needs
// others than who may not write it.
func explained(err error) error {
	var failed *fs.PathError
	if !errors.As(err, &failed) || store.TroubleOf(err) == store.Denied {
		return err
	}
	return store.Explain(err, filepath.Dir(failed.Path))
}

// helpFor is the command that shows the help of what was typed; nil is of nothing that was
// understood.
func helpFor(typed *kong.Context) string {
	if typed != nil {
		if selected := typed.Selected(); selected != nil {
			return selected.FullPath() + " --help"
		}
	}
	return "atoll --help"
}
