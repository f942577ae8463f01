package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// resultsDir is where results are, from the top of the repository.
const resultsDir = "testnet/bench/headline/results"

// Result is what a row came to. It is what is stored.
type Result struct {
	Row     string    `json:"row"`
	About   string    `json:"about"`
	Quick   bool      `json:"quick,omitempty"` // the short form
	Scale   float64   `json:"scale"`           // of the tokens
	Turns   int       `json:"turns"`
	Seed    uint64    `json:"seed"` // of the first turn
	At      time.Time `json:"at"`
	PaceMs  float64   `json:"pace_ms,omitempty"` // least time of a step
	Machine Machine   `json:"machine"`
	Worlds  []Command `json:"worlds"` // of the first turn; others differ in their seed
	Failed  []string  `json:"failed,omitempty"`
	Lines   []Summary `json:"lines"`
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
		b, err := os.ReadFile(filepath.Join(dir, name+".json"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var r Result
		if err == nil {
			err = json.Unmarshal(b, &r)
		}
		if err != nil {
			return nil, fmt.Errorf("read the result of row %s: %w", name, err)
		}
		all = append(all, r)
	}
	return all, nil
}
