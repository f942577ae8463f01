package testnet

import (
	"fmt"
	"strings"
	"time"
)

// block renders a view for a terminal, a few lines.
func (v view) block() string {
	var b strings.Builder
	fmt.Fprintf(&b, "testnet  %s  %s\n", v.model, v.progress())
	fmt.Fprintf(&b, "anchor   %s\n", v.anchor())
	fmt.Fprintf(&b, "%-8s %-10s %7s %8s %6s %8s %6s %6s %9s %9s  %s\n",
		"node", "state", "step", "tokens", "share", "tokens/s", "loss", "rounds", "up/s", "down/s", "hardware")
	for _, r := range v.rows {
		b.WriteString(r.line())
	}
	return b.String()
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

// anchor is how good the model is.
func (v view) anchor() string {
	if v.val == 0 {
		return "not evaluated yet"
	}
	text := fmt.Sprintf("%.3f bits per byte at %s tokens", v.val, count(float64(v.valAt)))
	if v.valBytes > 0 {
		text += fmt.Sprintf(" (on %d KiB held out)", v.valBytes>>10)
	}
	if len(v.curve) > 1 {
		text += fmt.Sprintf("  %.2f %s %.2f", v.curve[0], sparkline(v.curve, curveWidth), v.curve[len(v.curve)-1])
	}
	return text
}

// Widths of what is drawn on a terminal.
const (
	curveWidth    = 24
	hardwareWidth = 28
)

func (r row) line() string {
	if !r.seen {
		return fmt.Sprintf("%-8s %-10s\n", r.name, r.state)
	}
	var speed float64
	var hardware string
	for _, p := range r.s.Peers {
		if p.Self {
			speed, hardware = p.TokensPerS, p.Hardware
		}
	}
	text := fmt.Sprintf("%-8s %-10s %7d %8s %5.1f%% %8.0f %6.3f %6d %9s %9s  %s\n",
		r.name, r.state, r.s.Step, count(float64(r.s.TokensTrained)), 100*r.share, speed, r.s.TrainLoss,
		r.closed, bytesText(r.up), bytesText(r.down), clip(hardware, hardwareWidth))
	if r.s.Stage != "" && r.state == r.s.State {
		text += fmt.Sprintf("%-8s %s\n", "", r.s.Stage)
	}
	return text
}

// line renders a view in one line, for logs.
func (v view) line() string {
	parts := []string{v.progress()}
	if v.val > 0 {
		parts = append(parts, fmt.Sprintf("anchor %.3f bits per byte", v.val))
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

// bytesText writes an amount of bytes.
func bytesText(x float64) string {
	switch {
	case x >= 1e9:
		return fmt.Sprintf("%.2f GB", x/1e9)
	case x >= 1e6:
		return fmt.Sprintf("%.2f MB", x/1e6)
	case x >= 1e3:
		return fmt.Sprintf("%.1f kB", x/1e3)
	}
	return fmt.Sprintf("%.0f B", x)
}

// clock writes a duration in whole seconds.
func clock(d time.Duration) string { return d.Round(time.Second).String() }

func clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}
