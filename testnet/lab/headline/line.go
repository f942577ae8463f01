package headline

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"atoll/testnet/lab/trials"
)

// Line is what one turn of a row came to in one respect: both sides, and what is asked.
type Line struct {
	What   string  // such as "20 Mbit/s, 40 ms"
	Unit   string  // of both sides
	Atoll  float64 // NaN = not measured
	Beside float64 // NaN = nothing stands beside it
	Of     string  // what stands beside
	Value  float64 // what is asked about: mostly the ratio of the sides
	Asked  trials.Target
}

// none is a side that there is not.
var none = math.NaN()

// over compares two sides by atoll's over the other's.
func over(what, unit string, atoll, beside float64, of string, asked trials.Target) Line {
	return Line{What: what, Unit: unit, Atoll: atoll, Beside: beside, Of: of, Value: atoll / beside, Asked: asked}
}

// under compares two sides by the other's over atoll's: of bytes and of seconds less is better.
func under(what, unit string, atoll, beside float64, of string, asked trials.Target) Line {
	return Line{What: what, Unit: unit, Atoll: atoll, Beside: beside, Of: of, Value: beside / atoll, Asked: asked}
}

// alone is a figure with nothing beside it, which is itself asked about.
func alone(what, unit string, atoll float64, asked trials.Target) Line {
	return Line{What: what, Unit: unit, Atoll: atoll, Beside: none, Value: atoll, Asked: asked}
}

// other is a figure of the other side alone.
func other(what, unit string, beside float64, of string, asked trials.Target) Line {
	return Line{What: what, Unit: unit, Atoll: none, Beside: beside, Of: of, Value: beside, Asked: asked}
}

// exact writes all digits: what is asked is not rounded.
func exact(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// number writes three digits, and all before the point.
func number(x float64) string {
	if math.Abs(x) >= 1000 {
		return fmt.Sprintf("%.0f", x)
	}
	return strconv.FormatFloat(round3(x), 'f', -1, 64)
}

// round3 keeps three digits.
func round3(x float64) float64 {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return x
	}
	unit := math.Pow(10, 2-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*unit) / unit
}

// Spread is a figure over all turns.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`

	Values []float64 `json:"values,omitempty"` // of the turns, in their order; absent in results that are older than it
}

// spread puts the figures of turns together; nil if there is none.
func spread(values []float64) *Spread {
	values = slices.DeleteFunc(slices.Clone(values), func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
	if len(values) == 0 {
		return nil
	}
	return &Spread{Median: trials.Median(values), Min: slices.Min(values), Max: slices.Max(values), Values: values}
}

// Summary is a Line over all turns of a row.
type Summary struct {
	What   string        `json:"what"`
	Unit   string        `json:"unit"`
	Atoll  *Spread       `json:"atoll,omitempty"`
	Beside *Spread       `json:"beside,omitempty"`
	Of     string        `json:"of,omitempty"` // what stands beside
	Value  *Spread       `json:"value,omitempty"`
	Asked  trials.Target `json:"asked,omitzero"`
	Turns  int           `json:"turns"`
	Met    *bool         `json:"met,omitempty"` // of the median; absent where nothing is asked
}

// summarize puts the lines of turns together, in the order in which they first came.
func summarize(turns [][]Line) (all []Summary) {
	var names []string
	lines := map[string][]Line{}
	for _, turn := range turns {
		for _, l := range turn {
			if lines[l.What] == nil {
				names = append(names, l.What)
			}
			lines[l.What] = append(lines[l.What], l)
		}
	}
	for _, name := range names {
		all = append(all, summaryOf(lines[name]))
	}
	return all
}

func summaryOf(lines []Line) Summary {
	column := func(of func(Line) float64) *Spread {
		var values []float64
		for _, l := range lines {
			values = append(values, of(l))
		}
		return spread(values)
	}
	first := lines[0]
	s := Summary{
		What: first.What, Unit: first.Unit, Of: first.Of, Asked: first.Asked, Turns: len(lines),
		Atoll: column(func(l Line) float64 { return l.Atoll }), Beside: column(func(l Line) float64 { return l.Beside }),
		Value: column(func(l Line) float64 { return l.Value }),
	}
	s.judge()
	return s
}

// judge says whether what is asked is met.
func (s *Summary) judge() {
	if s.Asked.Bounded() {
		met := s.Value != nil && s.Asked.Met(s.Value.Median)
		s.Met = &met
	}
}
