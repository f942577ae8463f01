package testnet

import (
	"fmt"
	"slices"
	"strings"

	"atoll/node"
	"atoll/testnet/fault"
	"atoll/testnet/nodelink"
)

// This file holds which program trains on which node: --learner.

// goLearner is what people call the built-in trainer in a list of programs.
const goLearner = "go"

// learner is a program that trains in place of the built-in trainer.
type learner struct {
	nodelink.Targets
	command string
}

// learners are what --learner was given, in order.
type learners []learner

// parseLearners reads CMD, or NODES:CMD for these nodes alone.
func parseLearners(texts []string) (list learners, err error) {
	for _, text := range texts {
		l := learner{command: text}
		if names, command, named := strings.Cut(text, ":"); named && strings.Trim(names, "0123456789,-") == "" {
			l.command = command
			if l.Targets, err = nodelink.Nodes(names, maxNodes); err != nil {
				return nil, fmt.Errorf("--learner: %w", err)
			}
		}
		if strings.TrimSpace(l.command) == "" {
			return nil, fmt.Errorf("--learner %q names no program; write it like torch or 1:torch", text)
		}
		if strings.TrimSpace(l.command) == goLearner {
			l.command = node.BuiltinLearner
		}
		list = append(list, l)
	}
	return list, nil
}

// of is the program of a node, "" for the built-in trainer. The last that names it wins.
func (l learners) of(index int) string {
	for _, one := range slices.Backward(l) {
		if one.Has(index) {
			return one.command
		}
	}
	return ""
}

// inProcess says whether a program trains on a node in place of the built-in trainer.
func (l learners) inProcess(index int) bool {
	command := l.of(index)
	return command != "" && command != node.BuiltinLearner
}

// checkKills returns an error for a learner to kill that is no process of its own.
func (l learners) checkKills(c chaos) error {
	for _, e := range c {
		if e.Verb == fault.KillLearner && e.Node() != fault.Any && !l.inProcess(e.Node()) {
			return fmt.Errorf("--chaos %q: node %d trains by itself; give it a program, such as --learner %d:torch, or kill the node", e, e.Node(), e.Node())
		}
	}
	return nil
}

// checkLearners returns an error for a node that there will never be, and for one that chaos
// takes for what it is not.
func checkLearners(texts []string, all int, said chaos) error {
	list, err := parseLearners(texts)
	if err == nil {
		err = list.checkKills(said)
	}
	for _, l := range list {
		if n := l.Highest(); n >= all {
			return fmt.Errorf("--learner names node %d: there are only nodes 0 to %d, including those that join", n, all-1)
		}
	}
	return err
}
