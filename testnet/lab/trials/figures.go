package trials

import (
	"cmp"
	"slices"
)

// Target is what a figure should be. One without bounds is only shown.
type Target struct {
	Least *float64 `json:"at_least,omitempty"`
	Most  *float64 `json:"at_most,omitempty"`
}

// AtLeast, AtMost and Between are targets with bounds, Shown is one without.
func AtLeast(x float64) Target         { return Target{Least: &x} }
func AtMost(x float64) Target          { return Target{Most: &x} }
func Between(low, high float64) Target { return Target{&low, &high} }

var Shown = Target{}

// Bounded says whether something is asked.
func (t Target) Bounded() bool { return t != Shown }

// Met says whether x is within the bounds.
func (t Target) Met(x float64) bool {
	return (t.Least == nil || x >= *t.Least) && (t.Most == nil || x <= *t.Most)
}

// Text says the bounds in words, with their numbers written by number.
func (t Target) Text(number func(float64) string) string {
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

// Median is the middle of some values, the mean of both where their number is even. There is at
// least one.
func Median(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// InTurn are the worlds of a turn, the first of which is 1. Every second turn has them the other
// way round: what drifts then falls on all.
func InTurn[World any](worlds []World, turn int) []World {
	worlds = slices.Clone(worlds)
	if turn%2 == 0 {
		slices.Reverse(worlds)
	}
	return worlds
}
