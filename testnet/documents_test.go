package testnet_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// This file holds documents to the tree: files that they link to or name are there, and
// names that a table puts after a file are declared in it.

var (
	mdLink = regexp.MustCompile(`\]\(([^)#:]+)\)`)
	inCode = regexp.MustCompile("`([^`]+)`")
	goPath = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+\.go$`)
	goName = regexp.MustCompile(`^\w+(\.\w+)?$`)
)

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	for _, name := range tracked(t) {
		if path.Ext(name) != ".md" {
			continue
		}
		for _, link := range mdLink.FindAllStringSubmatch(string(read(t, name)), -1) {
			if to := path.Join(path.Dir(name), link[1]); !exists(to) {
				t.Errorf("%s: links to %s, which is not there", name, to)
			}
		}
	}
}

// mostWords is how long a README may be that people read to its end.
const mostWords = 1000

func TestReadmeIsShort(t *testing.T) {
	if n := len(strings.Fields(string(read(t, "README.md")))); n > mostWords {
		t.Errorf("README.md has %d words; at most %d: what only some need belongs to a document that it links to", n, mostWords)
	}
}

// A name follows a file within a cell of a table: the architecture would else speak of
// functions that have moved.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	const name = "node/DESIGN.md"
	files, found := map[string]sourceFile{}, 0
	for _, f := range parseTree(t, parser.SkipObjectResolution) {
		files[f.path] = f
	}
	for line := range strings.Lines(string(read(t, name))) {
		for _, cell := range strings.Split(line, "|") {
			file := sourceFile{}
			for _, code := range inCode.FindAllStringSubmatch(cell, -1) {
				switch word := code[1]; {
				case goPath.MatchString(word):
					var known bool
					if file, known = files[word]; !known {
						t.Errorf("%s: there is no file %s", name, word)
					}
				case file.syntax != nil && strings.HasPrefix(line, "|") && goName.MatchString(word):
					if found++; !file.declares(word) {
						t.Errorf("%s: %s is not declared in %s", name, word, file.path)
					}
				}
			}
		}
	}
	if found == 0 {
		t.Errorf("%s names nothing after a file: this test looks in the wrong place", name)
	}
}

// declares says whether a file declares a name, or a method as Receiver.Method.
func (f sourceFile) declares(name string) bool {
	for _, decl := range f.syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if receiverOf(d)+d.Name.Name == name {
				return true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if d.Tok != token.IMPORT && specNames(spec)[name] {
					return true
				}
			}
		}
	}
	return false
}

// receiverOf is a method's type and a dot, "" for a function.
func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	switch of := ast.Unparen(d.Recv.List[0].Type).(type) {
	case *ast.StarExpr:
		return nameOf(of.X) + "."
	default:
		return nameOf(of) + "."
	}
}

// nameOf is the name of a type, without its parameters.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return nameOf(e.X)
	}
	return ""
}

func specNames(spec ast.Spec) map[string]bool {
	names := map[string]bool{}
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names[s.Name.Name] = true
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names[n.Name] = true
		}
	}
	return names
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
	return err == nil
}
