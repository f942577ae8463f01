package thin

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Figure is what one turn of a row came to in one respect.
type Figure struct {
	Name   string
	Value  float64
	Target Target
}

// finite leaves out figures without a value, and names them.
func finite(figures []Figure) (rest []Figure, without []string) {
	for _, f := range figures {
		if math.IsNaN(f.Value) || math.IsInf(f.Value, 0) {
			without = append(without, f.Name)
			continue
		}
		rest = append(rest, f)
	}
	return rest, without
}

// Target is what a figure should be. One without bounds is only shown.
type Target struct {
	Least *float64 `json:"at_least,omitempty"`
	Most  *float64 `json:"at_most,omitempty"`
}

func atLeast(x float64) Target         { return Target{Least: &x} }
func atMost(x float64) Target          { return Target{Most: &x} }
func between(low, high float64) Target { return Target{&low, &high} }

// shown has no bounds.
var shown = Target{}

func (t Target) bounded() bool { return t.Least != nil || t.Most != nil }

func (t Target) met(x float64) bool {
	return (t.Least == nil || x >= *t.Least) && (t.Most == nil || x <= *t.Most)
}

func (t Target) String() string {
	switch {
	case t.Least != nil && t.Most != nil:
		return number(*t.Least) + " to " + number(*t.Most)
	case t.Least != nil:
		return "at least " + number(*t.Least)
	case t.Most != nil:
		return "at most " + number(*t.Most)
	}
	return ""
}

// number writes a figure with four digits, and all of a large one.
func number(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Summary is a figure over all turns of a row.
type Summary struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	Turns  int     `json:"turns"`
	Target Target  `json:"target"`
	Met    *bool   `json:"met,omitempty"` // absent where it is only shown
}

// summarize puts the figures of turns together, in the order of the first that has them.
func summarize(turns [][]Figure) (all []Summary) {
	var names []string
	values := map[string][]float64{}
	targets := map[string]Target{}
	for _, turn := range turns {
		for _, f := range turn {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
			values[f.Name], targets[f.Name] = append(values[f.Name], f.Value), f.Target
		}
	}
	for _, name := range names {
		v := values[name]
		s := Summary{Name: name, Median: median(v), Min: slices.Min(v), Max: slices.Max(v), Turns: len(v), Target: targets[name]}
		if s.Target.bounded() {
			met := s.Target.met(s.Median)
			s.Met = &met
		}
		all = append(all, s)
	}
	return all
}

func median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
