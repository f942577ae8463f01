package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"atoll/testnet"
)

const replayHelp = `
Writes the course of a run as one HTML file with a slider: who had contributed when, rounds as they closed, the curve. It goes by the ledger of a folder on which no node runs, or of a testnet. A ledger that --keep has shortened, or that a node got late, begins later.

    atoll replay second
    atoll replay DIR --out opticks-replay.html`

// ReplayCmd is `atoll replay`.
type ReplayCmd struct {
	Dir string `arg:"" optional:"" help:"Folder of a node or of a testnet. Default: the only node's folder in the current one." placeholder:"DIR"`
	Out string `help:"File to write. Default: replay.html in DIR." placeholder:"FILE"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*ReplayCmd) Help() string { return replayHelp }

// replayFile is a replay in its folder.
const replayFile = "replay.html"

// Run writes the file.
func (c *ReplayCmd) Run(ctx context.Context, out *console) error {
	dir, err := dirFlag{Dir: c.Dir}.folder()
	if err != nil {
		return err
	}
	ledger := dir
	if testnet.IsWorld(dir) {
		if ledger, err = testnet.LongestLedger(dir); err != nil {
			return err
		}
	}
	frames, err := framesOf(ledger)
	if err != nil {
		return err
	}
	page, err := reportPage(ctx, dir, frames)
	if err != nil {
		return err
	}
	file := c.Out
	if file == "" {
		file = filepath.Join(dir, replayFile)
	}
	return writePage(out, file, page, c.JSON)
}

// writePage writes a page and says where it is.
func writePage(out *console, file string, page []byte, json bool) error {
	if err := os.WriteFile(file, page, 0o644); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	if json {
		return out.json(reported{file, len(page)})
	}
	out.answer("%s", file)
	return nil
}
