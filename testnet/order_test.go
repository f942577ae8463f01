package testnet_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file holds that a large package reads from the ground up: its doc.go lists its files in an order in which each may use
// those above it, and few references go against that. Who reads the list from the top then meets little that is explained below.
//
// A reference is a file and what it uses of another file of its package: a name of the package, or a field or method of one of
// its types. However often the file uses it, it is one reference, because one use is what ties the two files. It is upward if
// what is used stands in a file further down in the list. Tests do not count, nor does what a generator wrote.
//
// Types are looked up as for the system that runs the test. Files for other systems must be listed but are not counted.

// minOrdered is how many lines a package has that must have an order: a smaller one is read at once. One that has an order keeps to it.
const minOrdered = 1000

// upwardShare is how many references there must be for each that goes upward.
const upwardShare = 8

// maxLevel is how many files may stand on one line of the list, where they may use each other: with more it is no order.
const maxLevel = 6

// proof is what the product is proven with (as .ci/size has it), lab what measures it: neither is part of it.
var proof = list("testnet/sim/... testnet/scenario/... testnet/fault/... testnet/natlab/... " + lab)

func TestOrderOfFiles(t *testing.T) {
	packages := largePackages(t)
	imports := importerOf(t, packages)
	row := func(columns ...any) { t.Logf("%-36s %6v %9v %8v %7v %7v %6v", columns...) }
	row("package", "lines", "exported", "imports", "inside", "upward", "ratio")
	for _, p := range packages {
		refs, err := p.check(imports)
		if err != nil {
			t.Errorf("package %s: %v", p.name, err)
			continue
		}
		levels, problems := p.levels()
		up := upward(refs, levels)
		for _, problem := range append(problems, tooMany(p.name, refs, up, levels)...) {
			t.Errorf("package %s: %s", p.name, problem)
		}
		row(p.name, p.lines, p.exported, p.imports, len(refs), len(up), ratio(len(up), len(refs)))
	}
}

// TestOrderOfFilesCatches keeps the rules from becoming empty: each breaks one.
func TestOrderOfFilesCatches(t *testing.T) {
	sources := map[string]string{
		"ground.go": "package p\n\ntype T struct{ field int }\n\nfunc (t T) method() int { return t.field }",
		"house.go":  "package p\n\nvar house = T{field: 1}\n\nfunc up() int { return house.method() + house.field + roof }",
		"roof.go":   "package p\n\nconst roof = 1\n\nfunc down() int { up(); return up() + house.field }",
	}
	for _, c := range []struct{ list, want string }{
		{"\tground  a\n\thouse, roof  b", ""},
		{"\troof  a\n\tground  a\n\thouse  b", "3 of 7 references go upward"}, // up, house, field
		{"\troof  a\n\n\tground, house  b", "3 of 7 references go upward"},
		{"\tground  a\n\thouse  b", "doc.go does not list roof.go"},
		{"\tground  a\n\thouse  b\n\troof  c\n\tshed  d", "doc.go lists shed.go, which is not there"},
		{"\tground  a\n\thouse  b\n\troof  c\n\thouse  d", "doc.go lists house.go twice"},
		{"\ta, b, c, d, e, f, g  h", "7 files on one line"},
		{"\tground, house, roof", "doc.go: \"ground, house, roof\" is not names"},
		{"Afterwards", "doc.go does not list its files"},
	} {
		p := &largePackage{name: "p", fset: token.NewFileSet(), doc: filesBegin + "\n\n" + c.list + "\n"}
		for name, source := range sources {
			p.files = append(p.files, name)
			syntax, err := parser.ParseFile(p.fset, name, source, 0)
			if err != nil {
				t.Fatal(err)
			}
			p.syntax = append(p.syntax, syntax)
		}
		refs, err := p.check(nil)
		if err != nil {
			t.Fatal(err)
		}
		levels, problems := p.levels()
		problems = append(problems, tooMany("p", refs, upward(refs, levels), levels)...)
		if got := strings.Join(problems, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: %q, want %q", c.list, got, c.want)
		}
	}
}

// largePackage is a package of the product that must have an order.
type largePackage struct {
	name     string
	doc      string   // of doc.go
	files    []string // that must be listed, whatever system they are for
	fset     *token.FileSet
	syntax   []*ast.File // of this system, with what a generator wrote
	lines    int
	exported int // names of the package
	imports  int // of this module
}

func largePackages(t *testing.T) (large []*largePackage) {
	t.Helper()
	of := map[string]*largePackage{}
	fset := token.NewFileSet()
	for _, f := range parseTree(t, parser.PackageClauseOnly|parser.ParseComments) {
		if f.test() || f.isMade() || matchesAny(proof, f.pkg()) {
			continue
		}
		p := of[f.pkg()]
		if p == nil {
			p = &largePackage{name: f.pkg(), fset: fset}
			of[f.pkg()] = p
		}
		p.lines += bytes.Count(read(t, f.path), []byte("\n"))
		if path.Base(f.path) == "doc.go" {
			p.doc = f.syntax.Doc.Text()
		} else {
			p.files = append(p.files, path.Base(f.path))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if p := of[name]; p.lines > minOrdered || strings.Contains(p.doc, filesBegin) {
			p.parse(t)
			large = append(large, p)
		}
	}
	return large
}

// parse reads the files that the go command compiles here.
func (p *largePackage) parse(t *testing.T) {
	t.Helper()
	dir := filepath.Join(root, filepath.FromSlash(p.name))
	built, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range built.GoFiles {
		syntax, err := parser.ParseFile(p.fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		p.syntax = append(p.syntax, syntax)
	}
	for _, imported := range built.Imports {
		if strings.HasPrefix(imported, modulePath+"/") {
			p.imports++
		}
	}
}

// importerOf knows what the packages import. The go command compiles that, and neither the packages nor any command.
func importerOf(t *testing.T, packages []*largePackage) types.Importer {
	t.Helper()
	imported := map[string]bool{}
	for _, p := range packages {
		for _, f := range p.syntax {
			for _, spec := range f.Imports {
				imported[strings.Trim(spec.Path.Value, `"`)] = true
			}
		}
	}
	delete(imported, "unsafe") // has no file
	command := exec.Command("go", append([]string{"list", "-export", "-json=ImportPath,Export"}, slices.Sorted(maps.Keys(imported))...)...)
	command.Dir = root
	out, err := command.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("go list: %v: %s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
}

// reference says that a file uses what another file of its package declares.
type reference struct {
	from, to string // without .go
	used     types.Object
}

// check finds the types of the package, and its references.
func (p *largePackage) check(imports types.Importer) (map[reference]bool, error) {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: imports}
	pkg, err := config.Check(modulePath+"/"+p.name, p.fset, p.syntax, info)
	if err != nil {
		return nil, err
	}
	for _, name := range pkg.Scope().Names() {
		if token.IsExported(name) {
			p.exported++
		}
	}
	file := func(at token.Pos) string { return strings.TrimSuffix(filepath.Base(p.fset.File(at).Name()), ".go") }
	refs := map[reference]bool{}
	for ident, used := range info.Uses {
		if used = declared(used); used == nil || used.Pkg() != pkg {
			continue
		}
		r := reference{file(ident.Pos()), file(used.Pos()), used}
		if r.from != r.to && slices.Contains(p.files, r.from+".go") && slices.Contains(p.files, r.to+".go") {
			refs[r] = true
		}
	}
	return refs, nil
}

// declared is the object as its package declares it, without type arguments, or nil if it is none of a package, field or method.
func declared(used types.Object) types.Object {
	member := false
	switch o := used.(type) {
	case *types.Var:
		used, member = o.Origin(), o.IsField()
	case *types.Func:
		used, member = o.Origin(), o.Signature().Recv() != nil
	}
	if !member && (used.Pkg() == nil || used.Parent() != used.Pkg().Scope()) {
		return nil
	}
	return used
}

// filesBegin is the line of a doc.go after which it lists files.
const filesBegin = "Files, each may use those above it:"

// onALine is names of files and what they hold.
var onALine = regexp.MustCompile(`^\t(\w+(?:, \w+)*)  +\S`)

// levels returns the line of the list on which each file stands, and what is wrong with the list.
func (p *largePackage) levels() (levels map[string]int, problems []string) {
	levels = map[string]int{}
	problem := func(format string, values ...any) { problems = append(problems, fmt.Sprintf(format, values...)) }
	_, below, _ := strings.Cut(p.doc, filesBegin+"\n")
	for i, line := range strings.Split(below, "\n") {
		if line == "" {
			continue
		} else if line[0] != '\t' {
			break
		}
		match := onALine.FindStringSubmatch(line)
		if match == nil {
			problem("doc.go: %q is not names with commas between them, two spaces, and what the files hold", strings.TrimSpace(line))
			continue
		}
		names := strings.Split(match[1], ", ")
		if len(names) > maxLevel {
			problem("doc.go has %d files on one line, of at most %d: which of them does not need the others?", len(names), maxLevel)
		}
		for _, name := range names {
			if _, twice := levels[name]; twice {
				problem("doc.go lists %s.go twice", name)
			} else if !slices.Contains(p.files, name+".go") {
				problem("doc.go lists %s.go, which is not there", name)
			}
			levels[name] = i
		}
	}
	if len(levels) == 0 {
		return levels, append(problems, fmt.Sprintf("doc.go does not list its files under %q, from the ground up", filesBegin))
	}
	for _, name := range slices.Sorted(slices.Values(p.files)) {
		if _, is := levels[strings.TrimSuffix(name, ".go")]; !is {
			problem("doc.go does not list %s: put it below what it uses", name)
		}
	}
	return levels, problems
}

// upward are the references against the order.
func upward(refs map[reference]bool, levels map[string]int) (up []reference) {
	for r := range refs {
		from, fromListed := levels[r.from]
		to, toListed := levels[r.to]
		if fromListed && toListed && from < to {
			up = append(up, r)
		}
	}
	return up
}

// tooMany says which references go upward, if those are too many.
func tooMany(name string, refs map[reference]bool, up []reference, levels map[string]int) (problems []string) {
	most := len(refs) / upwardShare
	if len(up) <= most {
		return nil
	}
	between := map[string][]string{}
	for _, r := range up {
		files := fmt.Sprintf("%s.go uses of %s.go", r.from, r.to)
		between[files] = append(between[files], r.used.Name())
	}
	text := fmt.Sprintf("%d of %d references go upward in the order of doc.go, of at most one in %d", len(up), len(refs), upwardShare)
	for _, files := range slices.Sorted(maps.Keys(between)) {
		text += fmt.Sprintf("\n  %s: %s", files, strings.Join(slices.Sorted(slices.Values(between[files])), ", "))
	}
	return []string{text}
}

func ratio(part, whole int) string {
	return fmt.Sprintf("%.3f", float64(part)/float64(max(whole, 1)))
}
