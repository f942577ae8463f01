package corpus

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"atoll/optimizer/trainer/corpus/documents"
)

// goCommandLimit is how long the go command may take to say where its GOROOT
// is; it takes milliseconds unless it has to fetch another toolchain first.
const goCommandLimit = 10 * time.Second

func openGoCode() (*Corpus, error) {
	var data []byte
	folder, err := findInGoroot("src")
	if err == nil {
		data, err = readPath(folder, documents.Tally{}, isSource, func(text []byte) bool { return !isGenerated(text) })
	}
	if err != nil {
		return nil, fmt.Errorf("open corpus %q: %w", GoCode, err)
	}
	return New(GoCode, data), nil
}

// isSource selects code that people wrote: no tests, no test data, nothing vendored.
func isSource(path string) bool {
	folders := strings.Split(filepath.ToSlash(filepath.Dir(path)), "/")
	return strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !slices.Contains(folders, "testdata") && !slices.Contains(folders, "vendor")
}

// generatedMark is the line that marks generated Go source, and packageClause
// the first line after which it no longer counts (see "go help generate").
var (
	generatedMark = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
	packageClause = regexp.MustCompile(`(?m)^package `)
)

func isGenerated(text []byte) bool {
	head := text
	if at := packageClause.FindIndex(text); at != nil {
		head = text[:at[0]]
	}
	return generatedMark.Match(head)
}

// findInGoroot returns the path of something below GOROOT. A binary built with
// -trimpath does not know where GOROOT was. So it looks where the environment
// says, and asks the go command last.
func findInGoroot(rel string) (string, error) {
	for _, root := range []func() string{gorootFromEnv, gorootFromCommand} {
		dir := root()
		if dir == "" {
			continue
		}
		found := filepath.Join(dir, rel)
		if _, err := os.Stat(found); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("no Go installation that holds %s was found: set GOROOT, or pass a text file or a folder as data", rel)
}

func gorootFromEnv() string { return os.Getenv("GOROOT") }

func gorootFromCommand() string {
	ctx, cancel := context.WithTimeout(context.Background(), goCommandLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
