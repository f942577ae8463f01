package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// eachCommand calls a function for the program and every command that is not hidden.
func eachCommand(t *testing.T, use func(n *kong.Node)) {
	t.Helper()
	var line commandLine
	app, err := kong.New(&line, kong.Name("atoll"), kong.PostBuild(environment))
	if err != nil {
		t.Fatal(err)
	}
	var walk func(n *kong.Node)
	walk = func(n *kong.Node) {
		use(n)
		for _, child := range visible(n) {
			walk(child)
		}
	}
	walk(app.Model.Node)
}

func flagsOf(n *kong.Node) (all []*kong.Flag) {
	for _, group := range n.AllFlags(true) {
		all = append(all, group...)
	}
	return all
}

// mostCommands is how many commands there may be that people see. More than a page of them nobody reads.
const mostCommands = 34

// Every command and every flag is in each script, and a flag means the same wherever it is.
func TestCompletionsHaveAll(t *testing.T) {
	leaves, kinds := 0, map[string]string{}
	eachCommand(t, func(n *kong.Node) {
		if len(visible(n)) == 0 {
			leaves++
		}
		for _, f := range flagsOf(n) {
			kind := kindOf(f)
			if other, known := kinds[f.Name]; known && other != kind {
				t.Errorf("--%s of %s is %s, elsewhere it is %s", f.Name, n.FullPath(), kind, other)
			}
			kinds[f.Name] = kind
		}
	})
	if t.Logf("%d commands, %d flags", leaves, len(kinds)); leaves > mostCommands {
		t.Errorf("%d commands, more than %d", leaves, mostCommands)
	}
	for shell, line := range map[string]func(path, flag string) *regexp.Regexp{
		"bash": func(path, flag string) *regexp.Regexp {
			return regexp.MustCompile(`(?m)^  "` + path + `"\) commands='[^']*' flags='[^']*--` + flag + `[ ']`)
		},
		"zsh": func(path, flag string) *regexp.Regexp {
			return regexp.MustCompile(`(?m)^  "` + path + `"\)\n    commands=\(.*\)\n    flags=\(.*'--` + flag + `:`)
		},
		"fish": func(path, flag string) *regexp.Regexp {
			return regexp.MustCompile(`(?m)^complete -c atoll -n '__atoll_at "` + path + `"' -l ` + flag + ` `)
		},
	} {
		code, script, stderr := typed(t, "completion", shell)
		if code != exitDone || stderr != "" {
			t.Fatalf("%s: exit code %d, %s", shell, code, stderr)
		}
		eachCommand(t, func(n *kong.Node) {
			for _, f := range flagsOf(n) {
				if !line(n.FullPath(), f.Name).MatchString(script) {
					t.Errorf("%s: no --%s of %s", shell, f.Name, n.FullPath())
				}
			}
			if n.Parent != nil && !strings.Contains(script, `"`+n.FullPath()+`"`) {
				t.Errorf("%s: no %s", shell, n.FullPath())
			}
		})
		for _, hidden := range []string{"standin", "atoll baseline", "testnet-node", "--shape"} {
			if strings.Contains(script, hidden) {
				t.Errorf("%s: completes %s, which is hidden", shell, hidden)
			}
		}
	}
	if code, _, stderr := typed(t, "completion", "tcsh"); code != exitUsage || !strings.Contains(stderr, `must be one of "bash","zsh","fish"`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// bash itself completes what was typed so far.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	_, script, _ := typed(t, "completion", "bash")
	path := filepath.Join(t.TempDir(), "atoll.bash")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		typed string // words, the last one so far
		want  string // some of what comes
		not   string
	}{
		{"atoll jo", "join", "testnet"},
		{"atoll ", "testnet", "--json"},
		{"atoll join --prof", "--profile", "--peer"},
		{"atoll join --profile ", "wan", "--data"},
		{"atoll join --profile = l", "lan", "wan"},
		{"atoll data ", "build", "join"},
		{"atoll data build --held", "--held-out", "--seed"},
		{"atoll join link --batt", "--battery", "--batch"},
		{"atoll join --data ", "", "wan"},
		{"atoll testnet --no-", "--no-overlap", "--nodes"},
	} {
		list := strings.Split(c.typed, " ")
		program := `source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _atoll; printf '%s\n' "${COMPREPLY[@]}"`
		out, err := exec.Command(bash, append([]string{"-c", program, "bash", path}, list...)...).CombinedOutput()
		got := strings.Fields(string(out))
		if err != nil || c.want != "" && !slices.Contains(got, c.want) || slices.Contains(got, c.not) {
			t.Errorf("%q: %v, %v; want %q, not %q", c.typed, got, err, c.want, c.not)
		}
	}
}

// Other shells, where they are, can read their scripts.
func TestScriptsParse(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		program, err := exec.LookPath(shell)
		if err != nil {
			continue
		}
		_, script, _ := typed(t, "completion", shell)
		path := filepath.Join(t.TempDir(), "script")
		if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "-n", path).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// kindOf is what sort of value a flag takes.
func kindOf(f *kong.Flag) string {
	kind := f.Target.Type()
	for kind.Kind() == reflect.Pointer || kind.Kind() == reflect.Slice {
		kind = kind.Elem()
	}
	if kind.PkgPath() == "" && kind.Kind() >= reflect.Int && kind.Kind() <= reflect.Uint64 {
		return "a whole number"
	}
	return kind.String()
}

// Every command has a page with every flag, argument and variable of its.
func TestManualHasAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	code, stdout, stderr := typed(t, "help", "--man", dir)
	if code != exitDone || stderr != "" {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	pages := 0
	eachCommand(t, func(n *kong.Node) {
		pages++
		path := filepath.Join(dir, manName(n)+".1")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if page := string(b); !strings.Contains(stdout, path) || !strings.HasPrefix(page, ".TH ATOLL") || !strings.Contains(page, ".SH NAME\n"+roff(manName(n))+` \- `) {
			t.Errorf("%s: %.200s", path, page)
		}
		for _, f := range flagsOf(n) {
			if want := roff(flagUsage(f)) + "\n"; !strings.Contains(string(b), want) {
				t.Errorf("%s: no %q", path, want)
			}
			for _, env := range f.Envs {
				if !strings.Contains(string(b), env) {
					t.Errorf("%s: no %s", path, env)
				}
			}
		}
		for _, p := range n.Positional {
			if !strings.Contains(string(b), roff(p.Help)) {
				t.Errorf("%s: no argument %s", path, p.Name)
			}
		}
		for _, l := range strings.Split(string(b), "\n") {
			if strings.HasPrefix(l, "'") || strings.HasPrefix(l, ".") && !regexp.MustCompile(`^\.(TH|SH|TP|B|BR|PP|nf|fi)\b`).MatchString(l) {
				t.Errorf("%s: a line that roff takes for its own: %s", path, l)
			}
		}
	})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != pages {
		t.Errorf("%d pages of %d commands, %v", len(entries), pages, err)
	}
}

func TestRoff(t *testing.T) {
	for text, want := range map[string]string{
		"a-b": `a\-b`, `a\b`: `a\eb`, ".x": `\&.x`, "'x": `\&'x`, "a\n.b": "a\n" + `\&.b`,
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, want := roffText("One.\n\n    atoll join\n    atoll top\n\nTwo."), "One.\n.PP\n.PP\n.nf\n    atoll join\n    atoll top\n.fi\n.PP\nTwo.\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// What stands behind = in help is the flag's default, or in capitals what to put there: an example would be taken for a default.
func TestHelpShowsNoExampleAsDefault(t *testing.T) {
	capitals := regexp.MustCompile(`^[A-Z][A-Z0-9]*([:/][A-Z0-9]+)*$`)
	eachCommand(t, func(n *kong.Node) {
		for _, f := range flagsOf(n) {
			shown := strings.TrimSuffix(strings.Trim(f.FormatPlaceHolder(), `"`), ",...")
			isDefault := f.HasDefault && shown == f.Default
			if !f.IsBool() && !isDefault && !capitals.MatchString(shown) {
				t.Errorf("%s --%s=%s is no default: name it in capitals, and give the example in the help", n.FullPath(), f.Name, shown)
			}
		}
	})
}
