package trace

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Sizes of the picture in pixels.
const (
	pictureWidth  = 900
	plotLeft      = 70
	plotRight     = pictureWidth - 30
	plotTop       = 70
	plotBottom    = 390
	rowsTop       = plotBottom + 76
	rowHeight     = 22
	barLeft       = 330
	barRight      = 640
	pictureHeight = rowsTop + 14*rowHeight
)

// colours of the stages: greys for the author, blues before a payload is asked for, warm
// ones while it is fetched, greens once it is held. Neighbours differ in lightness, for
// those who see few colours; bands and rows have the same order.
var colours = []string{
	"#9aa0a6", "#c6dbef", "#4a90d9", "#08306b", "#fee391", "#f39c12", "#d9480f", "#8c1d04",
	"#d9c2e9", "#a1d99b", "#2ca25f", "#00441b",
}

// SVG draws where the deltas of a merged trace are, by the time since they were drafted,
// and below that what each stage takes. It brings its own background, so it is as readable
// on a dark page. whose says which deltas they are, such as " of lab"; "" is of all.
func SVG(lines []Line, whose string) string {
	p := picture{shares: Sum(Trace{Lines: lines}), whose: whose}
	for i := range lines {
		if l := &lines[i]; l.way() {
			p.ways = append(p.ways, l.elapsed())
		}
	}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="13" fill="#1f2328">`, pictureWidth, pictureHeight)
	p.printf(`<rect width="%d" height="%d" rx="8" fill="#ffffff"/>`, pictureWidth, pictureHeight)
	p.head()
	p.bands()
	p.axes()
	p.rows()
	p.printf(`</svg>`)
	return p.b.String()
}

// picture is one while it is drawn.
type picture struct {
	b      strings.Builder
	shares Shares
	whose  string
	ways   [][]int64 // milliseconds to the end of each stage, by delta
	long   float64   // seconds that the plot spans
}

func (p *picture) printf(format string, args ...any) {
	fmt.Fprintf(&p.b, format+"\n", args...)
}

func (p *picture) text(x, y float64, anchor, style, s string) {
	p.printf(`<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`, x, y, anchor, style, html.EscapeString(s))
}

func (p *picture) head() {
	p.text(plotLeft, 28, "start", `font-size="17" font-weight="bold"`, "Where deltas"+p.whose+" are on their way into other nodes' models")
	s := p.shares
	p.text(plotLeft, 50, "start", `fill="#59636e"`, fmt.Sprintf("%d deltas; half within %s, 95 %% within %s; %s came after their round had closed",
		s.Deltas, secondsText(s.MedianS), secondsText(s.P95S), percentText(ratio(s.Late, s.Deltas))))
}

// The plot shows the whole way of this part of the deltas, but no more than so many times the
// median: the slowest would press all others to its edge.
const (
	spanOf    = 0.99
	spanTimes = 10
)

// bands draws for each moment after the draft which part of the deltas is in which stage.
// As far as the plot goes, the area of a band is the share of its stage.
func (p *picture) bands() {
	ends := make([][]int64, len(stages))
	for _, w := range p.ways {
		for k, at := range w {
			ends[k] = append(ends[k], at)
		}
	}
	for k := range ends {
		slices.Sort(ends[k])
	}
	last := ends[len(ends)-1]
	p.long = max(min(quantile(last, spanOf), spanTimes*p.shares.MedianS), 0.001)
	p.printf(`<rect x="%d" y="%d" width="%d" height="%d" fill="#f0f1f3"/>`, plotLeft, plotTop, plotRight-plotLeft, plotBottom-plotTop)
	above := make([]float64, plotRight-plotLeft+1) // parts that have not left the stages so far
	for x := range above {
		above[x] = 1
	}
	for k, sorted := range ends {
		below := make([]float64, len(above))
		for x := range below {
			below[x] = part(sorted, float64(x)/float64(len(below)-1)*p.long*1000)
		}
		p.band(colours[k], above, below)
		above = below
	}
	in := "in the model"
	if later := 1 - part(last, p.long*1000); later > 1-spanOf {
		in += fmt.Sprintf("; %s take longer than shown here", percentText(later))
	}
	if len(p.ways) > 0 {
		p.text(plotRight-12, plotBottom-12, "end", `font-weight="bold" fill="#59636e"`, in)
	}
}

// part of sorted values that are at most x.
func part(sorted []int64, x float64) float64 {
	n, _ := slices.BinarySearch(sorted, int64(math.Floor(x))+1)
	return float64(n) / float64(max(len(sorted), 1))
}

func (p *picture) band(colour string, above, below []float64) {
	var path strings.Builder
	edge := func(parts []float64, x int) {
		if x > 0 && x < len(parts)-1 && parts[x-1] == parts[x] && parts[x] == parts[x+1] {
			return // on a straight line
		}
		fmt.Fprintf(&path, " %d,%.1f", plotLeft+x, placeOf(parts[x]))
	}
	for x := range above {
		edge(above, x)
	}
	for x := len(below) - 1; x >= 0; x-- {
		edge(below, x)
	}
	p.printf(`<polygon points="%s" fill="%s"/>`, path.String()[1:], colour)
}

// placeOf is where a part of the deltas is on the vertical axis.
func placeOf(part float64) float64 { return plotBottom - part*(plotBottom-plotTop) }

func (p *picture) axes() {
	for i := 0; i <= 4; i++ {
		y := placeOf(float64(i) / 4)
		p.printf(`<path d="M%d %.1f H%d" stroke="#1f2328" stroke-opacity="0.15"/>`, plotLeft, y, plotRight)
		p.text(plotLeft-8, y+4, "end", "", fmt.Sprintf("%d %%", 25*i))
	}
	step := roundStep(p.long / 8)
	for i := 0; float64(i)*step <= p.long; i++ {
		t := float64(i) * step
		x := plotLeft + t/p.long*(plotRight-plotLeft)
		p.printf(`<path d="M%.1f %d v5" stroke="#1f2328"/>`, x, plotBottom)
		p.text(x, plotBottom+19, "middle", "", strconv.FormatFloat(t, 'g', 4, 64))
	}
	p.text((plotLeft+plotRight)/2, plotBottom+38, "middle", "", "seconds since its author drafted it")
	p.printf(`<g transform="rotate(-90 18 %d)">`, (plotTop+plotBottom)/2)
	p.text(18, (plotTop+plotBottom)/2, "middle", "", "part of the deltas")
	p.printf(`</g>`)
}

// rows is the legend, with what each stage takes.
func (p *picture) rows() {
	most := 0.0
	for _, e := range p.shares.Stages {
		most = max(most, e.Share)
	}
	y := float64(rowsTop)
	grey := `fill="#59636e"`
	p.text(barLeft, y, "start", grey, "share of a delta's time")
	p.text(barRight+130, y, "end", grey, "median")
	p.text(plotRight, y, "end", grey, "95 % within")
	for k, e := range p.shares.Stages {
		y += rowHeight
		p.printf(`<rect x="%d" y="%.1f" width="14" height="14" fill="%s"/>`, plotLeft, y-11, colours[k])
		p.text(plotLeft+24, y, "start", "", stages[k].what)
		wide := 0.0
		if most > 0 {
			wide = e.Share / most * (barRight - barLeft)
		}
		p.printf(`<rect x="%d" y="%.1f" width="%.1f" height="14" fill="%s"/>`, barLeft, y-11, wide, colours[k])
		p.text(barLeft+wide+6, y, "start", "", percentText(e.Share))
		p.text(barRight+130, y, "end", "", secondsText(e.MedianS))
		p.text(plotRight, y, "end", "", secondsText(e.P95S))
	}
	y += rowHeight + 4
	p.printf(`<path d="M%d %.1f H%d" stroke="#1f2328" stroke-opacity="0.3"/>`, plotLeft, y-rowHeight+6, plotRight)
	p.text(plotLeft+24, y, "start", "", "in all")
	p.text(barRight+130, y, "end", "", secondsText(p.shares.MedianS))
	p.text(plotRight, y, "end", "", secondsText(p.shares.P95S))
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
