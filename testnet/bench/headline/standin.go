package main

import (
	"fmt"
	"time"
)

// This file holds the row of a model that two cores cannot train: its learners compute nothing, and every byte of its
// deltas is made, sent and folded.

const (
	standinModel  = "testnet/bench/headline/124m.json"
	standinParams = 124_084_992
	standinTokens = 1024 // of a step of a node
	standinStep   = 100 * time.Millisecond
	standinNodes  = 4
	standinH      = 24
	standinSweeps = 20 // of all fragments
)

// standinLinks are the worlds, with what is asked.
var standinLinks = []struct {
	mbit  float64
	link  string
	codec string
	least float64
}{{100, thin100, "sparse", 20}, {1000, "rate=1gbit,delay=40ms", "int4", 7}}

var standinRow = Row{
	Name: "standin", About: "124 M parameters, steps of 100 ms, a stand-in without arithmetic", Takes: "8 minutes", TakesQuick: "three minutes",
	Pace: time.Millisecond, // the stand-in takes its own time
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		tokens := float64(standinSweeps * standinH * standinNodes * standinTokens)
		for _, l := range standinLinks {
			worlds = append(worlds, testnetWorld(fmt.Sprintf("atoll %g", l.mbit),
				"--nodes", fmt.Sprint(standinNodes), "--model", standinModel, "--batch", "1", "--optimizer", "adamw", "--data", "goroot", "--seed", fmt.Sprint(seed), noEval,
				"--tokens", s.tokens(tokens, tokens/5), "--h", fmt.Sprint(standinH), "--codec", l.codec, "--link", l.link,
				"--learner", fmt.Sprintf("standin --step %v", standinStep)))
		}
		if s.Quick {
			return worlds[:1]
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, l := range standinLinks {
			atoll, have := o[fmt.Sprintf("atoll %g", l.mbit)]
			if !have {
				continue
			}
			what := fmt.Sprintf("%s, %g Mbit/s, 40 ms", l.codec, l.mbit)
			lines = append(lines,
				over(what, "tokens/s", atoll.steady(), standinRate(1, l.mbit), "dp at most, by the formula,", atLeast(l.least)),
				over(what+", beside diloco", "tokens/s", atoll.steady(), standinRate(standinH, l.mbit), "diloco at most, by the formula,", shown),
				alone(what+", of the speed of steps alone", "", atoll.steady()/(standinNodes*standinTokens/standinStep.Seconds()), shown))
		}
		return lines
	},
}

// standinRate is the most tokens per second of a barrier every h steps: dp, whose h is 1, hides its all-reduce behind the
// step at best, and diloco does not.
func standinRate(h int, mbit float64) float64 {
	round := time.Duration(h) * standinStep
	reduce := standinNodes * standinTokens / dpRate(standinNodes, standinParams, standinTokens, mbit, delay)
	seconds := max(round.Seconds(), reduce)
	if h > 1 {
		seconds = round.Seconds() + reduce
	}
	return float64(h) * standinNodes * standinTokens / seconds
}
