package sweep

import (
	"cmp"
	"slices"
	"strings"
)

// Curves plots bits per byte on the way against tokens: a line for each group,
// the mean of its trials, named by the fields in by.
func Curves(groups []*Group, by []string) Plot {
	p := Plot{Title: "Quality on the way", XLabel: "tokens folded", YLabel: "bits per byte"}
	for _, g := range groups {
		if len(g.Trials) > 0 {
			p.Series = append(p.Series, Series{g.Setting.label(by), g.curve()})
		}
	}
	return p
}

// curve is the mean of the trials' curves, as far as all of them go.
func (g *Group) curve() []XY {
	n := len(g.Trials[0].Curve)
	for _, t := range g.Trials {
		n = min(n, len(t.Curve))
	}
	points := make([]XY, n)
	for i := range points {
		points[i].X = g.mean(func(t Trial) float64 { return float64(t.Curve[i].Tokens) })
		points[i].Y = g.mean(func(t Trial) float64 { return t.Curve[i].BPB })
	}
	return points
}

// Frontier plots bits per byte at the end against bytes of payload per token:
// groups with equal values of the fields in by make a line.
func Frontier(groups []*Group, by []string) Plot {
	p := Plot{Title: "Quality against bandwidth", XLabel: "payload bytes per token", YLabel: "bits per byte", LogX: true}
	for _, g := range groups {
		if len(g.Trials) == 0 || g.mean(payload) == 0 {
			continue
		}
		name := g.Setting.label(by)
		i := slices.IndexFunc(p.Series, func(s Series) bool { return s.Name == name })
		if i < 0 {
			i = len(p.Series)
			p.Series = append(p.Series, Series{Name: name})
		}
		p.Series[i].Points = append(p.Series[i].Points, XY{g.mean(payload), g.mean(bpb)})
	}
	for _, s := range p.Series {
		slices.SortFunc(s.Points, func(a, b XY) int { return cmp.Compare(a.X, b.X) })
	}
	return p
}

// label names a setting by some fields, as far as its baseline reads them.
func (s Setting) label(by []string) string {
	var words []string
	for _, name := range by {
		switch value := s.shown(name); {
		case name == "arm":
			words = append(words, value)
		case value != "-":
			words = append(words, name+" "+value)
		}
	}
	return strings.Join(words, ", ")
}
