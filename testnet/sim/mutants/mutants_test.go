package mutants

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is the folder of the module, seen from this one.
const root = "../../.."

// atOnce is how many mutants are built and run side by side: compiling is what
// takes the time, and it uses several cores itself.
const atOnce = 2

// trialTime ends a mutant that runs for ever. The trials of a sound tree take a
// tenth of it.
const trialTime = 5 * time.Minute

// chosen are the mutants to run: a few, as they run with all other tests, those that
// ATOLL_MUTANTS names, separated by commas, or every one with ATOLL_MUTANTS=all. It also returns the trials that the unchanged tree
// must pass; none means all.
func chosen() (mutants []Mutant, trials []string) {
	names := cmp.Or(os.Getenv("ATOLL_MUTANTS"), "lost late delta,share cap skipped")
	if names == "all" {
		return All, nil
	}
	for _, m := range All {
		if slices.Contains(strings.Split(names, ","), m.Name) {
			mutants, trials = append(mutants, m), append(trials, m.Trial)
		}
	}
	return mutants, trials
}

// An edit is found in the source as it is now, so the table follows the code.
func TestMutationsApply(t *testing.T) {
	sources, err := readCores(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range All {
		if _, err := m.apply(sources); err != nil {
			t.Error(err)
		}
	}
}

// A function is found by its name and a place in it by its code, in any file,
// however it is laid out and whatever else has its name.
func TestFind(t *testing.T) {
	const code = `package core

func (m *Machine) Held(now Time) {
	if m.late { // a comment
		return
	}
	m.touched(
		now,
	)
}

func Held() { m.touched(later) }

func (o *Other) Held() { m.touched(elsewhere) }

const (
	maxA = 1
	maxB = 2
)
`
	s, err := parse("core.go", []byte(code))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, old, want string }{
		{"Machine.Held", "if m.late {return}", "if m.late { // a comment\n\t\treturn\n\t}"},
		{"Machine.Held", "if m.late ...", "if m.late { // a comment\n\t\treturn\n\t}"},
		{"Machine.Held", "m.touched ...", "m.touched(\n\t\tnow,\n\t)"},
		{"Held", "later", "later"},
		{"Other.Held", "", " m.touched(elsewhere) "},
		{"maxB", "", "2"},
		{"Machine.Held", "late ...", ""}, // begins no statement
		{"Machine.Held", "m", ""},        // twice
		{"Machine.Gone", "", ""},
		{"Machine.Held", "later", ""},
	} {
		place, err := Edit{In: c.in, Old: c.old}.find([]*source{s})
		switch {
		case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.in)):
			t.Errorf("%q in %s: %v, want an error that names the function", c.old, c.in, err)
		case c.want != "" && err != nil:
			t.Error(err)
		case c.want != "" && code[place.from:place.to] != c.want:
			t.Errorf("%q in %s: %q, want %q", c.old, c.in, code[place.from:place.to], c.want)
		}
	}
}

// The trials find nothing in the tree as it is.
func TestOriginalPasses(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	_, trials := chosen()
	program, err := build(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if check, err := try(program, trials...); check != "" || err != nil {
		t.Error(check, err)
	}
}

// Each planted bug is found by a checker.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program for each mutant")
	}
	mutants, _ := chosen()
	slots := make(chan struct{}, atOnce)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			slots <- struct{}{}
			defer func() { <-slots }()
			began := time.Now()
			check, err := m.caughtBy(t.TempDir())
			switch {
			case err != nil:
				t.Error(err)
			case check == "":
				t.Errorf("no checker finds it")
			}
			t.Logf("found by %s, %.1f s with the build", check, time.Since(began).Seconds())
		})
	}
}

// caughtBy names the checker and the trial that find the mutant.
func (m Mutant) caughtBy(dir string) (check string, err error) {
	overlay, err := m.overlay(dir)
	if err != nil {
		return "", err
	}
	program, err := build(dir, overlay)
	if err != nil {
		return "", err
	}
	if check, err = try(program, m.Trial); check != "" || err != nil {
		return check, err
	}
	return try(program)
}

// overlay writes the mutated files and what tells the compiler of them.
func (m Mutant) overlay(dir string) (path string, err error) {
	sources, err := readCores(root)
	if err != nil {
		return "", err
	}
	files, err := m.apply(sources)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for file, text := range files {
		original, err := filepath.Abs(file)
		if err != nil {
			return "", err
		}
		mutated := filepath.Join(dir, strings.ReplaceAll(file, string(filepath.Separator), "_"))
		if err := os.WriteFile(mutated, text, 0o600); err != nil {
			return "", err
		}
		replace[original] = mutated
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path = filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o600)
}

// build makes the program that runs the trials.
func build(dir, overlay string) (program string, err error) {
	program = filepath.Join(dir, "trial")
	args := []string{"build", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.Command("go", append(args, "./trial")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return program, nil
}

// exitCaught is how a trial says that a checker found something.
const exitCaught = 3

// try runs trials, or all, and names the checker and the trial that found
// something; "" if none did.
func try(program string, trials ...string) (check string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), trialTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, trials...).Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &exit) && exit.ExitCode() == exitCaught:
		words := strings.SplitN(strings.TrimSpace(string(out)), "\t", 3)
		return fmt.Sprintf("%q in trial %s: %.200s", words[0], words[1], words[2]), nil
	case errors.As(err, &exit):
		return "", fmt.Errorf("trials: %w\n%s%s", err, out, exit.Stderr)
	}
	return "", err
}
