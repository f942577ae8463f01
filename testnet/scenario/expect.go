package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"atoll/testnet/fault"
)

// Expectation is one `expect` line: what must hold of every outcome.
type Expectation struct {
	Line  int
	Text  string // without the reason
	Fails string // why it is known not to hold; "" = it must
	judge func(o *Outcome) (held bool, found string)
	nodes []int // that it names
}

// Verdict is what became of an expectation.
type Verdict struct {
	Expectation
	Held  bool
	Found string // what is there instead, or as well
}

// Good says that an expectation holds, or fails as it is known to.
func (v Verdict) Good() bool { return v.Held == (v.Fails == "") }

func (v Verdict) String() string {
	switch {
	case v.Held && v.Fails == "":
		return fmt.Sprintf("%s: holds, it is %s", v.Text, v.Found)
	case v.Held:
		return fmt.Sprintf("%s: holds now, it is %s: take away `%s %s`", v.Text, v.Found, knownMark, v.Fails)
	case v.Fails != "":
		return fmt.Sprintf("%s: does not hold, it is %s, as is known: %s", v.Text, v.Found, v.Fails)
	}
	return fmt.Sprintf("%s: does not hold, it is %s", v.Text, v.Found)
}

// knownMark begins the reason for which an expectation is known not to hold.
const knownMark = "known to fail:"

// expect reads `expect WHAT COMPARED VALUE [known to fail: WHY]`.
func (c *compiler) expect(r *fault.Reader) {
	e := Expectation{Line: r.Line}
	e.Fails, r.Words = cutKnown(r)
	e.Text = "expect " + strings.Join(r.Words, " ")
	switch {
	case r.Took("said"):
		e.judge = judgeText(r.Rest("what is said"), (*Outcome).said)
	case r.Took("refusal"):
		e.judge = judgeText(r.Rest("the refusal"), (*Outcome).refusals)
	default:
		e.read(c, r)
	}
	if r.End(); r.Err == nil {
		c.script.Expects = append(c.script.Expects, e)
	}
}

// cutKnown takes the reason off the end of a line.
func cutKnown(r *fault.Reader) (why string, words []string) {
	text := strings.Join(r.Words, " ")
	before, why, found := strings.Cut(text, knownMark)
	if found && strings.TrimSpace(why) == "" {
		r.Fail("fail:", "say why it is known to fail")
	}
	return strings.TrimSpace(why), strings.Fields(before)
}

// read reads an expectation about a quantity or a set of nodes.
func (e *Expectation) read(c *compiler, r *fault.Reader) {
	for _, s := range sets {
		if r.Took(strings.Fields(s.name)...) {
			var want []int
			if !r.Took("nobody") {
				want = r.NodesOf(len(c.script.World.Founders))
				slices.Sort(want)
			}
			e.nodes, e.judge = want, judgeSet(s, want)
			return
		}
	}
	name := quantityName(r)
	if r.Err != nil {
		return
	}
	node := -1
	if r.Took("of") {
		node = int(r.Integer("a node", 0, maxNodes-1))
		e.nodes = []int{node}
	}
	e.compare(r, name, node)
}

// quantityName takes the name of a quantity, which may be several words.
func quantityName(r *fault.Reader) string {
	for _, q := range quantities {
		if r.Took(strings.Fields(q.name)...) {
			return q.name
		}
	}
	word := ""
	if r.More() {
		word = r.Words[0]
	}
	r.Fail(word, "an outcome has no such thing; use one of %s, said, refusal", strings.Join(quantityNames(), ", "))
	return ""
}

// compare reads `at most V`, `at least V`, `within V` or `is V`.
func (e *Expectation) compare(r *fault.Reader, name string, node int) {
	holds := map[string]func(got, want float64) bool{
		"at most":  func(got, want float64) bool { return got <= want },
		"within":   func(got, want float64) bool { return got <= want },
		"at least": func(got, want float64) bool { return got >= want },
		"is":       func(got, want float64) bool { return got == want },
	}
	for _, how := range []string{"at most", "within", "at least", "is"} {
		if !r.Took(strings.Fields(how)...) {
			continue
		}
		q, want := valueOf(r, name, node)
		e.judge = func(o *Outcome) (bool, string) {
			got := q.of(o, node)
			return holds[how](got, want), q.unit.show(got)
		}
		return
	}
	word := ""
	if r.More() {
		word = r.Words[0]
	}
	r.Fail(word, "a comparison should stand here: at most, at least, within or is")
}

// valueOf takes a value, whose unit says which of the quantities of one name is
// meant.
func valueOf(r *fault.Reader, name string, node int) (quantity, float64) {
	value := r.Next("a value")
	if r.Took("rounds") {
		value += " rounds"
	}
	var examples []string
	for _, q := range quantities {
		if q.name != name || node >= 0 && q.node == nil || node < 0 && q.world == nil {
			continue
		}
		if x, ok := q.unit.parse(value); ok {
			return q, x
		}
		examples = append(examples, q.unit.example)
	}
	if len(examples) == 0 {
		whose := "node"
		if node < 0 {
			whose = "whole world"
		}
		r.Fail(value, "there is no %s of a %s", name, whose)
	}
	r.Fail(value, "%s is written like %s", name, strings.Join(examples, " or "))
	return quantity{}, 0
}

func judgeText(want string, lines func(*Outcome) []string) func(*Outcome) (bool, string) {
	return func(o *Outcome) (bool, string) {
		all := lines(o)
		held := slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, want) })
		if len(all) == 0 {
			return held, "nothing"
		}
		return held, strconv.Quote(strings.Join(all, "; "))
	}
}

func judgeSet(s set, want []int) func(*Outcome) (bool, string) {
	return func(o *Outcome) (bool, string) {
		got := s.of(o)
		return slices.Equal(got, want), people(got)
	}
}

// people writes a set of nodes, with ranges.
func people(nodes []int) string {
	if len(nodes) == 0 {
		return "nobody"
	}
	var parts []string
	for i := 0; i < len(nodes); {
		j := i
		for j+1 < len(nodes) && nodes[j+1] == nodes[j]+1 {
			j++
		}
		part := strconv.Itoa(nodes[i])
		if j > i {
			part += "-" + strconv.Itoa(nodes[j])
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, " ")
}

// breaks reads `breaks CHECKER: WHY`: a promise that is known to be broken.
func (c *compiler) breaks(r *fault.Reader) {
	if !c.once("breaks", r) {
		return
	}
	checker, why, found := strings.Cut(r.Rest("the name of a checker, and why"), ": ")
	if r.Err == nil && (!found || strings.TrimSpace(why) == "") {
		r.Fail("", "say which checker finds the broken promise, and why it is known, as in `breaks converges: WHY`")
	}
	c.script.Breaks = checker
}

// checkExpectations: they are about nodes that there are.
func (c *compiler) checkExpectations() error {
	nodes := len(c.script.World.Founders)
	for _, d := range c.dated {
		if d.Kind == fault.Join {
			nodes++
		}
	}
	for _, e := range c.script.Expects {
		for _, n := range e.nodes {
			if n >= nodes {
				return &Error{File: c.script.Name, Line: e.Line, Word: strconv.Itoa(n), Text: fmt.Sprintf("there is no such node: they are 0 to %d", nodes-1)}
			}
		}
	}
	return nil
}

// Judge holds an outcome against what the script expects: what is as expected,
// and what is not. An outcome of a world that broke a promise has no facts to be
// judged.
func (s *Script) Judge(o *Outcome) (verdicts []Verdict, err error) {
	if err := s.judgePromises(o); err != nil || s.Breaks != "" {
		return nil, err
	}
	for _, e := range s.Expects {
		held, found := e.judge(o)
		verdicts = append(verdicts, Verdict{e, held, found})
	}
	return verdicts, nil
}

func (s *Script) judgePromises(o *Outcome) error {
	switch {
	case s.Breaks == "" && o.Result.Err != nil:
		return fmt.Errorf("%s: a promise is broken: %w", s.Name, o.Result.Err)
	case s.Breaks != o.Result.Check && o.Result.Err == nil:
		return fmt.Errorf("%s: the promise behind %q is kept now: take away the line that begins with `breaks`", s.Name, s.Breaks)
	case s.Breaks != o.Result.Check:
		return fmt.Errorf("%s: broken is %q, not %q: %w", s.Name, o.Result.Check, s.Breaks, o.Result.Err)
	}
	return o.idleEvents()
}
