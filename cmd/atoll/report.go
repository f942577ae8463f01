package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"

	"atoll/node/inspect"
	"atoll/node/web"
	"atoll/testnet"
)

const reportHelp = `
Writes what came of a run as one HTML file, to keep, send and open anywhere: settings, curves, the account of tokens, who contributed, the text of the model card. It needs no network and holds no join link. The folder is that of a node, running or not, or that of a testnet.

    atoll report second
    atoll report DIR --out opticks.html`

// ReportCmd is `atoll report`.
type ReportCmd struct {
	Dir string `arg:"" optional:"" help:"Folder of a node or of a testnet. Default: the only node's folder in the current one." placeholder:"DIR"`
	Out string `help:"File to write. Default: report.html in DIR." placeholder:"FILE"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*ReportCmd) Help() string { return reportHelp }

// reported is the answer of `atoll report --json`.
type reported struct {
	Out   string `json:"out"`
	Bytes int    `json:"bytes"`
}

// Run writes the file.
func (c *ReportCmd) Run(ctx context.Context, out *console) error {
	dir, err := dirFlag{Dir: c.Dir}.folder()
	if err != nil {
		return err
	}
	page, err := reportPage(ctx, dir, nil)
	if err != nil {
		return err
	}
	file := c.Out
	if file == "" {
		file = filepath.Join(dir, testnet.PageFile)
	}
	return writePage(out, file, page, c.JSON)
}

// framesOf are the frames of a replay by the ledger of a node's folder.
func framesOf(dir string) (frames []web.Frame, err error) {
	moments, err := inspect.Moments(dir)
	if err == nil && len(moments) == 0 {
		err = fmt.Errorf("%s: its ledger has no closed round yet, so there is nothing to replay", dir)
	}
	for _, m := range moments {
		frames = append(frames, web.Frame(m))
	}
	return frames, err
}

// reportPage is the report of the folder of a node or a testnet, with frames if it is a replay.
func reportPage(ctx context.Context, dir string, frames []web.Frame) ([]byte, error) {
	if testnet.IsWorld(dir) {
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
	settings := web.Section{Title: "Settings"}
	for _, row := range g.Settings() {
		settings.Rows = append(settings.Rows, web.Row{Name: row[0], Value: row[1]})
	}
	var b bytes.Buffer
	err = web.WriteReport(&b, web.World{Nodes: []web.Node{n}}, web.Summary{Sections: []web.Section{web.NodeSummary(s), settings}, Card: g.Card(s.TokensFolded), Replay: frames})
	return b.Bytes(), err
}
