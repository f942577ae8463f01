package testnet

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"atoll/node"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/external"
	"atoll/testnet/fault"
	"atoll/testnet/nodelink"
)

// This file holds what trains on which node, and how: --learner and --precision.

// goLearner is what people call the built-in trainer in a list of programs.
const goLearner = "go"

// choice is what some nodes, or all, are told.
type choice struct {
	nodelink.Targets
	value string
}

// choices are what a flag was given, in order.
type choices []choice

// parseLearners reads CMD, or NODES:CMD for these nodes alone.
func parseLearners(texts []string) (choices, error) {
	list, err := parseChoices("--learner", "no program; write it like torch or 1:torch", texts)
	for i, l := range list {
		if strings.TrimSpace(l.value) == goLearner {
			list[i].value = node.BuiltinLearner
		}
	}
	return list, err
}

// parsePrecisions reads f32, bf16 or auto, or NODES:f32 for these nodes alone.
func parsePrecisions(texts []string) (choices, error) {
	list, err := parseChoices("--precision", "none; write it like bf16 or 1:bf16", texts)
	for _, p := range list {
		if _, _, err := trainer.Precisions(p.value); err != nil {
			return nil, fmt.Errorf("--precision: %w", err)
		}
	}
	return list, err
}

func parseChoices(flag, empty string, texts []string) (list choices, err error) {
	for _, text := range texts {
		c := choice{value: text}
		if names, value, named := strings.Cut(text, ":"); named && strings.Trim(names, "0123456789,-") == "" {
			c.value = value
			if c.Targets, err = nodelink.Nodes(names, maxNodes); err != nil {
				return nil, fmt.Errorf("%s: %w", flag, err)
			}
		}
		if strings.TrimSpace(c.value) == "" {
			return nil, fmt.Errorf("%s %q names %s", flag, text, empty)
		}
		list = append(list, c)
	}
	return list, nil
}

// of is what a node is told, "" for nothing. The last that names it wins.
func (l choices) of(index int) string {
	for _, one := range slices.Backward(l) {
		if one.Has(index) {
			return one.value
		}
	}
	return ""
}

// inProcess says whether a program trains on a node in place of the built-in trainer.
func (l choices) inProcess(index int) bool {
	command := l.of(index)
	return command != "" && command != node.BuiltinLearner
}

// checkKills returns an error for a learner to kill that is no process of its own, and for a process
// of a data-parallel group that no learner has. all is how many nodes there will be.
func (l choices) checkKills(c chaos, all int) error {
	for _, e := range c {
		if e.Verb != fault.KillLearner {
			continue
		}
		nodes := []int{e.Node()}
		if e.Node() == fault.Any {
			nodes = nodes[:0]
			for n := range all {
				nodes = append(nodes, n)
			}
		}
		if err := l.checkKill(e, nodes); err != nil {
			return fmt.Errorf("--chaos %q: %w", e, err)
		}
	}
	return nil
}

// checkKill says why an event can happen to none of these nodes, from the first of them.
func (l choices) checkKill(e fault.Event, nodes []int) (first error) {
	for _, n := range nodes {
		err := l.mayKill(n, e.Rank())
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// mayKill says why a node's learner, or one process of it, cannot be killed.
func (l choices) mayKill(n int, rank string) error {
	command := strings.TrimSpace(l.of(n))
	switch {
	case command == external.Attach:
		return fmt.Errorf("node %d waits for a script that a testnet does not start; give it a program, such as --learner %d:torch", n, n)
	case !l.inProcess(n):
		return fmt.Errorf("node %d trains by itself; give it a program, such as --learner %d:torch, or kill the node", n, n)
	case rank == "" || external.HasRank(command, rank):
		return nil
	}
	return fmt.Errorf("the learner %q of node %d has no process of rank %s; give it a data-parallel group, such as --learner %d:torchrun:2, or leave the rank out", command, n, rank, n)
}

// isStandIn says whether a program is the one that computes nothing. Baselines have it as well; --pace is the time of its step there.
func isStandIn(command string) bool {
	words := strings.Fields(command)
	return len(words) > 0 && words[0] == "standin"
}

// inBaseline returns an error for a program that a baseline does not start.
func (l choices) inBaseline(name string) error {
	for _, one := range l {
		if name != Atoll && one.value != node.BuiltinLearner && !isStandIn(one.value) {
			return fmt.Errorf("--learner %q: the baseline %s trains with atoll's own trainer or standin: leave it out", one.value, name)
		}
	}
	return nil
}

// checkTargets returns an error for a node that there will never be, and for one that chaos takes
// for what it is not.
func checkTargets(cfg Config, all int, said chaos) error {
	learners, err := parseLearners(cfg.Learner)
	precisions, err2 := parsePrecisions(cfg.Precision)
	if err == nil {
		err = errors.Join(learners.checkKills(said, all), learners.inBaseline(cfg.Baseline))
	}
	return errors.Join(err, err2, learners.within("--learner", all), precisions.within("--precision", all))
}

// within returns an error for a node that a flag names and that will never be.
func (l choices) within(flag string, all int) error {
	for _, one := range l {
		if n := one.Highest(); n >= all {
			return fmt.Errorf("%s names node %d: there are only nodes 0 to %d, including those that join", flag, n, all-1)
		}
	}
	return nil
}
