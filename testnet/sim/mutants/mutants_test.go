package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// chosen are the mutants to run: a few, as they run with all other tests, or every
// one with ATOLL_MUTANTS=all; and the trials in which the tree as it is must pass,
// none for all.
func chosen() (mutants []Mutant, trials []string) {
	if os.Getenv("ATOLL_MUTANTS") == "all" {
		return All(), nil
	}
	for _, m := range All() {
		if m.Name == "lost late delta" || m.Name == "share cap skipped" {
			mutants, trials = append(mutants, m), append(trials, m.Trial)
		}
	}
	return mutants, trials
}

// A mutation is found in the source as it is now, so the table follows the code.
func TestMutationsApply(t *testing.T) {
	for _, m := range All() {
		if _, err := m.overlay(t.TempDir()); err != nil {
			t.Error(err)
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
	sources := map[string]string{}
	for _, e := range m.Edits {
		if sources[e.File] == "" {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			sources[e.File] = string(b)
		}
		if n := strings.Count(sources[e.File], e.Old); n != 1 {
			return "", fmt.Errorf("mutant %q: its text occurs %d times in %s, want once:\n%s", m.Name, n, e.File, e.Old)
		}
		sources[e.File] = strings.Replace(sources[e.File], e.Old, e.New, 1)
	}
	replace := map[string]string{}
	for file, source := range sources {
		original, err := filepath.Abs(filepath.Join(root, file))
		if err != nil {
			return "", err
		}
		mutated := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(mutated, []byte(source), 0o600); err != nil {
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
