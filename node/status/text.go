package status

import "fmt"

// Bytes writes an amount of bytes in binary units, as every screen does.
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

// Quantity writes an amount of bytes in units of a thousand, as people buy traffic and type
// quotas.
func Quantity(n uint64) string {
	const step = 1000
	if n < step {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n)/step, 0
	for x >= step && unit < 4 {
		x, unit = x/step, unit+1
	}
	return fmt.Sprintf("%.3g %cB", x, "kMGTP"[unit])
}

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
