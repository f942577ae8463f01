package testnet

import (
	"fmt"
	"strings"
	"time"

	"atoll/node/status"
)

// block renders a view for a terminal of this width in a few lines. Each is
// shorter than the terminal is wide, as terminals differ in how they treat the
// last column.
func (v view) block(width int) []string {
	state := min(max(width-fixedWidth, leastState), mostState)
	lines := append(v.head(), fmt.Sprintf(rowFormat,
		"node", state, "state", "tokens", "share", "tokens/s", "loss", "rounds", "up/s", "down/s"))
	for _, r := range v.rows {
		lines = append(lines, r.line(state))
	}
	for i, l := range lines {
		lines[i] = status.Clip(l, width-1)
	}
	return lines
}

// Widths of what is drawn on a terminal. The column of the state takes what the
// others leave.
const (
	rowFormat  = "%-7s %-*s %6s %6s %8s %6s %6s %9s %9s"
	fixedWidth = 1 + 7 + 1 + 1 + 6 + 1 + 6 + 1 + 8 + 1 + 6 + 1 + 6 + 1 + 9 + 1 + 9
	leastState = 10
	mostState  = 32
	curveWidth = 24
)

// head is what the block says of the run as a whole.
func (v view) head() []string {
	run := fmt.Sprintf("testnet %s  %s", v.model, clock(v.elapsed))
	if v.left > 0 {
		run += ", " + clock(v.left) + " left"
	}
	tokens := fmt.Sprintf("tokens  %s of %s folded (%.0f %%)", count(float64(v.folded)), count(float64(v.budget)), v.percent())
	if v.perS > 0 {
		tokens += fmt.Sprintf(", %.0f a second now, %.0f on average", v.perS, v.average)
	}
	if !v.evaluated() {
		return []string{run, tokens}
	}
	return []string{run, tokens, "model   " + v.quality()}
}

// progress is how far the run is.
func (v view) progress() string {
	parts := []string{clock(v.elapsed), fmt.Sprintf("%s of %s tokens folded (%.0f %%)", count(float64(v.folded)), count(float64(v.budget)), v.percent())}
	if v.perS > 0 {
		parts = append(parts, fmt.Sprintf("%.0f tokens/s now, %.0f on average", v.perS, v.average))
	}
	if v.left > 0 {
		parts = append(parts, clock(v.left)+" left")
	}
	return strings.Join(parts, "  ")
}

func (v view) percent() float64 { return 100 * float64(v.folded) / float64(v.budget) }

// evaluated says whether the model was measured after any training. The first
// value is of the initial parameters and would look like a run that does not
// learn.
func (v view) evaluated() bool { return v.val > 0 && v.valAt > 0 }

// quality is how good the model is, once it was measured.
func (v view) quality() string {
	text := fmt.Sprintf("%.3f bits per byte at %s tokens", v.val, count(float64(v.valAt)))
	if len(v.curve) > 1 {
		text += fmt.Sprintf("  %.2f %s %.2f", v.curve[0], sparkline(v.curve, curveWidth), v.curve[len(v.curve)-1])
	}
	return text
}

// line is a row of the block with so many columns for the state.
func (r row) line(state int) string {
	if !r.seen {
		return fmt.Sprintf("%-7s %s", r.name, r.state)
	}
	return fmt.Sprintf(rowFormat, r.name, state, status.Clip(r.stateText(), state),
		count(float64(r.s.TokensTrained)), fmt.Sprintf("%.1f%%", 100*r.share), r.speedText(), r.lossText(),
		fmt.Sprint(r.closed), status.Traffic(r.up), status.Traffic(r.down))
}

// stateText is what the node does, as precisely as it says.
func (r row) stateText() string {
	if r.s.Stage != "" && r.state == r.s.State {
		return r.s.Stage
	}
	return r.state
}

func (r row) speedText() string {
	for _, p := range r.s.Peers {
		if p.Self && p.TokensPerS > 0 {
			return fmt.Sprintf("%.0f", p.TokensPerS)
		}
	}
	return "-"
}

func (r row) lossText() string {
	if r.s.TrainLoss == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", r.s.TrainLoss)
}

// line renders a view in one line, for logs.
func (v view) line() string {
	parts := []string{v.progress()}
	if v.evaluated() {
		parts = append(parts, fmt.Sprintf("model %.3f bits per byte", v.val))
	}
	var nodes []string
	for _, r := range v.rows {
		text := r.name + " " + r.state
		if r.seen && r.s.Step > 0 {
			text += fmt.Sprintf(" step %d loss %.3f", r.s.Step, r.s.TrainLoss)
		}
		if r.seen && r.s.Stage != "" {
			text += " (" + r.s.Stage + ")"
		}
		nodes = append(nodes, text)
	}
	return strings.Join(append(parts, strings.Join(nodes, ", ")), "  ")
}

// bars are the levels of a sparkline, low to high.
var bars = []rune("▁▂▃▄▅▆▇█")

// sparkline draws values in at most width characters, scaled to their range.
func sparkline(values []float64, width int) string {
	n := min(width, len(values))
	low, high := values[0], values[0]
	for _, x := range values {
		low, high = min(low, x), max(high, x)
	}
	line := make([]rune, n)
	for i := range line {
		x := values[i*(len(values)-1)/max(n-1, 1)]
		level := 0
		if high > low {
			level = int(float64(len(bars)-1)*(x-low)/(high-low) + 0.5)
		}
		line[i] = bars[level]
	}
	return string(line)
}

// count writes a number of tokens with three digits or so.
func count(x float64) string {
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.2fG", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.2fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.1fk", x/1e3)
	}
	return fmt.Sprintf("%.0f", x)
}

// plural is a number of things: the word takes an s unless there is one.
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// clock writes a duration in whole seconds.
func clock(d time.Duration) string { return d.Round(time.Second).String() }
