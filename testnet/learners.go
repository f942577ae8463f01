package testnet

import (
	"fmt"
	"slices"
	"strings"

	"atoll/testnet/nodelink"
)

// This file holds which program trains on which node: --learner.

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
		list = append(list, l)
	}
	return list, nil
}

// of is the program of a node, "" for the built-in trainer. The last that names it wins.
func (l learners) of(node int) string {
	for _, one := range slices.Backward(l) {
		if one.Has(node) {
			return one.command
		}
	}
	return ""
}

// checkLearners returns an error for a node that there will never be.
func checkLearners(texts []string, all int) error {
	list, err := parseLearners(texts)
	for _, l := range list {
		if n := l.Highest(); n >= all {
			return fmt.Errorf("--learner names node %d: there are only nodes 0 to %d, including those that join", n, all-1)
		}
	}
	return err
}
