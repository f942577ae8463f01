package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"atoll/node/status"
)

const peersHelp = `
Lists the members of a run as one node sees them: hardware and speed (from each node's capability record), share of the folded tokens, and why a peer is refused, or this node is paused. Below the table stands which peers count for less, because their deltas have little in common with others. IN is the arithmetic of its products, MBIT/S what a node's uplink carries, as it measured itself. HEARD is the time since a peer's last message. Below stands who is reached through a relay, and who is a guest. --json has more: role, measured speed, addresses, traffic.

    atoll peers --dir first
    atoll peers --dir first --json`

// PeersCmd is `atoll peers`.
type PeersCmd struct {
	dirFlag
	JSON bool `name:"json" help:"Answer with a JSON array."`
}

// Help implements kong.HelpProvider.
func (*PeersCmd) Help() string { return peersHelp }

// Run lists the peers.
func (c *PeersCmd) Run(ctx context.Context, out *console) error {
	dir, err := c.folder()
	if err != nil {
		return err
	}
	s, running, err := snapshot(ctx, dir)
	if err != nil {
		return err
	}
	if !running {
		out.say("no node runs on this folder; these are the peers that it knew last")
	}
	if c.JSON {
		return out.json(s.Peers)
	}
	return printPeers(out.out, s.Peers)
}

// Widths of the columns whose values know no bound, so that a row fits 100
// columns.
const (
	peerWidth     = 11
	hardwareWidth = 10
)

// fullTrust is the least trust that is worth no word.
const fullTrust = 0.995

// printPeers writes a row per peer, and below it who is relayed, why those are not in
// who are not, and who is a guest.
func printPeers(w io.Writer, peers []status.Peer) error {
	rows := [][]string{{"PEER", "STATE", "HARDWARE", "IN", "STEPS", "TOKENS", "SHARE", "WEIGHT", "TOK/S", "MBIT/S", "HEARD"}}
	var notes, guests []string
	for _, p := range peers {
		rows = append(rows, peerRow(p))
		if text := detour(p); text != "" {
			notes = append(notes, text)
		}
		if p.Trust < fullTrust && p.TokensFolded > 0 {
			notes = append(notes, fmt.Sprintf("%s counts for %.0f %% of its weight: its deltas have little in common with others", peerName(p), 100*p.Trust))
		}
		if p.Reason != "" {
			notes = append(notes, fmt.Sprintf("%s %s: %s", peerName(p), p.State, p.Reason))
		}
		if p.Guest {
			guests = append(guests, peerName(p))
		}
	}
	if len(guests) > 0 {
		notes = append(notes, "guests, whose work counts a little: "+strings.Join(guests, ", "))
	}
	if err := table(w, printable(rows)...); err != nil {
		return err
	}
	for _, r := range notes {
		if _, err := fmt.Fprintln(w, status.Printable(r)); err != nil {
			return err
		}
	}
	return nil
}

// printable has nothing in its cells that a terminal would take for its own: peers have a say in them.
func printable(rows [][]string) [][]string {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = status.Printable(cell)
		}
	}
	return rows
}

func peerName(p status.Peer) string {
	switch {
	case p.Self:
		return shortID(p.ID) + "*"
	case p.ID == "":
		return p.Addr
	}
	return shortID(p.ID)
}

func peerRow(p status.Peer) []string {
	heard := measured(p.LagS, "%.1f s")
	if p.Self {
		heard = "here"
	}
	return []string{
		status.Clip(peerName(p), peerWidth), p.State, status.Clip(orUnknown(p.Hardware), hardwareWidth), orUnknown(p.Precision),
		fmt.Sprint(p.Steps), big(float64(p.Tokens)), percent(p.Share, 1), measured(100*p.Weight, "%.1f %%"),
		measured(p.TokensPerS, "%.0f"), uplink(p), heard,
	}
}

// uplink is what a peer's link carries upwards, in Mbit/s.
func uplink(p status.Peer) string {
	text := measured(8e-6*p.Upload, "%.1f")
	if p.Upload > 0 && !p.UploadFull {
		return "> " + text
	}
	return text
}

// detour says through whom a peer is reached, and "" for one that is reached directly.
func detour(p status.Peer) string {
	switch p.Link {
	case status.LinkRelayed:
		return fmt.Sprintf("%s relayed through %s", peerName(p), p.Relay)
	case status.LinkPunching:
		return fmt.Sprintf("%s relayed through %s, a direct connection is being tried", peerName(p), p.Relay)
	}
	return ""
}

func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}
