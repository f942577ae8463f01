package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"atoll/node/inspect"
	"atoll/node/status"
	"atoll/node/store"
)

const peersHelp = `
Lists the nodes of a run as one of them sees it: hardware and speed (from each node's capability record), and why a peer is refused, or this node is paused. SHARE is the node's part of the folded tokens that count for the budget, WEIGHT its mean part of the last folds. A guest's tokens do not count, so its SHARE is 0, and its WEIGHT is small. MBIT/S is what the uplink carries, as the node measured itself. HEARD is the time since a peer's last message, or when that came if the node of this folder does not run. Notes below the table name peers that count for less because their deltas have little in common with others, peers behind a relay, and guests.

In a run that admits by invitation, absent members have a row too, and INVITE, in place of PRECISION and STEPS, is the invite of each: "own" if it is for that node alone. Notes give the limits of invites. A guest joined by an invite for guests: its work counts a little, it decides nothing, and atoll invite --for makes it a member. atoll revoke takes the name of a node or of an invite. --json has more: ids in full, role, measured speed, addresses, traffic.

    atoll peers first
    atoll peers first --json`

// PeersCmd is `atoll peers`.
type PeersCmd struct {
	dirArg
	JSON bool `name:"json" help:"Answer with a JSON array."`
}

// Help implements kong.HelpProvider.
func (*PeersCmd) Help() string { return peersHelp }

// Run lists the peers.
func (c *PeersCmd) Run(ctx context.Context, out *console) error {
	dir, err := c.folder(out)
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
	members, err := inspect.Members(ctx, dir)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	rows := membersAmong(s.Peers, members)
	if c.JSON {
		return out.json(rows)
	}
	return printMembers(out.out, rows, stoppedAt(s, running))
}

// memberRow is a peer with the invite by which it was admitted, in a run that admits by invitation.
type memberRow struct {
	status.Peer
	Invite    string `json:"invite,omitempty"`
	Owner     string `json:"owner,omitempty"`
	Uses      uint32 `json:"uses,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"`
	Revoked   bool   `json:"revoked,omitempty"`
}

// States of members that are no peers.
const (
	away    = "away"
	revoked = "revoked"
)

// membersAmong puts the members to their peers, and absent ones behind them. A member with several invites has the one that
// counts: none that is revoked, rather its own than that of a group.
func membersAmong(peers []status.Peer, members []status.Member) []memberRow {
	rows := []memberRow{}
	for _, p := range peers {
		rows = append(rows, memberRow{Peer: p})
	}
	for _, m := range members {
		i := slices.IndexFunc(rows, func(r memberRow) bool { return r.ID == m.ID })
		if i < 0 {
			i = len(rows)
			rows = append(rows, memberRow{Peer: status.Peer{ID: m.ID, State: away, Trust: 1}})
		}
		r := &rows[i]
		if r.Invite != "" && (m.Revoked || !r.Revoked && m.Invite != m.ID) {
			continue
		}
		r.Invite, r.Owner, r.Uses, r.ExpiresMs, r.Revoked, r.Guest = m.Invite, m.Owner, m.Uses, m.ExpiresMs, m.Revoked, m.Guest
	}
	for i, r := range rows {
		if r.Revoked {
			rows[i].State = revoked
		}
	}
	return rows
}

// printMembers writes the table of peers with their invites, if there are any, and what limits these have.
func printMembers(w io.Writer, rows []memberRow, stopped time.Time) error {
	if !slices.ContainsFunc(rows, func(r memberRow) bool { return r.Invite != "" }) {
		return printPeers(w, peersOf(rows), stopped)
	}
	var invites []string
	var limits []string
	for _, r := range rows {
		invites = append(invites, inviteText(r))
		if limit := limitOf(r); limit != "" && !slices.Contains(limits, limit) {
			limits = append(limits, limit)
		}
	}
	return printPeersWith(w, peersOf(rows), stopped, "INVITE", invites, limits)
}

func peersOf(rows []memberRow) (peers []status.Peer) {
	for _, r := range rows {
		peers = append(peers, r.Peer)
	}
	return peers
}

func inviteText(r memberRow) string {
	if r.Invite == r.ID && r.ID != "" {
		return "own"
	}
	return orUnknown(shortID(r.Invite))
}

// limitOf says what limits an invite has; "" for none.
func limitOf(r memberRow) string {
	var parts []string
	if r.Uses > 0 {
		parts = append(parts, "is for "+plural(int(r.Uses), "node", "nodes"))
	}
	if r.ExpiresMs > 0 {
		parts = append(parts, "expires "+time.UnixMilli(r.ExpiresMs).Format("2006-01-02 15:04"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "invite " + shortID(r.Invite) + " " + strings.Join(parts, " and ")
}

// Widths of the columns whose values know no bound, so that a row fits 100
// columns.
const (
	peerWidth     = 11
	hardwareWidth = 10
)

// fullTrust is the least trust that needs no note.
const fullTrust = 0.995

// printPeers writes a row per peer, and below the table who is relayed, why peers were
// refused, and who is a guest. They are as a node saw them that stopped then; zero: that runs.
func printPeers(w io.Writer, peers []status.Peer, stopped time.Time) error {
	return printPeersWith(w, peers, stopped, "", nil, nil)
}

// arithmetic is the index of the first of two columns that leave room for another: PRECISION and STEPS.
const arithmetic = 3

// printPeersWith has one column more, unless its head is "", and notes of its own.
func printPeersWith(w io.Writer, peers []status.Peer, stopped time.Time, head string, column, notes []string) error {
	rows := [][]string{{"PEER", "STATE", "HARDWARE", "PRECISION", "STEPS", "TOKENS", "SHARE", "WEIGHT", "TOK/S", "MBIT/S", "HEARD"}}
	var guests []string
	for _, p := range peers {
		rows = append(rows, peerRow(p, stopped))
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
	if head != "" {
		for i, cell := range append([]string{head}, column...) {
			rows[i] = append(slices.Delete(rows[i], arithmetic, arithmetic+2), cell)
		}
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

func peerRow(p status.Peer, stopped time.Time) []string {
	state := p.State
	if !stopped.IsZero() && p.Silent() {
		state = "silent"
	}
	return []string{
		status.Clip(peerName(p), peerWidth), state, status.Clip(orUnknown(p.Hardware), hardwareWidth), orUnknown(p.Precision),
		big(float64(p.Steps)), big(float64(p.Tokens)), partText(p.Share), known(p.Weight, partText),
		known(p.TokensPerS, big), uplink(p), heardText(p, stopped),
	}
}

// known writes a number that is zero where it was not measured.
func known(x float64, text func(float64) string) string {
	if x == 0 {
		return unknown
	}
	return text(x)
}

// partText is a part of a whole in a narrow column: 99.9 %, and 100 % for all.
func partText(x float64) string {
	if x > 0.9995 {
		return "100 %"
	}
	return percent(x, 1)
}

// ageText is an age in a narrow column.
func ageText(s float64) string {
	if s >= 100 {
		return fmt.Sprintf("%.0f s", s)
	}
	return fmt.Sprintf("%.1f s", s)
}

// heardText says how long ago a peer was last heard, or when, by a node that stopped: an age would stand still.
func heardText(p status.Peer, stopped time.Time) string {
	switch {
	case p.Self:
		return "here"
	case stopped.IsZero() || p.LagS == 0:
		return known(p.LagS, ageText)
	}
	at := stopped.Add(-time.Duration(p.LagS * float64(time.Second)))
	if stopped.Sub(at) < 24*time.Hour {
		return at.Format("15:04")
	}
	return at.Format("Jan 02")
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
