package fault

import (
	"slices"
	"strings"
)

// Verb is what happens.
type Verb string

// The verbs.
const (
	Kill      Verb = "kill"
	PowerCut  Verb = "power-cut"
	Wipe      Verb = "wipe"
	Lose      Verb = "lose"
	Start     Verb = "start"
	Pause     Verb = "pause"
	Resume    Verb = "resume"
	Rest      Verb = "rest"
	Work      Verb = "work"
	Revoke    Verb = "revoke"
	Leave     Verb = "leave"
	Join      Verb = "join"
	Slow      Verb = "slow"
	Partition Verb = "partition"
	Merge     Verb = "merge"
	Cut       Verb = "cut"
	Mend      Verb = "mend"
	DiskFull  Verb = "disk-full"
	DiskFree  Verb = "disk-free"
	Network   Verb = "network"
	Link      Verb = "link"
	Skew      Verb = "skew"
	Upgrade   Verb = "upgrade"
	Loss      Verb = "loss"
	Corrupt   Verb = "corrupt"
	Attack    Verb = "attack"
	Random    Verb = "random"

	Miscalculate Verb = "miscalculate"
	KillLearner  Verb = "kill-learner"
)

// verbs says of each verb how it is written and what undoes it, in the order in which errors
// list them.
var verbs = []struct {
	verb  Verb
	usage string
	undo  Verb // "" = it has no end
}{
	{Kill, "kill 1 @20s, or kill any every 60s for 10s", Start},
	{Start, "start 1 @30s", ""},
	{Pause, "pause 0 @10s, or pause any every 45s for 20s", Resume},
	{Resume, "resume 0 @20s", ""},
	{Join, "join @33%", ""},
	{Leave, "leave 2 @60%", ""},
	{Slow, "slow 3 x4 @0s, or slow any x4 every 45s for 20s", Slow},
	{Partition, "partition 0,1|2,3 @40s..80s, or partition any every 90s for 15s", Merge},
	{Merge, "merge @80s", ""},
	{Link, "link 0 rate=5mbit @60s..120s", Link},
	{Cut, "cut 0>1,2 @20s for 5s", Mend},
	{Mend, "mend @25s, or mend 0>1,2 @25s", ""},
	{Loss, "loss 2 1% @0s", ""},
	{KillLearner, "kill learner 1 @20s, or kill learner 1 rank 0 @20s", ""},
	{Corrupt, "corrupt 1 @50%", ""},
	{Attack, "attack signflip 1 @0s", ""},
	{Random, "random, or random every 10s", ""},
	{PowerCut, "power-cut 1 @20s for 5s", Start},
	{Wipe, "wipe 1 @20s for 5s", Start},
	{Lose, "lose 1 @20s", ""},
	{DiskFull, "disk-full 1 @20s for 5s", DiskFree},
	{DiskFree, "disk-free 1 @25s", ""},
	{Network, "network latency 200ms loss 5% @20s for 10s", Network},
	{Skew, "skew 1 by -5s @20s", ""},
	{Upgrade, "upgrade 1 to protocol 3 @20s", ""},
	{Miscalculate, "miscalculate 1 @20s", ""},
	{Rest, "rest 1 @10s, or rest 1 @10s for 20s", Work},
	{Work, "work 1 @30s", ""},
	{Revoke, "revoke 1 @20s", ""},
}

// Verbs are all of them.
func Verbs() (all []Verb) {
	for _, v := range verbs {
		all = append(all, v.verb)
	}
	return all
}

// known returns the verb that a word means.
func known(word string) (Verb, bool) {
	v := Verb(word)
	return v, slices.Contains(Verbs(), v)
}

func (v Verb) usage() string {
	for _, row := range verbs {
		if row.verb == v {
			return row.usage
		}
	}
	return ""
}

// undo is what ends it, "" if nothing does.
func (v Verb) undo() Verb {
	for _, row := range verbs {
		if row.verb == v {
			return row.undo
		}
	}
	return ""
}

func list(verbs []Verb) string {
	words := make([]string, len(verbs))
	for i, v := range verbs {
		words[i] = string(v)
	}
	return strings.Join(words, ", ")
}
