package thin

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"atoll/testnet/lab/trials"
)

// Figure is what one turn of a row came to in one respect.
type Figure struct {
	Name   string
	Value  float64
	Target trials.Target
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

// number writes a figure with four digits, and all of a large one.
func number(x float64) string {
	if x >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(x, 'g', 4, 64)
}

// Summary is a figure over all turns of a row.
type Summary struct {
	Name   string        `json:"name"`
	Median float64       `json:"median"`
	Min    float64       `json:"min"`
	Max    float64       `json:"max"`
	Turns  int           `json:"turns"`
	Target trials.Target `json:"target"`
	Met    *bool         `json:"met,omitempty"` // absent where it is only shown
}

// summarize puts the figures of turns together, in the order of the first that has them.
func summarize(turns [][]Figure) (all []Summary) {
	var names []string
	values := map[string][]float64{}
	targets := map[string]trials.Target{}
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
		s := Summary{Name: name, Median: trials.Median(v), Min: slices.Min(v), Max: slices.Max(v), Turns: len(v), Target: targets[name]}
		if s.Target.Bounded() {
			met := s.Target.Met(s.Median)
			s.Met = &met
		}
		all = append(all, s)
	}
	return all
}
