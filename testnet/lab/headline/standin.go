package headline

import (
	"fmt"
	"time"

	"atoll/testnet/lab/trials"
)

// This file holds the row of a model that two cores cannot train: its learners compute nothing, and every byte of its
// deltas is made, sent and folded.

const (
	standinModel  = "testnet/lab/headline/124m.json"
	standinParams = 124_084_992
	standinTokens = 1024 // of a step of a node
	standinStep   = 100 * time.Millisecond
	standinNodes  = 4
	standinH      = 24
	standinSweeps = 20 // of all fragments
)

// standinLinks are the links, with the tokens of dp and diloco that take some minutes, and what is asked of atoll over dp.
var standinLinks = []struct {
	mbit                float64
	link, codec         string
	dpSteps, dilocoRuns float64
	least               float64
}{{100, thin100, "sparse", 8, 6, 20}, {1000, "rate=1gbit,delay=40ms", "int4", 30, 15, 7}}

var standinRow = Row{
	Name: "standin", About: "124 M parameters, steps of 100 ms, a stand-in without arithmetic", Takes: "25 minutes", TakesQuick: "two minutes",
	Pace: standinStep,
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		step := float64(standinNodes * standinTokens)
		for _, l := range standinLinks {
			world := func(system string, tokens string, flags ...string) World {
				return testnetWorld(fmt.Sprintf("%s %g", system, l.mbit), append([]string{
					"--nodes", fmt.Sprint(standinNodes), "--model", standinModel, "--batch", "1", "--optimizer", "adamw", "--data", "goroot",
					"--seed", fmt.Sprint(seed), "--h", fmt.Sprint(standinH), "--link", l.link, "--learner", fmt.Sprintf("standin --step %v", standinStep), noEval,
					"--baseline", system, "--tokens", tokens}, flags...)...)
			}
			atoll := world("atoll", s.tokens(standinSweeps*standinH*step, standinSweeps*standinH*step/5), "--codec", l.codec)
			if s.Quick {
				return []World{atoll}
			}
			worlds = append(worlds, atoll, world("dp", s.tokens(l.dpSteps*step, 0)), world("diloco", s.tokens(l.dilocoRuns*standinH*step, 0)))
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, l := range standinLinks {
			atoll, have := o[fmt.Sprintf("atoll %g", l.mbit)]
			if !have {
				continue
			}
			what := standinWhat(l.codec, l.mbit)
			if dp, have := o[fmt.Sprintf("dp %g", l.mbit)]; have {
				lines = append(lines, over(what, "tokens/s", atoll.steady(), dp.steady(), "dp", trials.AtLeast(l.least)))
			}
			if diloco, have := o[fmt.Sprintf("diloco %g", l.mbit)]; have {
				lines = append(lines, over(what+", beside diloco", "tokens/s", atoll.steady(), diloco.steady(), "diloco", trials.Shown))
			}
			lines = append(lines,
				over(what+", dp by the formula", "tokens/s", atoll.steady(), standinRate(1, l.mbit), "dp at most", trials.Shown),
				over(what+", diloco by the formula", "tokens/s", atoll.steady(), standinRate(standinH, l.mbit), "diloco at most", trials.Shown),
				alone(what+": of the speed of steps alone", "", atoll.steady()/(standinNodes*standinTokens/standinStep.Seconds()), trials.Shown))
		}
		return lines
	},
}

// standinWhat names the comparison over a link.
func standinWhat(codec string, mbit float64) string {
	return fmt.Sprintf("%s, %g Mbit/s, 40 ms", codec, mbit)
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
