package web

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"atoll/node/status"
)

// unnamed is a world whose machines are called by numbers, who gave most first. Texts call machines by their ids, and so by these
// numbers on the page. What an owner or another machine wrote of one is not for people outside.
func unnamed(w World) World {
	numbers := map[string]int{}
	number := func(id string) int {
		if numbers[id] == 0 {
			numbers[id] = len(numbers) + 1
		}
		return numbers[id]
	}
	w.Nodes = slices.Clone(w.Nodes)
	if lead := leading(w.Nodes); lead != nil {
		byGiven := slices.Clone(lead.Status.Peers)
		slices.SortStableFunc(byGiven, func(a, b status.Peer) int { return cmp.Compare(b.TokensFolded, a.TokensFolded) })
		for _, p := range byGiven {
			number(p.ID)
		}
	}
	for i := range w.Nodes {
		n := &w.Nodes[i]
		n.Name, n.Status.Name = "", ""
		n.Status.Peers = slices.Clone(n.Status.Peers)
		for k, p := range n.Status.Peers {
			p.Name, p.Label, p.Reason = "", fmt.Sprintf("machine %d", number(p.ID)), ""
			n.Status.Peers[k] = p
		}
		n.Status.Events = slices.Clone(n.Status.Events)
		for k := range n.Status.Events {
			if e := &n.Status.Events[k]; e.Kind == status.Revoked {
				e.Text = "by an owner of the run"
			}
		}
	}
	w.Link, w.Join = "", ""
	return w
}

// Names of things in texts: ids and digests in hex, ids as libp2p writes them, and paths of files, which have names of people.
var (
	ids   = regexp.MustCompile(`\b[0-9a-f]{10,}\b|\b(12D3KooW|Qm)[1-9A-HJ-NP-Za-km-z]{8,}\b`)
	paths = regexp.MustCompile(`(^|[\s"'(=])(https?:/|~|[A-Za-z]:)?[/\\][^\s"':;,)]+`)
)

// withoutIDs leaves out what names a machine, a person or the run, as far as a text's form shows it.
func withoutIDs(text string) string {
	text = paths.ReplaceAllString(withoutAddresses(text), "$1(path)")
	return ids.ReplaceAllStringFunc(text, func(id string) string {
		if strings.Trim(id, "0123456789") == "" {
			return id // an amount
		}
		return "(id)"
	})
}

// unname takes what a view has of ids and names beside texts.
func (v *reportView) unname() {
	v.Run.ID, v.Run.Name, v.Card, v.Next = "(shared)", "", "", nil
	for i := range v.Peers {
		p := &v.Peers[i]
		if ids.MatchString(p.Name) {
			p.Name = fmt.Sprintf("machine %d", i+1) // it gave to the ledger and is nobody's peer any more
		}
		p.ID = p.Name
	}
	for i := range v.Events {
		v.Events[i].Who = withoutIDs(v.Events[i].Who)
	}
	for i := range v.Alarms {
		v.Alarms[i].Who = withoutIDs(v.Alarms[i].Who)
	}
	for i := range v.Sections {
		v.Sections[i].Rows = slices.DeleteFunc(v.Sections[i].Rows, func(r Row) bool { return r.Value == "(id)" || r.Name == "text" })
	}
}

// Network says how the machines of a run reach each other, for people who were not there.
func Network(s status.Snapshot) Section {
	reach := "nobody from outside its network reaches it"
	switch r := s.Net.Reach; {
	case r.Public:
		reach = "others get in by themselves"
	case len(r.Outside) > 0:
		reach = "behind a router: others reach it through a relay, or once a way was punched"
	}
	kinds, slowest := map[string]int{}, 0.0
	for _, p := range s.Peers {
		if p.Link != "" {
			kinds[p.Link]++
		}
		slowest = max(slowest, p.HeartbeatGapS)
	}
	rows := []Row{{"this machine", reach}}
	for _, kind := range []string{status.LinkDirect, status.LinkRelayed, status.LinkPunching} {
		if kinds[kind] > 0 {
			rows = append(rows, Row{kind, plural(kinds[kind], "machine", "machines")})
		}
	}
	if s.Net.Reach.RelayedBytes > 0 {
		rows = append(rows, Row{"relayed for others", status.Traffic(float64(s.Net.Reach.RelayedBytes))})
	}
	if slowest > 0 {
		rows = append(rows, Row{"longest silence between two heartbeats", fmt.Sprintf("%.1f s", slowest)})
	}
	return Section{"Network", rows}
}
