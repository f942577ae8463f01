package status

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Bytes writes an amount of memory or disk in binary units, as every screen does.
func Bytes(n float64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%.0f B", n)
	}
	x, unit := n/step, 0
	for x >= step && unit < 4 {
		x, unit = x/step, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", x, "KMGTP"[unit])
}

// Count writes a number with three significant digits, as every screen does: 950, 12.3k, 3.00M.
func Count(x float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if x >= unit.size {
			return digits(x/unit.size) + unit.name
		}
	}
	return fmt.Sprintf("%.0f", x)
}

func digits(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// ThreeDigits writes a number from 1 to 1000, without zeros at its end.
func ThreeDigits(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}

// Traffic writes an amount of bytes that a network carries in units of a thousand, as every screen does: so people buy it and
// type quotas, and so it fits with Mbit/s.
func Traffic(n float64) string {
	const step = 1000
	if n < step {
		return fmt.Sprintf("%.0f B", n)
	}
	x, unit := n/step, 0
	for x >= step && unit < 4 {
		x, unit = x/step, unit+1
	}
	return fmt.Sprintf("%s %cB", ThreeDigits(x), "kMGTP"[unit])
}

// Age writes how long ago something was, in one unit.
func Age(seconds float64) string {
	switch {
	case seconds < 100:
		return fmt.Sprintf("%.0f s", seconds)
	case seconds < 100*60:
		return fmt.Sprintf("%.0f min", seconds/60)
	case seconds < 48*3600:
		return fmt.Sprintf("%.0f h", seconds/3600)
	}
	return fmt.Sprintf("%.0f days", seconds/86400)
}

// Duration writes a time for people, with two units at most and none that is nothing: 90ms, 30s, 2m, 1m30s, 1h, 26h5m.
func Duration(d time.Duration) string {
	switch {
	case d.Abs() < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Abs() < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	text := d.String()
	for _, nothing := range []string{"m0s", "h0m"} {
		if rest, ends := strings.CutSuffix(text, nothing); ends {
			text = rest + nothing[:1]
		}
	}
	return text
}

// shortID is how many digits of an id name a node, a run or a digest on every screen, as wire's String has them.
const shortID = 10

// ShortID is enough of an id in hex to tell nodes apart.
func ShortID(hex string) string { return strings.ToValidUTF8(hex[:min(len(hex), shortID)], "") }

// Clip shortens a text to at most so many characters. The last one then says
// that there was more.
func Clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	return string(r[:width-1]) + "…"
}

// ClipMiddle shortens a text to at most so many characters by its middle: names of machines mostly differ at an end.
func ClipMiddle(s string, width int) string {
	r := []rune(s)
	if len(r) <= width || width < 3 {
		return Clip(s, width)
	}
	tail := (width - 1) / 2
	return string(r[:width-1-tail]) + "…" + string(r[len(r)-tail:])
}

// maxPrintable is how much of a text Printable keeps, in runes: it is for lines of a screen.
const maxPrintable = 1000

// Printable is a text that a terminal can show wherever it comes from: one line of characters that each take
// their own place. It has nothing that moves a cursor, changes colours, turns the direction of text or hangs
// over other lines.
func Printable(s string) string {
	n := 0
	return strings.Map(func(r rune) rune {
		if n++; n > maxPrintable || unicode.Is(unicode.M, r) {
			return -1
		}
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar)))
}
