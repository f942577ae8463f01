package spectest

import (
	"fmt"
	"slices"
	"strings"
)

// parser goes through one text after the other, line by line.
type parser struct {
	spec   *Spec
	name   string // of the text under way
	clause string // the clause under way, which ends with an empty line
	table  string // the table announced or under way
	rows   int    // lines of it seen, head and rule included
	block  string // the fenced block under way
	inside bool   // of a fenced block, named or not
	prose  bool   // inside a paragraph that is no clause
}

func newParser() parser {
	return parser{spec: &Spec{
		clauses: map[string]string{}, document: map[string]string{}, tables: map[string][][]string{}, examples: map[string]string{},
	}}
}

// read takes a text apart, whose clauses are then of that document.
func (p *parser) read(name, text string) error {
	p.name, p.clause, p.table, p.rows, p.prose = name, "", "", 0, false
	for line := range strings.Lines(text) {
		if err := p.line(strings.TrimSuffix(line, "\n")); err != nil {
			return err
		}
	}
	return p.end()
}

func (p *parser) line(line string) error {
	switch {
	case p.inside:
		return p.fenced(line)
	case strings.HasPrefix(line, "```"):
		return p.open(line)
	case strings.HasPrefix(line, "|"):
		return p.row(line)
	case line == "":
		p.clause, p.prose = "", false
		if p.rows > 0 {
			p.table, p.rows = "", 0
		}
		return nil
	}
	if m := clauseLine.FindStringSubmatch(line); m != nil {
		return p.begin(m[1], m[2])
	}
	if m := tableLine.FindStringSubmatch(line); m != nil {
		p.table, p.rows = m[1], 0
		return nil
	}
	if p.clause != "" {
		p.spec.clauses[p.clause] += " " + line
		return nil
	}
	p.say(line)
	return nil
}

// say takes a line of a paragraph that is no clause.
func (p *parser) say(line string) {
	if !p.prose {
		p.prose = true
		p.spec.prose = append(p.spec.prose, line)
		return
	}
	p.spec.prose[len(p.spec.prose)-1] += " " + line
}

func (p *parser) begin(name, text string) error {
	if _, twice := p.spec.clauses[name]; twice {
		return fmt.Errorf("clause %s appears twice", name)
	}
	p.clause = name
	p.spec.clauses[name], p.spec.document[name] = text, p.name
	p.spec.order = append(p.spec.order, name)
	return nil
}

// open begins a fenced block; one without a name is not an example.
func (p *parser) open(line string) error {
	p.inside, p.block = true, ""
	if m := fenceLine.FindStringSubmatch(line); m != nil {
		p.block = m[1]
		if _, twice := p.spec.examples[p.block]; twice {
			return fmt.Errorf("example %q appears twice", p.block)
		}
		p.spec.examples[p.block] = ""
	}
	return nil
}

func (p *parser) fenced(line string) error {
	if line == "```" {
		p.inside = false
		return nil
	}
	if p.block == "" {
		return nil
	}
	if sofar := p.spec.examples[p.block]; sofar != "" {
		line = sofar + "\n" + line
	}
	p.spec.examples[p.block] = line
	return nil
}

// row keeps a row of a named table. Its first two lines are head and rule.
func (p *parser) row(line string) error {
	if p.table == "" {
		return nil
	}
	if p.rows++; p.rows == 1 {
		if p.spec.tables[p.table] != nil {
			return fmt.Errorf("table %q appears twice", p.table)
		}
		p.spec.tables[p.table] = [][]string{}
	}
	if p.rows <= 2 {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), "|")
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.TrimSpace(c), "`", "")
	}
	p.spec.tables[p.table] = append(p.spec.tables[p.table], slices.Clip(cells))
	return nil
}

func (p *parser) end() error {
	if p.inside {
		return fmt.Errorf("the fenced block %q does not end", p.block)
	}
	return nil
}
