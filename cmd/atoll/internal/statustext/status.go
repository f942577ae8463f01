// Package statustext writes what nodes say of themselves for people: a whole status, the table of peers and members, and
// line by line what a node does. It asks no node: who has a status hands it over.
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

// Print writes a status for people. The link of a node that does not run leads nowhere.
func Print(w io.Writer, s status.Snapshot, running bool) error {
	labels := status.LabelsOf(s.Peers)
	rows := [][]string{
		{"run", fmt.Sprintf("%s  %s", status.ShortID(s.Run), s.Name)},
		{"node", fmt.Sprintf("%s  %s, %s", nodeText(s), s.Role, labels.In(s.Condition().Text()))},
	}
	for _, a := range s.Alarms {
		rows = append(rows, []string{"WRONG", a.Since.Format(time.TimeOnly) + " " + labels.In(a.Line())})
	}
	for _, row := range s.Said(running) {
		rows = append(rows, []string{row[0], labels.In(row[1])})
	}
	rows = append(rows, [][]string{
		{"guest", guestText(s)},
		{"model", modelText(s)},
		{"folded", foldedText(s)},
		{"", beyondText(s)},
		{"quality", qualityText(s)},
		{"here", hereText(s)},
		{"digests", fmt.Sprintf("chain %s  state %s  %s", status.ShortID(s.ChainDigest), status.ShortID(s.StateDigest), agreedText(s, running))},
		{"traffic", trafficText(s)},
		{"limits", limitsText(s.Limits)},
		{"settings", settingsText(s.Settings)},
		{"data", dataText(s.Data)},
		{"rounds", roundsText(s.Fragments)},
		{"open", labels.In(openText(s))},
		{"deltas", planText(s.Plan)},
	}...)
	if rows = Printable(rows); running && s.Link != "" {
		rows = append(rows, []string{"join", "atoll join " + status.ShellWord(s.Link)}, []string{"", s.LetsIn})
	}
	rows = slices.DeleteFunc(rows, func(row []string) bool { return row[1] == "" })
	if err := cli.Table(w, rows...); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := printPeers(w, s.Peers, StoppedAt(s, running)); err != nil {
		return err
	}
	return printEvents(w, s.Events, labels)
}

// nodeText is what the node of a status is called, and its id.
func nodeText(s status.Snapshot) string {
	self := s.Own()
	if self.ID == "" {
		return status.ShortID(s.Self)
	}
	return self.NameAndID()
}

// guestText tells the owner of a guest what that means, and what to do about it; "" for a member.
func guestText(s status.Snapshot) string {
	self := s.Own()
	if !self.Guest {
		return ""
	}
	return fmt.Sprintf("of this run: its work counts a little; the owner can make it a member with `atoll invite --for %s`", self.ID)
}

func modelText(s status.Snapshot) string {
	text := fmt.Sprintf("%s parameters in %d fragments", status.Count(float64(s.Params)), len(s.Fragments))
	if s.Optimizer != "" {
		text += ", trained with " + s.Optimizer
	}
	return text
}

func foldedText(s status.Snapshot) string {
	text := s.FoldedOf()
	if status.NotYet(s.Peers) == "" {
		text += " (" + cli.Percent(float64(s.TokensFolded), float64(s.BudgetTokens)) + ")"
	}
	if s.TokensPerS > 0 {
		text += fmt.Sprintf(", %s tokens/s", status.Count(s.TokensPerS))
	}
	if s.ETASeconds > 0 {
		text += ", " + cli.Seconds(s.ETASeconds) + " left"
	}
	if s.Finished {
		text += ", finished"
	}
	return text
}

// beyondText says how many tokens are folded and no part of the budget; "" where none are.
func beyondText(s status.Snapshot) string {
	if s.TokensBeyond == 0 {
		return ""
	}
	return fmt.Sprintf("%s more do not count for budget and learning rate: `atoll ledger` says whose", status.Count(float64(s.TokensBeyond)))
}

func qualityText(s status.Snapshot) string {
	q := s.Worth()
	if q == "" {
		return "not measured here; `atoll eval` does, for built-in models"
	}
	return fmt.Sprintf("%s at %s tokens", q, status.Count(float64(s.ValAtTokens)))
}

func hereText(s status.Snapshot) string {
	text := fmt.Sprintf("step %d, %s tokens trained", s.Step, status.Count(float64(s.TokensTrained)))
	if s.TrainLoss > 0 {
		text += fmt.Sprintf(", loss %.3f, learning rate %.2g", s.TrainLoss, s.LearningRate)
	}
	if s.RSSBytes > 0 {
		text += ", " + status.Bytes(float64(s.RSSBytes)) + " of memory"
	}
	return text
}

func agreedText(s status.Snapshot, running bool) string {
	when := ""
	if !running {
		when = " when this one ended"
	}
	switch {
	case status.LivePeers(s.Peers) == 0:
		return "no other node to compare with" + when
	case s.Agreed:
		return "equal on every live node" + when
	case s.Finished:
		return "not yet equal on every live node" + when
	case !running:
		return "not compared: rounds were open" + when
	}
	return "changing, as it should while somebody trains; compared after that"
}

func trafficText(s status.Snapshot) string {
	text := fmt.Sprintf("%s sent, %s received", status.Traffic(float64(s.Net.SentBytes)), status.Traffic(float64(s.Net.ReceivedBytes)))
	if len(s.Peers) > 0 && s.Peers[0].Upload > 0 {
		text += fmt.Sprintf("; the uplink carries %s Mbit/s", uplink(s.Peers[0]))
	}
	return text
}

// limitsText says what the node may cost, and what of it is used; "" where there is no limit.
func limitsText(l status.Limits) string {
	var parts []string
	if l.UpPerS > 0 {
		parts = append(parts, fmt.Sprintf("up %.3g Mbit/s", 8e-6*l.UpPerS))
	}
	if l.DownPerS > 0 {
		parts = append(parts, fmt.Sprintf("down %.3g Mbit/s", 8e-6*l.DownPerS))
	}
	if q := l.Quota; q != nil {
		parts = append(parts, fmt.Sprintf("%s of %s this %s used, %s left until %s",
			status.Traffic(float64(q.Used)), status.Traffic(float64(q.Bytes)), q.Period, status.Traffic(float64(q.Left)), q.Ends.Format(time.DateOnly)))
	}
	if l.Hours != "" {
		parts = append(parts, "works "+l.Hours)
	}
	if l.OnBattery != "" {
		parts = append(parts, "pauses on battery")
	}
	return strings.Join(parts, "; ")
}

// settingsText is what its owner has this node do; "" where all is the default.
func settingsText(settings []status.Setting) string {
	var parts []string
	for _, s := range settings {
		parts = append(parts, s.Name+" "+s.Value)
	}
	return strings.Join(parts, "; ")
}

// dataText says what the node has of the run's corpus; "" where there is none.
func dataText(d *status.Data) string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d shards that are needed now, %s fetched", d.Needed-d.Missing, d.Needed, status.Bytes(float64(d.UsedBytes)))
	if d.LimitBytes > 0 {
		text += fmt.Sprintf(" of at most %s", status.Bytes(float64(d.LimitBytes)))
	}
	if d.Next != "" {
		text += "; next " + d.Next
	}
	return text
}

// roundsText shows how far each fragment is and how many contributed last.
func roundsText(fragments []status.Fragment) string {
	var parts []string
	for _, f := range fragments {
		parts = append(parts, fmt.Sprintf("%d(%d)", f.Closed, f.Contributors))
	}
	return strings.Join(parts, " ") + "  closed(contributors) per fragment"
}

// openText says what the round waits for that was proposed first and is still open.
func openText(s status.Snapshot) string {
	if s.Finished {
		return "no round: the run is over"
	}
	fragments, longest := s.Fragments, 0
	for p, f := range fragments {
		if f.Open.WaitedS > fragments[longest].Open.WaitedS {
			longest = p
		}
	}
	if len(fragments) == 0 || fragments[longest].Open.Round == 0 {
		return ""
	}
	o := fragments[longest].Open
	return fmt.Sprintf("round %d of fragment %d: %s", o.Round, longest, o.Text)
}

// planText says how many steps this node's deltas have, and why.
func planText(p status.Plan) string {
	text := fmt.Sprintf("every %d steps", p.Planned)
	switch p.Bound {
	case status.BoundLinks:
		text += fmt.Sprintf(": the nodes' links together do not carry one every %d, the run's H", p.H)
	case status.BoundOwnLink:
		text += fmt.Sprintf(": this node's uplink does not carry one every %d, the run's H", p.H)
	case status.BoundThin:
		text += ": the links are too thin for this run even so"
	}
	if p.Real > 0 {
		text += fmt.Sprintf(" (%.0f recently)", p.Real)
	}
	return text
}

// shownEvents is how many of the newest events a status shows.
const shownEvents = 8

func printEvents(w io.Writer, events []status.Event, labels status.Labels) error {
	if len(events) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	for _, e := range events[max(0, len(events)-shownEvents):] {
		if _, err := fmt.Fprintln(w, EventLine(e, labels)); err != nil {
			return err
		}
	}
	return nil
}

// StoppedAt is when the node of a status stopped; zero if it runs.
func StoppedAt(s status.Snapshot, running bool) time.Time {
	if running {
		return time.Time{}
	}
	return s.At
}
