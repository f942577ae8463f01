package testnet_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file holds what the tree as a whole looks like.

// root is the top of the module, seen from this package.
const root = ".."

// maxLines is how long a file may be that people write and read: beyond it, it
// has more than one concern.
const maxLines = 700

// maxFunction is how many lines a function may have: it fits a screen.
const maxFunction = 60

// maxPackage is how many lines a package of the product may have, without its tests.
const maxPackage = 6000

// overlarge are packages that have more, with what they have: it may only fall.
var overlarge = map[string]int{}

// topLevel is everything that the top of the repository may hold.
var topLevel = list("node gossip optimizer tensor cmd testnet go.mod go.sum README.md LICENSE " +
	".ci .github .gitignore .golangci.yml")

func TestTopLevel(t *testing.T) {
	for _, name := range tracked(t) {
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains(topLevel, top) {
			t.Errorf("%s: the top level holds only %s: put it beside the code that it belongs to",
				name, strings.Join(topLevel, ", "))
		}
	}
}

func TestFileLength(t *testing.T) {
	for _, f := range parseTree(t, parser.PackageClauseOnly|parser.ParseComments) {
		lines := bytes.Count(read(t, f.path), []byte("\n"))
		if lines > maxLines && !f.isMade() {
			t.Errorf("%s has %d lines, of at most %d: is it still one concern?", f.path, lines, maxLines)
		}
	}
}

func TestFunctionLength(t *testing.T) {
	for _, f := range parseTree(t, parser.SkipObjectResolution|parser.ParseComments) {
		if f.test() || f.isMade() {
			continue
		}
		text, begin := read(t, f.path), f.syntax.FileStart
		for _, d := range f.syntax.Decls {
			fn, is := d.(*ast.FuncDecl)
			if !is {
				continue
			}
			if n := bytes.Count(text[fn.Pos()-begin:fn.End()-begin], []byte("\n")) + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, of at most %d: does it do one thing?", f.path, fn.Name.Name, n, maxFunction)
			}
		}
	}
}

func TestPackageLength(t *testing.T) {
	lines := map[string]int{}
	for _, f := range parseTree(t, parser.PackageClauseOnly|parser.ParseComments) {
		if !f.test() && !f.isMade() && !strings.HasPrefix(f.path, "testnet/sim/") {
			lines[f.pkg()] += bytes.Count(read(t, f.path), []byte("\n"))
		}
	}
	for pkg, n := range lines {
		if most := max(maxPackage, overlarge[pkg]); n > most {
			t.Errorf("package %s has %d lines, of at most %d: which part of it does the rest not reach into?", pkg, n, most)
		}
	}
}

func TestPackageDocs(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range parseTree(t, parser.PackageClauseOnly|parser.ParseComments) {
		if !f.test() {
			documented[f.pkg()] = documented[f.pkg()] || strings.TrimSpace(f.syntax.Doc.Text()) != ""
		}
	}
	for pkg, ok := range documented {
		if !ok {
			t.Errorf("package %s has no doc comment: say what it is for above a package clause, best in doc.go", pkg)
		}
	}
}

// The laboratory is built with what the product is built with: else it measures something else.
func TestLabRequiresTheSame(t *testing.T) {
	const from, of = "go.mod", "testnet/lab/go.mod"
	versions := map[string]string{}
	for _, line := range required(t, from) {
		name, version, _ := strings.Cut(line, " ")
		versions[name] = version
	}
	lines := required(t, of)
	for _, line := range lines {
		name, version, _ := strings.Cut(line, " ")
		if known := versions[name]; name != modulePath && version != known {
			t.Errorf("%s requires %s, and %s %q: take the same", of, line, from, known)
		}
	}
	if len(lines) < 20 {
		t.Errorf("%s has %d lines of modules: this test looks in the wrong place", of, len(lines))
	}
	for _, name := range tracked(t) {
		if path.Base(name) == "go.work" {
			t.Errorf("%s: each of the two modules is built alone", name)
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+([\w./-]+ v[\w.+-]+)`)

// required are the modules with their versions that a go.mod names.
func required(t *testing.T, file string) (lines []string) {
	t.Helper()
	for _, line := range requirement.FindAllStringSubmatch(string(read(t, file)), -1) {
		lines = append(lines, line[1])
	}
	return lines
}

// foreign is text that means something on one machine only.
var foreign = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`(?m)(^|[\s"'=(:,\x60])/(home|Users|root|work|workspace)/[\w.]`),
		"a path of one machine: write it relative to the repository or make it a flag"},
	{regexp.MustCompile(`\b(proxy|sum|index)\.golang\.(org|com)|\bgoproxy\.(io|cn)\b|\bpypi\.org\b|\bpythonhosted\.org\b|\bregistry\.npmjs\b|\bindex\.crates\b`),
		"the host of a registry: the Go tool's own settings say where modules come from"},
}

func TestNothingOfOneMachine(t *testing.T) {
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range tracked(t) {
		text := read(t, name)
		if bytes.IndexByte(text, 0) >= 0 {
			continue
		}
		if bytes.Contains(text, []byte(here+string(filepath.Separator))) {
			t.Errorf("%s: contains the path of this checkout, %s", name, here)
		}
		for _, f := range foreign {
			if at := f.pattern.FindIndex(text); at != nil {
				line := 1 + bytes.Count(text[:at[1]], []byte("\n"))
				t.Errorf("%s:%d: %q: %s", name, line, bytes.TrimSpace(text[at[0]:at[1]]), f.reason)
			}
		}
	}
}

// tracked returns the files of the repository, with slashes. Without a
// repository around, as in an unpacked archive, it skips the test.
func tracked(t *testing.T) []string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skipf("not a git checkout: %v", err)
	}
	// Checkouts that another user made are common in containers.
	out, err := exec.Command("git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool { // deleted, not yet committed
		_, err := os.Lstat(filepath.Join(root, name))
		return err != nil
	})
}

// sources returns the Go files that the go command sees in both modules, the product's and the laboratory's, with slashes.
func sources(t *testing.T) []string {
	t.Helper()
	var names []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && ignored(d.Name()):
			return fs.SkipDir
		case !d.IsDir() && path.Ext(name) == ".go" && !ignored(d.Name()):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// ignored tells what the go command does not look at.
func ignored(name string) bool {
	return name == "testdata" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
