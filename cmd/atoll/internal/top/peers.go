package top

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"atoll/node/status"
)

// row is one peer, with what its own status adds where it is one of the nodes that are shown.
type row struct {
	status.Peer
	name     string
	up, down float64 // recent bytes a second
	known    bool    // they are
}

// rows are the peers as the leading node sees them, then nodes that it does not know.
func (h *History) rows() (rows []row) {
	lead := h.lead()
	if lead == nil {
		return nil
	}
	seen := map[string]bool{}
	listed, _ := status.Listed(lead.Status.Peers)
	for _, p := range listed {
		seen[p.ID] = p.ID != ""
		rows = append(rows, h.row(p))
	}
	for _, n := range h.nodes {
		if i := slices.IndexFunc(n.Status.Peers, func(p status.Peer) bool { return p.Self }); i >= 0 && !seen[n.Status.Self] {
			rows = append(rows, h.row(n.Status.Peers[i]))
		}
	}
	if len(h.nodes) > 1 {
		slices.SortStableFunc(rows, func(a, b row) int { return h.place(a.ID) - h.place(b.ID) })
	}
	return rows
}

// place is where a node stands among those that are shown; others come after them.
func (h *History) place(id string) int {
	if i := h.index(id); i >= 0 {
		return i
	}
	return len(h.nodes)
}

func (h *History) index(id string) int {
	return slices.IndexFunc(h.nodes, func(n Node) bool { return id != "" && n.Status.Self == id })
}

func (h *History) row(p status.Peer) row {
	r := row{Peer: p, name: h.name(p)}
	i := h.index(p.ID)
	if i < 0 {
		return r
	}
	n := h.nodes[i]
	r.State, r.LagS = stateOf(n), p.LagS
	r.up, r.down, r.known = h.meters[p.ID].rates()
	if !n.Running {
		r.known, r.TokensPerS = false, 0
	}
	return r
}

// name is that of a node's folder where several are shown, else what the machine is called.
func (h *History) name(p status.Peer) string {
	switch i := h.index(p.ID); {
	case i >= 0 && len(h.nodes) > 1:
		return h.nodes[i].Name
	case p.Self:
		return p.Called() + "*"
	}
	return p.Called()
}

// labels are what the machines are called in texts.
func (h *History) labels() status.Labels {
	l := status.Labels{}
	for _, r := range h.rows() {
		if r.ID != "" {
			l[short(r.ID)] = strings.TrimSuffix(r.name, "*")
		}
	}
	return l
}

// column is one of the table of peers. Those of low rank go first where there is little room.
type column struct {
	head       string
	least, max int // characters
	right      bool
	rank       int
	cell       func(row) string
}

const (
	unknown  = "-"
	peerHead = "PEER"
)

var columns = []column{
	{peerHead, 13, 24, false, 9, func(r row) string { return r.name }},
	{"STATE", 11, 19, false, 9, func(r row) string { return r.StateText() }},
	{"HARDWARE", 10, 34, false, 4, func(r row) string { return orUnknown(r.Hardware) }},
	{"LEARNER", 8, 22, false, 3, func(r row) string { return orUnknown(strings.TrimPrefix(r.Trainer, "atoll.")) }},
	{"LINK", 7, 8, false, 6, func(r row) string {
		if r.Self {
			return "here"
		}
		return orUnknown(r.Link)
	}},
	{"SHARE", 6, 7, true, 8, func(r row) string {
		if r.ShareUnknown {
			return unknown
		}
		return fmt.Sprintf("%.1f %%", 100*r.Share)
	}},
	{"LAG", 5, 7, true, 7, func(r row) string { return measured(r.LagS, "%.1fs") }},
	{"UP/S", 6, 9, true, 5, func(r row) string { return traffic(r.up, r.known) }},
	{"DOWN/S", 6, 9, true, 5, func(r row) string { return traffic(r.down, r.known) }},
	{"TOK/S", 6, 8, true, 2, func(r row) string { return count(r.TokensPerS) }},
	{"STEPS", 6, 8, true, 1, func(r row) string { return count(float64(r.Steps)) }},
	{"MBIT/S", 10, 10, true, 1, func(r row) string { return uplink(r.Peer) }},
}

// peers is the table in so many lines, with its heading. Where not all fit, the last line says so.
func (s Screen) peers(rows []row, lines int) []string {
	if lines < 2 {
		return nil
	}
	shown := columnsFor(rows, s.Width)
	out := []string{s.paint(bold, rowText(shown, func(c column) string { return c.head }))}
	room := lines - 1
	if len(rows) > room {
		room-- // the last line says how many there are
	}
	first := min(max(s.First, 0), len(rows)-min(room, len(rows)))
	last := min(len(rows), first+room)
	hidden := len(rows) - (last - first)
	for _, r := range rows[first:last] {
		out = append(out, s.paint(styleOf(r), rowText(shown, func(c column) string { return c.cell(r) })))
	}
	if hidden > 0 {
		out = append(out, s.paint(faint, fmt.Sprintf("and %d more", hidden)))
	}
	return out
}

// columnsFor are the columns that fit, each as wide as its cells need or there is room.
func columnsFor(rows []row, width int) []column {
	shown := slices.Clone(columns)
	for len(shown) > 1 && widthOf(shown) > width {
		drop := 0
		for i, c := range shown {
			if c.rank <= shown[drop].rank {
				drop = i
			}
		}
		shown = slices.Delete(shown, drop, drop+1)
	}
	spare := width - widthOf(shown)
	for i := range shown {
		want := ansi.StringWidth(shown[i].head)
		for _, r := range rows {
			want = max(want, ansi.StringWidth(shown[i].cell(r)))
		}
		grow := min(max(min(want, shown[i].max)-shown[i].least, 0), spare)
		shown[i].least, spare = shown[i].least+grow, spare-grow
	}
	return shown
}

const columnGap = 1

func widthOf(columns []column) int {
	sum := columnGap * (len(columns) - 1)
	for _, c := range columns {
		sum += c.least
	}
	return sum
}

func rowText(columns []column, text func(column) string) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(strings.Repeat(" ", columnGap))
		}
		cell := text(c)
		if c.head == peerHead {
			cell = status.ClipMiddle(cell, c.least)
		}
		cell = ansi.Truncate(cell, c.least, "…")
		space := strings.Repeat(" ", max(0, c.least-ansi.StringWidth(cell)))
		if c.right {
			b.WriteString(space + cell)
		} else {
			b.WriteString(cell + space)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

func measured(x float64, format string) string {
	if x == 0 {
		return unknown
	}
	return fmt.Sprintf(format, x)
}

func count(x float64) string {
	if x == 0 {
		return unknown
	}
	return status.Count(x)
}

func traffic(bytes float64, known bool) string {
	if !known {
		return unknown
	}
	return status.Count(bytes) + "B"
}

// uplink is what a peer's link carries upwards, in Mbit/s.
func uplink(p status.Peer) string {
	text := measured(8e-6*p.Upload, "%.1f")
	if p.Upload > 0 && !p.UploadFull {
		return ">" + text
	}
	return text
}
