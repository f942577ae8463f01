package sim

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// can is the part of the language of faults that a world executes.
var can = fault.Can{Who: "the simulator", Verbs: Kinds, Instead: map[fault.Verb]string{
	fault.Loss:   "write network, such as network latency 20ms loss 1% @0s",
	fault.Attack: "give the node that lies a trait in a script, such as node 1 attack sign-flip",
}}

// ParseFaults reads what happens to a world of so many founders, as people write it:
//
//	kill 1 @2s, start 1 @4s, partition 0,1 @3s, merge @6s, cut 0>1,2 @1s,
//	slow 2 x4 @0s, skew 1 by -5s @1s, join @5s
func ParseFaults(text string, founders int) ([]Fault, error) {
	schedule, err := can.Parse(text)
	if err != nil {
		return nil, err
	}
	var faults []Fault
	for _, e := range schedule {
		more, err := Faults(e, founders)
		if err != nil {
			return nil, err
		}
		faults = append(faults, more...)
	}
	sorted := slices.Clone(faults)
	slices.SortStableFunc(sorted, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	if i, node, known := Absent(founders, sorted); i >= 0 {
		f := sorted[i]
		return nil, fmt.Errorf("%s @%v: there is no node %d then; use 0 to %d", f.Kind, time.Duration(f.At)*time.Millisecond, node, known-1)
	}
	return faults, nil
}

// Absent finds the first of faults, ordered by time, that names a node which is not there
// yet. It returns its index, -1 if there is none, the node, and how many nodes there are
// then.
func Absent(founders int, faults []Fault) (index, node, known int) {
	known = founders
	for i, f := range faults {
		if f.Kind == fault.Join {
			known++
		}
		node = slices.Max(append(slices.Concat(f.Parts...), append(f.Others, f.Node)...))
		if node >= known {
			return i, node, known
		}
	}
	return -1, 0, known
}

// Faults are what an event does to a world of so many founders.
func Faults(e fault.Event, founders int) (all []Fault, err error) {
	if err := can.Check(fault.Schedule{e}); err != nil {
		return nil, err
	}
	events, err := e.Expand(founders)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		begin, end := e.Undone()
		if all, err = appendFault(all, begin); err == nil && end != nil {
			all, err = appendFault(all, *end)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// appendFault adds the fault that an event is which happens once and to one node.
func appendFault(to []Fault, e fault.Event) ([]Fault, error) {
	f := Fault{At: e.At.After.Milliseconds(), Kind: e.Verb, Others: e.To, Factor: int64(e.Factor)}
	if len(e.Nodes) > 0 {
		f.Node = e.Node()
	}
	r := &fault.Reader{File: strconv.Quote(e.String()), Words: e.Detail, Longest: MaxTime}
	switch {
	case len(e.Groups) == 1:
		f.Others = e.Groups[0]
	case e.Verb == fault.Partition:
		f.Parts = e.Groups
	case e.Verb == fault.Skew:
		f.Factor = e.By.Milliseconds()
	case e.Verb == fault.Slow && float64(f.Factor) != e.Factor:
		r.Fail("x"+fault.Number(e.Factor), "the simulator takes whole factors: write x%d", f.Factor+1)
	case (e.Verb == fault.Network || e.Verb == fault.Link) && len(e.Detail) > 0:
		f.Link = ReadLink(r)
	default:
		f.Spec = ReadTraits(r, NodeSpec{})
	}
	if r.Err != nil {
		return nil, r.Err
	}
	return append(to, f), nil
}

// MaxTime is the longest time of faults and scripts: a slip of the pen must not make a world that
// takes hours.
const MaxTime = 24 * time.Hour

// ReadMs takes a time of at least so many milliseconds.
func ReadMs(r *fault.Reader, what string, least Time) Time {
	return r.Duration(what, time.Duration(least)*time.Millisecond).Milliseconds()
}

// ReadTraits takes what a node differs from others in.
func ReadTraits(r *fault.Reader, s NodeSpec) NodeSpec {
	for r.More() {
		switch word := r.Next("a trait"); word {
		case "slow":
			s.Slow = int(r.Integer("how much slower", 1, 1e6))
		case "observer":
			s.Observer = true
		case "skew":
			s.SkewMs = r.Duration("the skew", -MaxTime).Milliseconds()
		case "drift":
			s.DriftPPM = r.Integer("the drift in parts per million", -500_000, 500_000)
		case "protocol":
			s.Version.Protocol = uint32(r.Integer("the protocol's version", 1, 1<<20))
		case "newer":
			s.Version.Newer = true
		case "other-run":
			s.Version.OtherRun = true
		case "attack":
			s.Attack = readAttack(r)
		case "link":
			s.Link = readShape(r, r.Next("what the link is like, such as "+linkExample))
		default:
			r.Fail(word, "nodes have no such trait; use slow, observer, skew, drift, protocol, newer, other-run, attack or link")
		}
	}
	return s
}

// ReadCodec takes the name of a codec.
func ReadCodec(r *fault.Reader) codec.Kind {
	word := r.Next("a codec")
	k, err := codec.Parse(word)
	if err != nil {
		r.Fail(word, "%v", err)
	}
	return k
}

// readAttack takes `KIND [from TIME] [times X] [ahead N]`.
func readAttack(r *fault.Reader) (a Attack) {
	a.Kind = AttackKind(r.OneOf("an attack", attackNames()))
	for {
		switch {
		case r.Took("from"):
			a.From = ReadMs(r, "when it begins", 0)
		case r.Took("times"):
			a.Times = r.Float("times", -math.MaxFloat64, math.MaxFloat64)
		case r.Took("ahead"):
			a.Ahead = uint32(r.Integer("ahead", 0, outer.MaxWindow))
		default:
			return a
		}
	}
}

func attackNames() (names []string) {
	for _, k := range AttackKinds() {
		names = append(names, string(k))
	}
	return names
}
