package main

import (
	"fmt"
	"math"
	"strings"

	"atoll/node/genesis"
	"atoll/optimizer/outer/tune"
)

// runOf is what the length of a run follows from. text is the tokens to train on; chosen says that links fix H.
func runOf(g genesis.Genesis, learners, text int, chosen bool) tune.Run {
	return tune.Run{
		Params: g.Model.Params(), Budget: g.Outer.Budget, StepTokens: g.Batch * g.Model.Context,
		H: g.Outer.H, Fixed: chosen, Learners: learners, Text: text,
	}
}

// lengthRow says so, and what to do about a run that is short.
func lengthRow(l tune.Length) []string {
	text := fmt.Sprintf("%s of each of %s, %s, %s tokens a parameter", plural(l.Steps, "step", "steps"),
		plural(l.Learners, "learner", "learners"), plural(l.Rounds, "round", "rounds"), twoDigits(l.PerParam))
	if l.Short {
		text += fmt.Sprintf(": short (%s). Four learners in such runs came out more than 2 %% behind data parallelism. Use --tokens %s or more", lacking(l), short(l.Least))
	}
	if l.SmallerH {
		text += "; a smaller --h helps as well and takes more bandwidth"
	}
	return []string{"length", text}
}

// lacking says what makes a run of several learners short.
func lacking(l tune.Length) string {
	var few []string
	if l.FewRounds() {
		few = append(few, fmt.Sprintf("fewer than %d rounds", tune.EnoughRounds))
	}
	if l.FewTokens() {
		few = append(few, fmt.Sprintf("fewer than %d tokens a parameter", tune.EnoughTokens))
	}
	return strings.Join(few, ", ")
}

// short writes a number of 10 and more with two digits as one would type it: 1.5e7.
func short(x float64) string {
	mantissa, exponent, _ := strings.Cut(fmt.Sprintf("%.1e", x), "e+")
	return mantissa + "e" + strings.TrimLeft(exponent, "0")
}

// twoDigits writes a number of any size that way, and a large one no larger than it is: 0.00093, 3.6, 120.
func twoDigits(x float64) string {
	if x >= 10 {
		return fmt.Sprintf("%.0f", math.Floor(x))
	}
	return fmt.Sprintf("%.2g", x)
}
