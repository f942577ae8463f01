package sweep

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// XY is a point of a plot.
type XY struct{ X, Y float64 }

// Series is a line of a plot, with a mark at each point.
type Series struct {
	Name   string
	Points []XY
}

// Plot is a drawing of series. It has no opinion on what they mean.
type Plot struct {
	Title, XLabel, YLabel string
	LogX, LogY            bool
	Series                []Series
}

// Sizes of a plot in pixels.
const (
	plotWidth  = 760
	plotHeight = 440
	plotLeft   = 70 // of the axes
	plotRight  = 250
	plotTop    = 40
	plotBottom = 55
)

// Colours that people who see few can tell apart (M. Okabe and K. Ito, 2008), and
// dashes, so that colour carries nothing alone.
var (
	colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"}
	dashes  = []string{"", "7 3", "2 3", "9 3 2 3"}
)

// SVG draws the plot. Points whose place is not finite are left out.
func (p Plot) SVG() string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", plotWidth, plotHeight)
	text(&b, plotLeft, 22, "start", 15, p.Title)
	x, y := p.axis(func(q XY) float64 { return q.X }, p.LogX), p.axis(func(q XY) float64 { return q.Y }, p.LogY)
	x.from, x.to, y.from, y.to = plotLeft, plotWidth-plotRight, plotHeight-plotBottom, plotTop
	p.grid(&b, x, y)
	for i, s := range p.Series {
		s.draw(&b, i, x, y)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// grid draws ticks, their lines and the labels.
func (p Plot) grid(b *strings.Builder, x, y axis) {
	for _, t := range x.ticks() {
		at := x.place(t)
		fmt.Fprintf(b, `<path d="M%.1f %d V%d" stroke="#ddd"/>`+"\n", at, plotTop, plotHeight-plotBottom)
		text(b, at, plotHeight-plotBottom+18, "middle", 12, tick(t))
	}
	for _, t := range y.ticks() {
		at := y.place(t)
		fmt.Fprintf(b, `<path d="M%d %.1f H%d" stroke="#ddd"/>`+"\n", plotLeft, at, plotWidth-plotRight)
		text(b, plotLeft-8, at+4, "end", 12, tick(t))
	}
	text(b, (plotLeft+plotWidth-plotRight)/2, plotHeight-14, "middle", 12, p.XLabel)
	fmt.Fprintf(b, `<g transform="rotate(-90 18 %d)">`, plotHeight/2)
	text(b, 18, plotHeight/2, "middle", 12, p.YLabel)
	b.WriteString("</g>\n")
}

func (s Series) draw(b *strings.Builder, i int, x, y axis) {
	colour, dash := colours[i%len(colours)], dashes[i/len(colours)%len(dashes)]
	path := ""
	for _, q := range s.Points {
		px, py := x.place(q.X), y.place(q.Y)
		if !finite(px) || !finite(py) {
			continue
		}
		path += fmt.Sprintf("%c%.1f %.1f", "ML"[min(len(path), 1)], px, py)
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px, py, colour)
	}
	if path != "" {
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-dasharray="%s"/>`+"\n", path, colour, dash)
	}
	at := plotTop + 10 + 17*i
	fmt.Fprintf(b, `<path d="M%d %d h24" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", plotWidth-plotRight+15, at-4, colour, dash)
	text(b, plotWidth-plotRight+45, float64(at), "start", 12, s.Name)
}

func text[T int | float64](b *strings.Builder, x T, y float64, align string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d">%s</text>`+"\n", float64(x), y, align, size, html.EscapeString(s))
}

func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// tick writes a number of an axis; large ones are short.
func tick(x float64) string {
	switch size := math.Abs(x); {
	case size >= 1e6:
		return number(x/1e6) + " M"
	case size >= 1e4:
		return number(x/1e3) + " k"
	}
	return number(x)
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// axis maps values to pixels.
type axis struct {
	lo, hi   float64 // values; of a logarithmic axis their decimal logarithms
	log      bool
	from, to float64 // pixels
}

// axis spans all points, with a little room.
func (p Plot) axis(of func(XY) float64, log bool) axis {
	var all []float64
	for _, s := range p.Series {
		for _, q := range s.Points {
			if v := scale(of(q), log); finite(v) {
				all = append(all, v)
			}
		}
	}
	if len(all) == 0 {
		return axis{lo: 0, hi: 1, log: log}
	}
	a := axis{lo: slices.Min(all), hi: slices.Max(all), log: log}
	room := max((a.hi-a.lo)*0.04, 1e-9)
	a.lo, a.hi = a.lo-room, a.hi+room
	return a
}

func scale(x float64, log bool) float64 {
	if log {
		return math.Log10(x)
	}
	return x
}

func (a axis) place(x float64) float64 {
	return a.from + (a.to-a.from)*(scale(x, a.log)-a.lo)/(a.hi-a.lo)
}

// ticks are round values: of a linear axis about six, of a logarithmic one 1, 2
// and 5 of each decade.
func (a axis) ticks() (ticks []float64) {
	if a.log {
		for e := math.Floor(a.lo); e <= a.hi; e++ {
			for _, m := range []float64{1, 2, 5} {
				if t := m * math.Pow(10, e); math.Log10(t) >= a.lo && math.Log10(t) <= a.hi {
					ticks = append(ticks, t)
				}
			}
		}
		return ticks
	}
	step := roundStep((a.hi - a.lo) / 6)
	for i := math.Ceil(a.lo / step); i*step <= a.hi; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// roundStep is the smallest of 1, 2 and 5 times a power of ten that is not below x.
func roundStep(x float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= x {
			return m * unit
		}
	}
	return 10 * unit
}
