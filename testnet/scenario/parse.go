package scenario

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"atoll/optimizer/outer"
	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// Error says what of a script cannot be understood, and what to write instead.
type Error = fault.Error

// maxNodes keeps a slip of the pen from making a world that takes hours.
const maxNodes = 100

// Parse reads a script; name is what its errors call the file. Every error of a
// script is an *Error.
func Parse(name string, text []byte) (*Script, error) {
	c := compiler{script: &Script{Name: name}, said: map[string]int{}}
	code, outcome := split(string(text))
	c.script.Outcome = outcome
	for _, t := range code {
		c.script.lines = append(c.script.lines, parseLine(t))
	}
	c.begin()
	for phase := range phases {
		if err := c.pass(phase); err != nil {
			return nil, err
		}
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	return c.script, nil
}

// compiler turns lines into a world. Lines may stand in any order: they are read
// in passes, and each kind of line is of one of them.
type compiler struct {
	script *Script
	said   map[string]int // settings, and the lines on which they stand
	rounds int64          // of the budget; 0 means it is in steps
	steps  int64
	dated  []dated

	outer   outer.Spec            // what people choose of a run,
	changes []func(*outer.Params) // and what they do not
}

// statement is a kind of line.
type statement struct {
	phase int
	read  func(c *compiler, r *fault.Reader)
}

// The passes: the settings, among them how many nodes there are, then what
// refers to them.
const (
	phaseSettings = iota
	phaseRest
	phases
)

// statements are all kinds of lines, by their first word.
func statements() map[string]statement {
	all := map[string]statement{
		"nodes":  {phaseSettings, (*compiler).nodes},
		"node":   {phaseRest, (*compiler).node},
		"at":     {phaseRest, (*compiler).event},
		"every":  {phaseRest, (*compiler).event},
		"expect": {phaseRest, (*compiler).expect},
		"breaks": {phaseRest, (*compiler).breaks},
	}
	for name, set := range settings {
		all[name] = statement{phaseSettings, func(c *compiler, r *fault.Reader) {
			if c.once(name, r) {
				set(c, r)
				r.End()
			}
		}}
	}
	return all
}

var statementNames = func() []string {
	var names []string
	for name := range statements() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}()

func (c *compiler) pass(phase int) error {
	all := statements()
	for i, l := range c.script.lines {
		if len(l.words) == 0 {
			continue
		}
		r := &fault.Reader{File: c.script.Name, Line: i + 1, Words: l.words, Longest: sim.MaxTime, Verbs: sim.Kinds, MaxNodes: maxNodes}
		s, ok := all[l.words[0]]
		switch {
		case !ok:
			r.Fail(l.words[0], "no line begins with this word; use one of %s", strings.Join(statementNames, ", "))
		case s.phase == phase:
			if l.words[0] != "at" && l.words[0] != "every" { // which are words of the event
				r.Words = r.Words[1:]
			}
			s.read(c, r)
		}
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// once fails where a setting is made a second time.
func (c *compiler) once(name string, r *fault.Reader) bool {
	if before, again := c.said[name]; again {
		r.Fail(name, "it is set on line %d already; remove one of the two", before)
		return false
	}
	c.said[name] = r.Line
	return true
}

// nodes reads `nodes N [TRAITS]`.
func (c *compiler) nodes(r *fault.Reader) {
	if !c.once("nodes", r) {
		return
	}
	n := r.Integer("the number of nodes", 1, maxNodes)
	spec := sim.ReadTraits(r, sim.NodeSpec{})
	if r.End(); r.Err != nil {
		return
	}
	for range n {
		c.script.World.Founders = append(c.script.World.Founders, spec)
	}
}

// node reads `node NODES TRAITS`.
func (c *compiler) node(r *fault.Reader) {
	founders := c.script.World.Founders
	for _, i := range r.NodesOf(len(founders)) {
		if i >= len(founders) {
			r.Fail(fmt.Sprint(i), "there is no such node at the start; add it to `nodes`, or give its traits where it joins")
			return
		}
		rest := *r
		founders[i] = sim.ReadTraits(&rest, founders[i])
		if rest.End(); rest.Err != nil {
			r.Err = rest.Err
			return
		}
	}
}

// finish joins what the passes found, and checks the whole.
func (c *compiler) finish() error {
	w := &c.script.World
	if len(w.Founders) == 0 {
		return &Error{File: c.script.Name, Line: 0, Word: "", Text: "it does not say how many nodes there are; add a line such as `nodes 4`"}
	}
	slices.SortStableFunc(c.dated, func(a, b dated) int { return cmp.Compare(a.At, b.At) })
	w.Faults = nil
	for _, d := range c.dated {
		w.Faults = append(w.Faults, d.Fault)
		w.CalmMs = max(w.CalmMs, d.At+1)
	}
	if err := c.checkNodes(); err != nil {
		return err
	}
	w.Params = c.params()
	c.budget()
	w.LimitMs = cmp.Or(w.LimitMs, w.CalmMs+defaultLimitMs)
	if err := w.Validate(); err != nil {
		return c.about(err)
	}
	return c.checkExpectations()
}

// checkNodes: what befalls a node comes when it is there.
func (c *compiler) checkNodes() error {
	w := &c.script.World
	if i, node, known := sim.Absent(len(w.Founders), w.Faults); i >= 0 {
		d := c.dated[i]
		return &Error{File: c.script.Name, Line: d.line, Word: fmt.Sprint(node),
			Text: fmt.Sprintf("there is no such node at %s: then they are 0 to %d", seconds(float64(d.At)), known-1)}
	}
	known := len(w.Founders)
	for _, d := range c.dated {
		if d.Kind == fault.Join {
			known++
		}
		if known > maxNodes {
			return &Error{File: c.script.Name, Line: d.line, Word: string(d.Kind), Text: fmt.Sprintf("this makes more than %d nodes", maxNodes)}
		}
	}
	return nil
}

// budget are the steps that founders make in so many full rounds.
func (c *compiler) budget() {
	w := &c.script.World
	steps := c.steps
	if steps == 0 {
		for _, spec := range w.Founders {
			if !spec.Observer {
				steps += c.rounds * int64(w.Params.H)
			}
		}
	}
	w.Params.Budget = uint64(max(steps, 1)) * sim.TokensPerStep
}

var fieldOfError = regexp.MustCompile(`^outer: (\w+) is `)

// about finds the line that an error of the world is about.
func (c *compiler) about(err error) error {
	if m := fieldOfError.FindStringSubmatch(err.Error()); m != nil {
		for name, field := range fieldOf {
			if field == m[1] {
				return &Error{File: c.script.Name, Line: c.said[name], Word: name, Text: err.Error()}
			}
		}
	}
	return &Error{File: c.script.Name, Line: 0, Word: "", Text: err.Error()}
}
