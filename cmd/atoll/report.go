package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/files"
	"atoll/node/inspect"
	"atoll/node/store"
	"atoll/node/web"
	"atoll/testnet"
)

const reportHelp = `
Writes the results of a run as one HTML file, to keep, send and open anywhere: settings, curves, the account of tokens, contributors, the text of the model card. It needs no network and holds no join link. The folder is that of a node, running or not, or of a testnet. The page has a slider, which shows the course of the run: who had contributed when, rounds as they closed, the curve. Times are of the node's folder, not of its last start. That course begins later if --keep has shortened the ledger, or if the node joined late. Links are shown of a node that runs.

    atoll report second
    atoll report DIR --out opticks.html
    atoll report second --share                             to tell others of a first run`

// shareFile is the report for others in a folder.
const shareFile = "shared.html"

// ReportCmd is `atoll report`.
type ReportCmd struct {
	dirArg
	Out   string `help:"File to write. Default: report.html in DIR, with --share shared.html." placeholder:"FILE"`
	Share bool   `help:"Leave out names, addresses, ids and paths: machines are called by numbers. Kinds of links and routers, speeds and faults stay."`
	cli.JSONFlag
}

// Help implements kong.HelpProvider.
func (*ReportCmd) Help() string { return reportHelp }

// reported is the answer of `atoll report --json`.
type reported struct {
	Out   string `json:"out"`
	Bytes int    `json:"bytes"`
}

// Run writes the file.
func (c *ReportCmd) Run(ctx context.Context, out *cli.Console) error {
	dir, err := c.worldOrFolder(out)
	if err != nil {
		return err
	}
	page, err := reportPage(ctx, dir, c.Share)
	if err != nil {
		return err
	}
	name := testnet.PageFile
	if c.Share {
		name = shareFile
	}
	file := cmp.Or(c.Out, filepath.Join(dir, name))
	if err := files.Write(file, page, 0o644); err != nil {
		return fmt.Errorf("write the page: %w: choose another file with --out", err)
	}
	if c.JSON {
		return out.JSON(reported{file, len(page)})
	}
	out.Answer("%s", file)
	if c.Share {
		out.Say("read it before you send it: texts of programs that train may say more than their form shows")
	}
	return nil
}

// framesOf are the moments of a slider, by the ledger of a node's folder; none while another process has it open.
func framesOf(dir string) (frames []web.Frame, err error) {
	moments, err := inspect.Moments(dir)
	if errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	for _, m := range moments {
		frames = append(frames, web.Frame(m))
	}
	return frames, err
}

// reportPage is the report of the folder of a node or a testnet.
func reportPage(ctx context.Context, dir string, share bool) ([]byte, error) {
	if testnet.IsWorld(dir) {
		if share {
			return nil, fmt.Errorf("%s is a testnet, whose machines are one: share the report of a node, such as %s", dir, filepath.Join(dir, "node0"))
		}
		ledger, err := testnet.LongestLedger(dir)
		if err != nil {
			return nil, err
		}
		frames, err := framesOf(ledger)
		if err != nil {
			return nil, err
		}
		return testnet.Page(dir, frames)
	}
	g, err := inspect.FolderGenesis(dir)
	if err != nil {
		return nil, err
	}
	s, running, err := snapshot(ctx, dir)
	if err != nil {
		return nil, err
	}
	n := web.Node{Status: s}
	if !running {
		n.End = web.EndLeft
	}
	frames, err := framesOf(dir)
	if err != nil {
		return nil, err
	}
	settings := web.Section{Title: "Settings"}
	for _, row := range g.Settings() {
		settings.Rows = append(settings.Rows, web.Row{Name: row[0], Value: row[1]})
	}
	var b bytes.Buffer
	err = web.WriteReport(&b, web.World{Nodes: []web.Node{n}}, web.Summary{Sections: []web.Section{web.NodeSummary(s), web.Network(s), settings}, Card: g.Card(s.TokensFolded), Replay: frames, Share: share})
	return b.Bytes(), err
}
