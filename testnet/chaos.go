package testnet

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"atoll/testnet/baseline"
	"atoll/testnet/fault"
)

// chaos is what happens to the nodes of a world; package fault has the language.
type chaos fault.Schedule

// can is the part of the language that real processes execute.
var can = fault.Can{
	Who: "a testnet", Chance: true, Shares: true,
	Verbs: []fault.Verb{
		fault.Join, fault.Leave, fault.Kill, fault.Start, fault.Pause, fault.Resume, fault.Slow, fault.Link, fault.Partition, fault.Corrupt, fault.Random,
		fault.KillLearner, fault.Attack, fault.Loss,
	},
	Instead: map[fault.Verb]string{
		fault.Merge: "give the partition its end, such as partition 0,1|2,3 @40s..80s",
	},
}

// parseChaos reads what happens to the nodes. The error names the event.
func parseChaos(text string) (chaos, error) {
	s, err := can.Parse(text)
	if err == nil {
		err = cmp.Or(chaos(s).checkPartitions(), chaos(s).checkAttacks())
	}
	if err != nil {
		return nil, fmt.Errorf("--chaos: %w", err)
	}
	return chaos(s), nil
}

// invertedGradient is the attack that real nodes know: their learners step away from where they should.
const invertedGradient = "inverted-gradient"

// checkAttacks refuses attacks that only the simulator has.
func (c chaos) checkAttacks() error {
	for _, e := range c {
		if e.Verb == fault.Attack && e.Kind != invertedGradient {
			return &fault.Error{File: strconv.Quote(e.String()), Text: "real nodes know the attack inverted-gradient alone: write attack inverted-gradient 1 @20%. Others are tested by the simulator's scripts"}
		}
	}
	return nil
}

// checkPartitions refuses partitions that only the simulator has.
func (c chaos) checkPartitions() error {
	for _, e := range c {
		named := slices.Sorted(slices.Values(slices.Concat(e.Groups...)))
		switch where := strconv.Quote(e.String()); {
		case e.Verb != fault.Partition:
		case e.For == 0 && e.Until == nil:
			return &fault.Error{File: where, Text: "say when it ends: write partition 0,1|2,3 @40s..80s"}
		case len(e.Groups) == 1:
			return &fault.Error{File: where, Text: "this is one group: name two or more, such as 0,1|2,3"}
		case len(slices.Compact(named)) < len(named):
			return &fault.Error{File: where, Text: "a node is named twice: name each in one group"}
		}
	}
	return nil
}

// inBaseline returns an error for what makes no sense in a baseline.
func (c chaos) inBaseline(name string) error {
	if name == Atoll {
		return nil
	}
	for _, e := range c {
		switch {
		case e.Verb == fault.KillLearner:
			return fmt.Errorf("--chaos %q: in the baseline %s nobody trains in a process of its own", e, name)
		case e.Verb == fault.Attack:
			return fmt.Errorf("--chaos %q: the baseline %s has no liars", e, name)
		case e.Verb == fault.Corrupt:
			return fmt.Errorf("--chaos %q: the baseline %s does not look for damaged memory", e, name)
		case name == baseline.Local && (e.Verb == fault.Join || e.Verb == fault.Random || e.Verb == fault.Partition):
			return fmt.Errorf("--chaos %q: the baseline %s always has one node: remove this event", e, name)
		}
	}
	return nil
}

// joins is how many nodes chaos adds.
func (c chaos) joins() (n int) {
	for _, e := range c {
		n += e.Count
	}
	return n
}

// checkTargets returns an error for a node that there will never be.
func (c chaos) checkTargets(nodes int) error {
	all := nodes + c.joins()
	for _, e := range c {
		for _, n := range e.Named() {
			if n >= all {
				return fmt.Errorf("--chaos %q: there are only nodes 0 to %d, including those that join", e, all-1)
			}
		}
	}
	return nil
}
