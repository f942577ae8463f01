package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// spoken are the kinds that can be written as VERB [NODE] @TIME.
var spoken = slices.DeleteFunc(slices.Clone(Kinds), func(k Kind) bool { return k == Weather || k == Upgrade })

// CheckTargets names the first fault that befalls a node which a world of so many
// founders never has: its joiners are numbered on from there.
func CheckTargets(founders int, faults []Fault) error {
	nodes := founders
	for _, f := range faults {
		if f.Kind == Join {
			nodes++
		}
	}
	for _, f := range faults {
		if last := max(f.Node, slices.Max(append(f.Others, 0))); last >= nodes {
			return fmt.Errorf("fault %s: there is no node %d; use 0 to %d", f.Kind, last, nodes-1)
		}
	}
	return nil
}

// ParseFaults reads faults as people write them, with commas between:
//
//	crash 1 @2s, restart 1 @4s, partition 0+1 @3s, heal @6s, cut 0>1+2 @1s,
//	slow 2 x4 @0s, skew 1 x-5000 @1s, join @5s
//
// that is VERB [NODE] [x FACTOR] @TIME, with + between several nodes.
func ParseFaults(text string) ([]Fault, error) {
	var faults []Fault
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		f, err := parseFault(strings.Fields(part))
		if err != nil {
			return nil, fmt.Errorf("fault %q: %w", part, err)
		}
		faults = append(faults, f)
	}
	return faults, nil
}

func parseFault(words []string) (Fault, error) {
	f := Fault{Kind: Kind(words[0]), At: -1}
	if !slices.Contains(spoken, f.Kind) {
		return f, fmt.Errorf("there is no verb %q; use one of %v", words[0], spoken)
	}
	targets := ""
	for _, word := range words[1:] {
		var err error
		switch {
		case strings.HasPrefix(word, "@"):
			f.At, err = parseAt(word[1:])
		case strings.HasPrefix(word, "x"):
			f.Factor, err = strconv.ParseInt(word[1:], 10, 64)
		case targets == "":
			targets = word
		default:
			err = fmt.Errorf("%q is one word too many", word)
		}
		if err != nil {
			return f, err
		}
	}
	if f.At < 0 {
		return f, fmt.Errorf("it does not say when; end it with a time such as @5s")
	}
	return f, f.aim(targets)
}

func parseAt(text string) (Time, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("time %v is before the start", d)
	}
	return d.Milliseconds(), err
}

// aim reads whom a fault befalls.
func (f *Fault) aim(targets string) error {
	var err error
	switch f.Kind {
	case Heal, Mend, Join:
		if targets != "" {
			return fmt.Errorf("%s befalls no node", f.Kind)
		}
	case Partition:
		f.Others, err = parseNodes(targets)
	case Cut:
		from, to, found := strings.Cut(targets, ">")
		if !found {
			return fmt.Errorf("cut needs FROM>TO, such as 0>1+2")
		}
		if f.Node, err = parseNode(from); err == nil {
			f.Others, err = parseNodes(to)
		}
	default:
		f.Node, err = parseNode(targets)
	}
	return err
}

func parseNodes(text string) (nodes []int, err error) {
	for word := range strings.SplitSeq(text, "+") {
		n, err := parseNode(word)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func parseNode(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is no node; use a number from 0", text)
	}
	return n, nil
}
