package top

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"atoll/node/status"
)

// Screen is what View draws on.
type Screen struct {
	Width, Height int  // columns and lines
	First         int  // of the peers, that is shown
	Colour        bool // styles and colours; they say nothing that the text does not
	ASCII         bool // no character beyond ASCII
}

// Sizes below which a part is left out.
const (
	leastWidth  = 20
	leastChart  = 5 // lines, with its heading and the axis
	mostChart   = 32
	leastPeers  = 3 // lines, with the heading
	fixedLines  = 4 // title, state, progress, keys
	eventShare  = 5 // events have at most one line in so many
	roundsShare = 10
	chartShare  = 4 // many peers leave the chart one line in so many
)

// View draws a history: at most Height lines, none wider than Width.
func View(h *History, s Screen) string {
	if s.Width < 1 || s.Height < 1 {
		return ""
	}
	lines := s.draw(h)
	if len(lines) > s.Height {
		lines = append(lines[:s.Height-1], lines[len(lines)-1]) // the keys stay
	}
	for i, l := range lines {
		lines[i] = ansi.Truncate(l, s.Width, "…")
	}
	text := strings.Join(lines, "\n")
	if s.ASCII {
		text = toASCII(text)
	}
	return text
}

func (s Screen) draw(h *History) []string {
	lead := h.lead()
	if lead == nil {
		return []string{"waiting for the node to answer", s.paint(faint, "q quits")}
	}
	lines := []string{s.title(h, lead.Status), s.state(h, lead), s.progress(lead.Status)}
	if s.Height <= fixedLines || s.Width < leastWidth {
		return append(lines, s.keys(h, 0))
	}
	room := s.Height - fixedLines
	rows := h.rows()
	rounds := s.rounds(h, lead.Status.Fragments, min(max(1, s.Height/roundsShare), max(0, room-leastPeers)))
	room -= len(rounds)
	events := min(len(h.events)+1, s.Height/eventShare+1, max(0, room-leastPeers-leastChart))
	if events < 2 {
		events = 0 // a heading alone
	}
	peers := min(len(rows)+1, max(leastPeers, room-events-max(leastChart, s.Height/chartShare)))
	chart := min(room-events-peers, mostChart)
	if _, c := h.bestCurve(); chart < leastChart {
		chart = 0
	} else if c == nil {
		chart = 1
	}
	peers = min(len(rows)+1, room-events-chart)
	events = min(len(h.events)+1, room-peers-chart)
	lines = append(lines, s.chart(h, chart)...)
	lines = append(lines, rounds...)
	lines = append(lines, s.peers(rows, peers)...)
	lines = append(lines, s.events(h, events)...)
	for len(lines) < s.Height-1 {
		lines = append(lines, "")
	}
	return append(lines, s.keys(h, len(rows)-peers+1))
}

func (s Screen) title(h *History, lead status.Snapshot) string {
	left := fmt.Sprintf("atoll  %s  run %s", lead.Name, short(lead.Run))
	if len(h.nodes) > 1 {
		left += fmt.Sprintf("  %d nodes here", len(h.nodes))
	}
	right := h.now.Format(time.TimeOnly)
	if up := h.now.Sub(lead.Started); !lead.Started.IsZero() && up > 0 {
		right = "up " + up.Round(time.Second).String() + "  " + right
	}
	return s.paint(bold, s.ends(left, right))
}

// ends puts two texts at the ends of a line; the right one goes where there is no room.
func (s Screen) ends(left, right string) string {
	gap := s.Width - ansi.StringWidth(left) - ansi.StringWidth(right)
	if gap < 2 {
		return ansi.Truncate(left, s.Width, "…")
	}
	return left + strings.Repeat(" ", gap) + right
}

// state is the line that matters most: an alarm, or what the node does.
func (s Screen) state(h *History, lead *Node) string {
	if text := h.alarm(); text != "" {
		return s.paint(alarm, pad(ansi.Truncate("! "+h.labels().In(text), s.Width, "…"), s.Width))
	}
	st := lead.Status
	is := st.Condition()
	text := st.Role + ", " + is.Word
	if len(h.nodes) > 1 {
		text = h.states()
	}
	if is.Why != "" {
		text += ": " + h.labels().In(is.Why)
	}
	switch live := status.LivePeers(st.Peers); {
	case len(h.nodes) > 1: // the states say how many there are
	case live > 0:
		text += fmt.Sprintf("  %s", counted(live, "peer", "peers"))
		if st.Agreed {
			text += "  digests equal"
		}
	case is.Word != status.CutOff:
		text += "  alone"
	}
	return text
}

func (s Screen) progress(lead status.Snapshot) string {
	share := 0.0
	if lead.BudgetTokens > 0 {
		share = min(1, float64(lead.TokensFolded)/float64(lead.BudgetTokens))
	}
	texts := []string{fmt.Sprintf("%.1f %%", 100*share), lead.FoldedOf()}
	if status.NotYet(lead.Peers) != "" {
		texts = texts[1:]
	}
	if lead.TokensPerS > 0 {
		texts = append(texts, status.Count(lead.TokensPerS)+"/s")
	}
	if g := goodput(lead); g > 0 {
		texts = append(texts, fmt.Sprintf("goodput %.0f %%", 100*g))
	}
	switch {
	case lead.Finished:
		texts = append(texts, "finished")
	case lead.ETASeconds > 0:
		texts = append(texts, status.Duration(time.Duration(lead.ETASeconds*float64(time.Second)).Round(time.Second))+" left")
	}
	text := strings.Join(texts, "  ")
	const leastBar = 8
	bar := min(s.Width-ansi.StringWidth(text)-2, 60)
	if bar < leastBar {
		return text
	}
	full := int(share * float64(bar))
	return s.paint(good, strings.Repeat("█", full)) + s.paint(faint, strings.Repeat("░", bar-full)) + "  " + text
}

// goodput is which part of what learners make is recently folded into the model: folded tokens a second
// over those that all learners train; 0 where that is not known.
func goodput(s status.Snapshot) float64 {
	made := 0.0
	for _, p := range s.Peers {
		made += p.TokensPerS
	}
	if made <= 0 || s.Finished {
		return 0
	}
	return min(1, s.TokensPerS/made)
}

func (s Screen) heading(text string) string {
	line := "── " + text + " "
	return s.paint(faint, line+strings.Repeat("─", max(0, s.Width-ansi.StringWidth(line))))
}

// chart is the curve in so many lines, with its heading and the axis of tokens.
func (s Screen) chart(h *History, lines int) []string {
	if lines < 1 {
		return nil
	}
	kind, c := h.bestCurve()
	if c == nil {
		return []string{s.heading("loss: nobody has measured it yet")}
	}
	low, high := c.span()
	margin := len(tick(high)) + 1
	columns := s.Width - margin
	out := []string{s.heading(fmt.Sprintf("%s: %.3f", curveNames[kind], c.last()))}
	rows := c.plot(columns, lines-2, low, high)
	for i, row := range rows {
		label := strings.Repeat(" ", margin)
		switch i {
		case 0:
			label = tick(high) + " "
		case len(rows) - 1:
			label = tick(low) + " "
		}
		out = append(out, s.paint(faint, label)+s.paint(line, row))
	}
	axis := Screen{Width: columns}.ends(status.Count(float64(c.At[0])), status.Count(float64(c.At[len(c.At)-1]))+" tokens")
	return append(out, s.paint(faint, strings.Repeat(" ", margin)+axis))
}

// rounds says how far each fragment is, in at most so many lines.
func (s Screen) rounds(h *History, fragments []status.Fragment, lines int) []string {
	if len(fragments) == 0 || lines < 1 {
		return nil
	}
	const head, gap = "rounds", "  "
	var out []string
	text, width := s.paint(bold, head), len(head)
	for p, f := range fragments {
		cell := fmt.Sprintf("%d: %d (%d)", p, f.Closed, f.Contributors)
		style := plain
		if h.fresh(p) {
			cell, style = cell+"*", good
		} else {
			cell += " "
		}
		if more := fmt.Sprintf("+%d", len(fragments)-p); width+len(gap)+len(cell) > s.Width {
			if len(out) == lines-1 {
				if width+1+len(more) <= s.Width {
					text += " " + s.paint(faint, more)
				}
				return append(out, text)
			}
			out = append(out, text)
			text, width = strings.Repeat(" ", len(head)), len(head)
		}
		text, width = text+gap+s.paint(style, cell), width+len(gap)+len(cell)
	}
	return append(out, text)
}

// events are the newest, in so many lines with a heading, the newest last.
func (s Screen) events(h *History, lines int) []string {
	events, labels := h.events, h.labels()
	if lines < 2 || len(events) == 0 {
		return nil
	}
	out := []string{s.heading("events")}
	for _, e := range events[max(0, len(events)-lines+1):] {
		text := e.At.Format(time.TimeOnly) + " "
		if e.node != "" {
			text += e.node + " "
		}
		text += e.Kind
		if e.Peer != "" {
			text += " " + short(e.Peer)
		}
		style := plain
		if e.Remedy != "" {
			style = bad
		}
		out = append(out, s.paint(style, ansi.Truncate(labels.In(text+": "+e.Said()), s.Width, "…")))
	}
	return out
}

// keys is the last line. hidden is how many peers do not fit.
func (s Screen) keys(h *History, hidden int) string {
	text := "q ends this view alone"
	if hidden > 0 {
		text += "  ↑↓ other peers"
	}
	note := "* a round that has just closed"
	if _, others := status.Listed(h.lead().Status.Peers); others != "" {
		note = others
	}
	if ended(h.nodes) {
		note = "ended"
	}
	return s.paint(faint, s.ends(text, note))
}

// short is enough of an id to tell nodes apart.
func short(id string) string { return status.ShortID(id) }

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// pad fills a text to a width.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// toASCII is a text for terminals that know no other characters.
func toASCII(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < 0x80:
			return r
		case r == braille:
			return ' '
		case r > braille && r <= braille+0xff:
			return '*'
		case r == '█':
			return '#'
		case r == '░':
			return '.'
		case r == '─':
			return '-'
		case r == '…':
			return '~'
		case r == '↑':
			return 'k'
		case r == '↓':
			return 'j'
		}
		return '?'
	}, text)
}
