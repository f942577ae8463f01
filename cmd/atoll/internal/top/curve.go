package top

import (
	"fmt"
	"math"
	"strings"

	"atoll/node/status"
)

// curveKind is what a curve is of.
type curveKind int

// The kinds, the one that says most first.
const (
	heldOutBits   curveKind = iota // bits per byte of the global parameters on held-out text
	heldOutLoss                    // nats per token of it
	heartbeatBits                  // the bits that a peer's heartbeats say
	trainingLoss                   // of the batches of the nodes that are shown
	curveKinds
)

var curveNames = [curveKinds]string{
	"bits per byte of held-out text", "loss on held-out text, nats a token", "bits of held-out text, as a peer says", "loss of the learner's batches, nats a token",
}

// of is the newest value and the tokens that it is at; 0 where there is none.
func (k curveKind) of(nodes []Node, lead status.Snapshot) (at uint64, value float64) {
	switch k {
	case heldOutBits, heldOutLoss:
		for _, n := range nodes {
			v := n.Status.ValBPB
			if k == heldOutLoss {
				v = n.Status.ValLoss
			}
			if v > 0 && n.Status.ValAtTokens >= at {
				at, value = n.Status.ValAtTokens, v
			}
		}
		return at, value
	case heartbeatBits:
		for _, p := range lead.Peers {
			if p.Bits > 0 {
				return lead.TokensFolded, p.Bits
			}
		}
		return 0, 0
	}
	sum, n := 0.0, 0
	for _, node := range nodes {
		if node.Running && node.Status.TrainLoss > 0 {
			sum, n = sum+node.Status.TrainLoss, n+1
		}
	}
	if n == 0 {
		return 0, 0
	}
	return lead.TokensFolded, sum / float64(n)
}

// curve is values over tokens.
type curve struct{ status.Curve }

// add notes a value, unless there is none or it is known already.
func (c *curve) add(at uint64, value float64) {
	if value > 0 && !math.IsInf(value, 0) {
		c.Add(at, value, maxPoints)
	}
}

func (c *curve) last() float64 { return c.Value[len(c.Value)-1] }

// bestCurve is the curve that says most of those that have values; nil if none has.
func (h *History) bestCurve() (kind curveKind, c *curve) {
	for k := range h.curves {
		if len(h.curves[k].At) > 0 {
			return curveKind(k), &h.curves[k]
		}
	}
	return 0, nil
}

// A character of braille has dots in two columns and four rows.
const (
	dotsWide, dotsHigh = 2, 4
	braille            = 0x2800
)

// dots are the bits of a character's dots, by row and column.
var dots = [dotsHigh][dotsWide]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// plot draws a curve in so many columns and rows of braille. low and high are the values at the
// bottom and the top.
func (c *curve) plot(columns, rows int, low, high float64) []string {
	cells := make([][]rune, rows)
	for i := range cells {
		cells[i] = []rune(strings.Repeat(string(rune(braille)), columns))
	}
	wide, tall := columns*dotsWide, rows*dotsHigh
	first, last := c.At[0], c.At[len(c.At)-1]
	place := func(i int) (x, y int) {
		if last > first {
			x = int(float64(c.At[i]-first) / float64(last-first) * float64(wide-1))
		}
		return x, int(math.Round((high - c.Value[i]) / (high - low) * float64(tall-1)))
	}
	set := func(x, y int) {
		if x < 0 || x >= wide || y < 0 || y >= tall {
			return // above the range, see span
		}
		cells[y/dotsHigh][x/dotsWide] |= dots[y%dotsHigh][x%dotsWide]
	}
	x0, y0 := place(0)
	set(x0, y0)
	for i := 1; i < len(c.At); i++ {
		x1, y1 := place(i)
		steps := max(x1-x0, y1-y0, y0-y1, 1)
		for s := 1; s <= steps; s++ {
			set(x0+(x1-x0)*s/steps, y0+(y1-y0)*s/steps)
		}
		x0, y0 = x1, y1
	}
	lines := make([]string, rows)
	for i := range cells {
		lines[i] = string(cells[i])
	}
	return lines
}

// A range is at least leastSpan of its value, as noise is no news, and needs enoughValues.
const (
	leastSpan    = 0.02
	enoughValues = 8
)

// skipped is the part of a curve's tokens whose values do not set the range: a loss falls so fast at first
// that all the rest would look flat.
const skipped = 0.1

// span is the range of values that a plot shows, never empty. The first values may be above it.
func (c *curve) span() (low, high float64) {
	from := 0
	first, last := float64(c.At[0]), float64(c.At[len(c.At)-1])
	for from < len(c.At)-enoughValues && float64(c.At[from]) < first+skipped*(last-first) {
		from++
	}
	low, high = c.last(), c.last()
	for _, v := range c.Value[from:] {
		low, high = min(low, v), max(high, v)
	}
	if least := leastSpan * high; high-low < least {
		middle := (high + low) / 2
		low, high = middle-least/2, middle+least/2
	}
	return low, high
}

// tick is a label of an axis of values.
func tick(v float64) string { return fmt.Sprintf("%6.3f", v) }
