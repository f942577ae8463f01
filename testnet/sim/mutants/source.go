package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cores are the packages whose functions an Edit may name, wherever among them a
// function moves.
var cores = []string{"gossip", "gossip/effect", "gossip/fetch", "gossip/headers", "gossip/limit", "gossip/peers", "gossip/serve", "gossip/wire", "node/core", "node/replica", "optimizer/outer", "optimizer/rounds"}

// source is a Go file.
type source struct {
	path  string
	text  []byte
	begin token.Pos // of the text
	*ast.File
}

// span is a part of a source, in bytes.
type span struct {
	*source
	from, to int
	node     ast.Node // the function's body, or the constant's value
}

func (s span) String() string { return s.path }

// readCores reads the cores of the module at root.
func readCores(root string) (all []*source, err error) {
	for _, dir := range cores {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no package %s: take it out of cores", dir)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			s, err := parse(path, text)
			if err != nil {
				return nil, err
			}
			all = append(all, s)
		}
	}
	return all, nil
}

func parse(path string, text []byte) (*source, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &source{path, text, file.FileStart, file}, nil
}

// find returns the one place in the sources that an edit replaces.
func (e Edit) find(sources []*source) (span, error) {
	var named, found []span
	for _, s := range sources {
		named = append(named, s.named(e.In)...)
	}
	if len(named) == 0 {
		return span{}, fmt.Errorf("%s is in none of the packages %s", e.In, strings.Join(cores, ", "))
	}
	for _, body := range named {
		found = append(found, body.places(e.Old)...)
	}
	if len(found) != 1 {
		return span{}, fmt.Errorf("%q occurs %d times in %s of %v, want once", e.Old, len(found), e.In, named)
	}
	return found[0], nil
}

// named returns the bodies of functions and the values of constants of a name.
func (s *source) named(name string) (found []span) {
	for _, d := range s.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Body != nil && nameOf(d) == name {
				found = append(found, s.span(d.Body, d.Body.Lbrace+1, d.Body.Rbrace))
			}
		case *ast.GenDecl:
			found = append(found, s.constants(d, name)...)
		}
	}
	return found
}

// nameOf is a function's name, after the name of its receiver.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return d.Name.Name
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if receiver, ok := t.(*ast.Ident); ok {
		return receiver.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

func (s *source) constants(d *ast.GenDecl, name string) (found []span) {
	for _, spec := range d.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if ok && len(v.Names) == 1 && len(v.Values) == 1 && v.Names[0].Name == name {
			found = append(found, s.span(v.Values[0], v.Values[0].Pos(), v.Values[0].End()))
		}
	}
	return found
}

func (s *source) span(node ast.Node, from, to token.Pos) span {
	return span{s, int(from - s.begin), int(to - s.begin), node}
}

// places returns the parts of a span that are old, see Edit.
func (s span) places(old string) (found []span) {
	if old == "" {
		return []span{s}
	}
	old, statement := strings.CutSuffix(old, "...")
	want, have := tokens([]byte(old)), tokens(s.text[s.from:s.to])
	for i := 0; i+len(want) <= len(have); i++ {
		if !slices.EqualFunc(want, have[i:i+len(want)], func(a, b lexeme) bool { return a.text == b.text }) {
			continue
		}
		from, to := s.from+have[i].from, s.from+have[i+len(want)-1].to
		if !statement {
			found = append(found, span{s.source, from, to, s.node})
		} else if to, ok := s.statement(from); ok {
			found = append(found, span{s.source, from, to, s.node})
		}
	}
	return found
}

// statement is the end of the largest statement that begins at from.
func (s span) statement(from int) (to int, ok bool) {
	ast.Inspect(s.node, func(n ast.Node) bool {
		if n, isStmt := n.(ast.Stmt); isStmt && int(n.Pos()-s.begin) == from {
			to, ok = max(to, int(n.End()-s.begin)), true
		}
		return true
	})
	return to, ok
}

// lexeme is a token of Go.
type lexeme struct {
	text     string
	from, to int
}

// tokens are the tokens of a text without comments and semicolons, which depend on
// its layout.
func tokens(text []byte) (all []lexeme) {
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, nil, 0)
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return all
		}
		if tok == token.SEMICOLON {
			continue
		}
		if lit == "" {
			lit = tok.String()
		}
		from := file.Offset(pos)
		all = append(all, lexeme{lit, from, from + len(lit)})
	}
}

// apply returns the sources that a mutant changes, by path, with its edits made.
func (m Mutant) apply(sources []*source) (map[string][]byte, error) {
	type change struct {
		span
		Edit
	}
	var changes []change
	for _, e := range m.Edits {
		place, err := e.find(sources)
		if err != nil {
			return nil, fmt.Errorf("mutant %q: %w", m.Name, err)
		}
		changes = append(changes, change{place, e})
		if e.Import != "" { // on the line of the package clause, so that all others stay as they are
			end := place.Name.End()
			changes = append(changes, change{place.source.span(nil, end, end), Edit{New: fmt.Sprintf("; import %q", e.Import)}})
		}
	}
	// From the last on, so that the places of those before stay what they are.
	slices.SortFunc(changes, func(a, b change) int { return b.from - a.from })
	mutated := map[string][]byte{}
	for _, c := range changes {
		text := mutated[c.path]
		if text == nil {
			text = c.text
		}
		mutated[c.path] = slices.Concat(text[:c.from], []byte(c.New), text[c.to:])
	}
	return mutated, nil
}
