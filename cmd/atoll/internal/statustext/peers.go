package statustext

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

// Member is a peer with the invite by which it was admitted, in a run that admits by invitation.
type Member struct {
	status.Peer
	Invite    string `json:"invite,omitempty"`
	Uses      uint32 `json:"uses,omitempty"`
	ExpiresMs int64  `json:"expires_ms,omitempty"`
	Revoked   bool   `json:"revoked,omitempty"`
	Ended     bool   `json:"ended,omitempty"` // its invite is revoked; it may stay
}

// admitted is the state of a member that is none of a peer's: it trained nothing and is not here.
const admitted = "admitted"

// Members puts the members to their peers, and those that trained nothing behind them. A member with several invites has the
// one that counts: none that is revoked, rather its own than that of a group.
func Members(peers []status.Peer, members []status.Member) []Member {
	rows := []Member{}
	for _, p := range peers {
		rows = append(rows, Member{Peer: p})
	}
	for _, m := range members {
		i := slices.IndexFunc(rows, func(r Member) bool { return r.ID == m.ID })
		if i < 0 {
			i = len(rows)
			rows = append(rows, Member{Peer: status.Peer{ID: m.ID, State: admitted, Trust: 1}})
		}
		r := &rows[i]
		if r.Invite != "" && (m.Revoked || !r.Revoked && m.Invite != m.ID) {
			continue
		}
		r.Invite, r.Uses, r.ExpiresMs, r.Revoked, r.Ended, r.Guest = m.Invite, m.Uses, m.ExpiresMs, m.Revoked, m.Ended, m.Guest
	}
	for i, r := range rows {
		if r.Revoked {
			rows[i].State, rows[i].Faded = status.Revoked, false
		}
	}
	return rows
}

// PrintMembers writes the table of peers with their invites, if there are any, what limits these have, and who came by them and
// trained nothing.
func PrintMembers(w io.Writer, rows []Member, stopped time.Time) error {
	if !slices.ContainsFunc(rows, func(r Member) bool { return r.Invite != "" }) {
		return printPeers(w, peersOf(rows), stopped)
	}
	var peers []status.Peer
	var invites, notes, absent []string
	for _, r := range rows {
		if limit := limitOf(r, rows); limit != "" && !slices.Contains(notes, limit) {
			notes = append(notes, limit)
		}
		if r.State == admitted {
			absent = append(absent, peerName(r.Peer))
			continue
		}
		peers, invites = append(peers, r.Peer), append(invites, inviteText(r))
	}
	if len(absent) > 0 {
		trained := "trained nothing"
		if status.Shares(peersOf(rows)) != "" {
			trained = "trained nothing that this machine knows of"
		}
		notes = append(notes, "admitted, "+trained+" and not here: "+strings.Join(absent, ", "))
	}
	return printPeersWith(w, peers, stopped, "INVITE", invites, notes)
}

func peersOf(rows []Member) (peers []status.Peer) {
	for _, r := range rows {
		peers = append(peers, r.Peer)
	}
	return peers
}

func inviteText(r Member) string {
	if r.Invite == r.ID && r.ID != "" {
		return "own"
	}
	return orUnknown(status.ShortID(r.Invite))
}

// limitOf says what limits an invite has, or that it is revoked, and how many came by it; "" for none, or one for a machine alone that is
// revoked with it.
func limitOf(r Member, rows []Member) string {
	came := 0
	for _, other := range rows {
		if other.Invite == r.Invite {
			came++
		}
	}
	var parts []string
	switch {
	case r.Ended && r.Invite == r.ID:
		return ""
	case r.Ended:
		parts = append(parts, fmt.Sprintf("is revoked: nobody comes in by it any more, %d came", came))
	case r.Uses > 0:
		parts = append(parts, fmt.Sprintf("is for %s, %d came", cli.Plural(int(r.Uses), "machine", "machines"), came))
	}
	if r.ExpiresMs > 0 && !r.Ended {
		parts = append(parts, "lasts until "+time.UnixMilli(r.ExpiresMs).Format("2006-01-02 15:04"))
	}
	if len(parts) == 0 {
		return ""
	}
	return "invite " + status.ShortID(r.Invite) + " " + strings.Join(parts, "; ")
}

// Widths of the columns whose values know no bound, so that a row fits 100
// columns.
const (
	peerWidth     = 13
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
	var rows [][]string
	add := func(row []string, more string) {
		if head != "" {
			row = append(slices.Delete(row, arithmetic, arithmetic+2), more)
		}
		rows = append(rows, row)
	}
	add([]string{"PEER", "STATE", "HARDWARE", "PRECISION", "STEPS", "TOKENS", "SHARE", "WEIGHT", "TOK/S", "MBIT/S", "HEARD"}, head)
	var guests []string
	labels := status.LabelsOf(peers)
	for i, p := range peers {
		if p.Faded {
			continue
		}
		more := ""
		if head != "" {
			more = column[i]
		}
		add(peerRow(p, stopped), more)
		if text := detour(p, labels); text != "" {
			notes = append(notes, text)
		}
		if p.Trust < fullTrust && p.TokensFolded > 0 {
			notes = append(notes, fmt.Sprintf("%s counts for %.0f %% of its weight: its deltas have little in common with others", peerName(p), 100*p.Trust))
		}
		if p.Reason != "" {
			notes = append(notes, fmt.Sprintf("%s %s: %s", peerName(p), p.State, labels.In(p.Reason)))
		}
		if p.Guest {
			guests = append(guests, peerName(p))
		}
	}
	if text := status.Shares(peers); text != "" {
		notes = append(notes, text)
	}
	if slices.ContainsFunc(peers, func(p status.Peer) bool { return p.Weight > 0 }) {
		notes = append(notes, status.Weighed)
	}
	if len(guests) > 0 {
		notes = append(notes, "guests, whose work counts a little: "+strings.Join(guests, ", "))
	}
	if _, note := status.Listed(peers); note != "" {
		notes = append(notes, note)
	}
	if err := cli.Table(w, Printable(rows)...); err != nil {
		return err
	}
	for _, r := range notes {
		if _, err := fmt.Fprintln(w, status.Printable(r)); err != nil {
			return err
		}
	}
	return nil
}

// Printable has nothing in its cells that a terminal would take for its own: peers have a say in them.
func Printable(rows [][]string) [][]string {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = status.Printable(cell)
		}
	}
	return rows
}

func peerName(p status.Peer) string {
	if p.Self {
		return p.Called() + "*"
	}
	return p.Called()
}

func peerRow(p status.Peer, stopped time.Time) []string {
	state := p.SinceText()
	if !stopped.IsZero() {
		state = p.State // an age would stand still
	}
	return []string{
		status.ClipMiddle(peerName(p), peerWidth), state, status.Clip(orUnknown(p.Hardware), hardwareWidth), orUnknown(p.Precision),
		counted(p, p.Steps), counted(p, p.Tokens), shareText(p), known(p.Weight, partText),
		known(p.TokensPerS, status.Count), uplink(p), heardText(p, stopped),
	}
}

// counted is what a peer says that it has done. One that was away when this process began says nothing.
func counted(p status.Peer, n uint64) string {
	if n == 0 && p.Away() {
		return cli.Unknown
	}
	return status.Count(float64(n))
}

// known writes a number that is zero where it was not measured.
func known(x float64, text func(float64) string) string {
	if x == 0 {
		return cli.Unknown
	}
	return text(x)
}

func shareText(p status.Peer) string {
	if p.ShareUnknown {
		return cli.Unknown
	}
	return partText(p.Share)
}

// partText is a part of a whole in a narrow column: 99.9 %, and 100 % for all.
func partText(x float64) string {
	if x > 0.9995 {
		return "100 %"
	}
	return cli.Percent(x, 1)
}

// ageText is an age in a narrow column, where tenths of seconds count.
func ageText(s float64) string {
	if s >= 100 {
		return status.Age(s)
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
	text := cli.Measured(8e-6*p.Upload, "%.1f")
	if p.Upload > 0 && !p.UploadFull {
		return "> " + text
	}
	return text
}

// detour says through whom a peer is reached, and "" for one that is reached directly.
func detour(p status.Peer, labels status.Labels) string {
	switch p.Link {
	case status.LinkRelayed:
		return fmt.Sprintf("%s relayed through %s", peerName(p), labels.Of(p.Relay))
	case status.LinkPunching:
		return fmt.Sprintf("%s relayed through %s, a direct connection is being tried", peerName(p), labels.Of(p.Relay))
	}
	return ""
}

func orUnknown(s string) string {
	if s == "" {
		return cli.Unknown
	}
	return s
}
