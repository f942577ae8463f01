package top

import (
	"charm.land/lipgloss/v2"

	"atoll/node/status"
)

// ink is how a text looks. It uses the sixteen colours that every theme of a terminal has chosen.
type ink int

const (
	plain ink = iota
	bold
	faint
	good
	fair
	bad
	line
	alarm
)

var styles = map[ink]lipgloss.Style{
	bold:  lipgloss.NewStyle().Bold(true),
	faint: lipgloss.NewStyle().Faint(true),
	good:  lipgloss.NewStyle().Foreground(lipgloss.Green),
	fair:  lipgloss.NewStyle().Foreground(lipgloss.Yellow),
	bad:   lipgloss.NewStyle().Foreground(lipgloss.Red),
	line:  lipgloss.NewStyle().Foreground(lipgloss.Cyan),
	alarm: lipgloss.NewStyle().Bold(true).Reverse(true).Foreground(lipgloss.Red),
}

// paint gives a text its look.
func (s Screen) paint(i ink, text string) string {
	if style, ok := styles[i]; ok && s.Colour && text != "" {
		return style.Render(text)
	}
	return text
}

// styleOf is the look of a peer's row.
func styleOf(r row) ink {
	switch {
	case r.State == status.Gone || r.State == status.Refused:
		return bad
	case r.State == "training" || r.State == "observing":
		return plain
	}
	return fair
}
