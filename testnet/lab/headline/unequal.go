package headline

import (
	"fmt"
	"time"

	"atoll/testnet/lab/trials"
)

// This file holds the rows about machines that differ, and about those that come.

// Bounds of the row unequal: what a learner may wait, and what unlike speeds may cost the model.
const (
	mostWaited = 0.01
	mostWorse  = 1.015
)

// mixed are learners of three kinds.
const mixed = "go,torch --threads 1,torchrun:2 --threads 1"

// unequalPairs are worlds with what they are compared with.
var unequalPairs = []struct{ what, world, equal string }{
	{"speeds 1:1:2:4", "1:1:2:4", "4 equal"},
	{"speeds 1:10", "1:10", "2 equal"},
	{"a Go learner, a PyTorch learner and a data-parallel group", "mixed", "3 equal"},
}

// unequalPace leaves room for frameworks, which take some times what atoll's own trainer takes for a step on a core.
const unequalPace = 500 * time.Millisecond

var unequalRow = Row{
	Name: "unequal", About: "unequal machines", Takes: "35 minutes", TakesQuick: "three minutes", Pace: unequalPace, Torch: true,
	Worlds: func(s Settings, seed uint64) []World {
		tokens := s.tokens(1e6, 1e5)
		world := func(name string, flags ...string) World {
			return testnetWorld(name, append([]string{"--optimizer", "adamw", "--seed", fmt.Sprint(seed), "--tokens", tokens}, flags...)...)
		}
		worlds := []World{
			world("4 equal", "--nodes", "4"),
			world("1:1:2:4", "--nodes", "4", "--speed", "1,1,2,4"),
			world("2 equal", "--nodes", "2"),
			world("1:10", "--nodes", "2", "--speed", "1,10"),
			world("3 equal", "--nodes", "3"),
			world("mixed", "--learner-list", mixed),
		}
		if s.Quick {
			return worlds[:2]
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, p := range unequalPairs {
			unlike, have := o[p.world]
			equal, haveEqual := o[p.equal]
			if !have || !haveEqual {
				continue
			}
			lines = append(lines,
				over(p.what+", model", "bits per byte", value(unlike.Report.ValBPB), value(equal.Report.ValBPB), p.equal, trials.AtMost(mostWorse)),
				alone(p.what+": largest share of its time that a learner waited", "", unlike.waited(), trials.AtMost(mostWaited)),
				alone(p.what+": useful share of the time that processes lived", "", value(unlike.Report.GoodputUp), trials.Shown))
		}
		return lines
	},
}

// joinSlack is what a newcomer may need beyond the bytes of the state that it fetches.
const joinSlack = 10.0 // s

// joinAlone names what is asked about.
const joinAlone = "the same without the bytes of the state"

// tipBytes is what a parameter of that state has: its value and its outer momentum, as float32.
const tipBytes = 8

// joinRow has the codec that atoll new --bandwidth takes for such links. With int4 the deltas of fast learners fill them, and a
// newcomer's state gets what is left: see chunkParts of package gossip.
var joinRow = Row{
	Name: "join", About: "join from nothing, 10.7 M parameters, 20 Mbit/s, 40 ms, sparse8", Takes: "3 minutes", TakesQuick: "two minutes",
	Worlds: func(s Settings, seed uint64) []World {
		return []World{small("atoll", 4, s.tokens(6e5, 4e5), seed, "--codec", "sparse8", "--link", thin20, "--chaos", "join @33%")}
	},
	Lines: func(o map[string]Outcome) []Line {
		atoll, have := o["atoll"]
		if !have || len(atoll.Report.JoinS) == 0 {
			return nil
		}
		bytes := tipBytes * smallParams / bytesPerSecond(20)
		return []Line{
			over("from the start of its process to its first folded delta", "s", trials.Median(atoll.Report.JoinS), bytes, "the bytes of the state alone", trials.Shown),
			alone(joinAlone, "s", trials.Median(atoll.Report.JoinS)-bytes, trials.AtMost(joinSlack)),
		}
	},
}
