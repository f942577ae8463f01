package headline

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// resultsDir is where results are, from the top of the repository.
const resultsDir = "testnet/lab/headline/results"

// Result is what a row came to. It is what is stored.
type Result struct {
	Row    string    `json:"row"`
	About  string    `json:"about"`
	Quick  bool      `json:"quick,omitempty"`   // the short form
	Scale  float64   `json:"scale"`             // of the tokens
	PaceMs float64   `json:"pace_ms,omitempty"` // least time of a step
	Part             // what was played first
	Worlds []Command `json:"worlds"` // of the first turn; others differ in their seed
	Failed []string  `json:"failed,omitempty"`
	Lines  []Summary `json:"lines"`
	More   []Part    `json:"more,omitempty"` // turns that were added later; the figures are of all turns
}

// Command is what a world's run is typed like.
type Command struct {
	Name string `json:"name"`
	Text string `json:"command"`
}

// met says that nothing failed and that no less came out than is asked.
func (r Result) met() bool {
	return len(r.Failed) == 0 && len(r.Lines) > 0 && !slices.ContainsFunc(r.Lines, func(s Summary) bool { return s.Met != nil && !*s.Met })
}

func (r Result) save(dir string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, r.Row+".json"), append(b, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("store the result of row %s: %w", r.Row, err)
	}
	return nil
}

// stored are the results in a folder, in the order of the rows.
func stored(dir string) (all []Result, err error) {
	for _, name := range rowNames() {
		r, err := storedRow(dir, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// storedRow is the result of one row, or an error that wraps fs.ErrNotExist.
func storedRow(dir, name string) (r Result, err error) {
	b, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		return r, fmt.Errorf("read the result of row %s: %w", name, err)
	}
	return r, nil
}
