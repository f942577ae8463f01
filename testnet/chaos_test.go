package testnet

import (
	"strings"
	"testing"
)

func TestChaosThatATestnetCarriesOut(t *testing.T) {
	for spec, want := range map[string]string{
		"kill 1 @1s, start 1 @2s, join @3%, leave 0 @4%, pause 2 @1s, resume 2 @2s": "",
		"slow 1 x2 @1s, corrupt 2 @5s, partition 0,1|2 @1s..2s":                     "",
		"kill any every 60s for 10s, random":                                        "",
		"join @1s, loss 1 1% @1s":                                                   "",
		"attack inverted-gradient 1 @1s, attack inverted-gradient 2 @9%":            "",
		"attack signflip 1 @1s":                                                     "real nodes know the attack inverted-gradient alone: write attack inverted-gradient 1 @20%",
		"explode 1 @1s":                                                             `--chaos: "explode 1 @1s": "explode": there is no such event`,
		"power-cut 1 @1s for 2s":                                                    "a testnet knows no power-cut: use one of join, leave, kill,",
		"partition 0|1 @1s":                                                         "say when it ends: write partition 0,1|2,3 @40s..80s",
		"merge @2s":                                                                 "a testnet knows no merge: give the partition its end, such as",
		"partition 0,1 @1s..2s":                                                     "this is one group: name two or more",
		"partition 0|0 @1s..2s":                                                     "a node is named twice",
		"kill 0,1 @1s for 3s":                                                       "",
		"join 2 @1s, leave 4 @9s":                                                   "",
		"join 2 @1s, leave 5 @9s":                                                   "only nodes 0 to 4",
		"every 1ms from 0s to 1h join":                                              "this makes more than 10000 events",
		"partition 0|3 @1s..2s":                                                     "only nodes 0 to 2",
		"leave 3 @1s":                                                               "only nodes 0 to 2",
		"kill learner 1 @1s":                                                        `"kill-learner 1 @1s": node 1 trains by itself; give it a program, such as --learner 1:torch`,
		"leave 3 @9s, join @1s":                                                     "",
	} {
		err := Config{Nodes: 3, Chaos: spec}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", spec, err, want)
		}
	}
}

func TestImpossibleChaos(t *testing.T) {
	for spec, want := range map[string]string{
		"leave 1 @1s, leave 1 @2s":                                  `"leave 1 @2s": node 1 is gone then`,
		"leave 1 @20%, kill 1 @10%":                                 `"leave 1 @20%": node 1 is gone then`,
		"start 1 @1s":                                               "node 1 is running then",
		"resume 1 @1s":                                              "node 1 is running then",
		"pause 1 @1s, pause 1 @2s":                                  "node 1 is paused then",
		"leave 0 @1s, leave 1 @1s, leave 2 @1s":                     "no node is left at the end",
		"leave any @1s, kill any @2%, leave any @3s":                "no node is left at the end",
		"kill 0 @1s, kill 1 @1s, kill 2 @1s, start 2 @2s":           "", // a power cut
		"kill 0 @1%, kill 1 @1%, kill 2 @1%, start 2 @2%":           `"kill 2 @1%": no node is left then`,
		"kill 0 @1s, kill 1 @1s, kill 2 @1s, join @2s, start 2 @3s": `"kill 2 @1s": no node is left then`,
		"kill 1 @1s, corrupt 1 @2s":                                 "node 1 is gone then",
		"kill 1 @1s, kill learner 1 @2s":                            "node 1 ",
		"kill 1 @1s, slow 1 x2 @2s, partition any @1s..3s":          "",
		"kill 0 @1s, start 0 @2s, kill 0 @3s, start 0 @4s":          "",
		"leave 0 @1s, leave 1 @1s, join @2s":                        "",
		"kill 1 @1s, start 1 @2%":                                   "", // which comes first is not known
		"pause 1 @1s, leave 1 @2s, kill 2 @3s, start 2 @3s":         "",
		"leave any @1s, start 1 @2s, leave any @3s, join @4s":       "",
	} {
		err := Config{Nodes: 3, Chaos: spec}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", spec, err, want)
		}
	}
}
