package headline

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Settings say how rows are played.
type Settings struct {
	Quick  bool          // the short form
	Runs   int           // turns of each row; 0 = the usual number
	From   int           // turns before them, which are stored
	Scale  float64       // of tokens
	Pace   time.Duration // of a step; 0 = the row's own
	Seed   uint64        // of the first turn
	Atoll  string        // program; "" = the source here is built
	Python string        // interpreter with PyTorch
	Out    string        // folder of results
	Trials string        // file of what was played
	Only   []string      // worlds; none = all
	Keep   bool          // the folders of runs stay
	Log    io.Writer     // what happens
}

// Row is one question, with the worlds that answer it.
type Row struct {
	Name, About       string
	Takes, TakesQuick string        // of a turn, on two idle cores
	Pace              time.Duration // least time of a step; 0 = what the first run is calibrated to
	Torch             bool          // it needs a Python with PyTorch
	Worlds            func(s Settings, seed uint64) []World
	Lines             func(worlds map[string]Outcome) []Line // of one turn
}

// rows are all of them, in the order of the table.
var rows = []Row{thinRow, keptRow, bytesRow, bytesMoreRow, killsRow, recoveryRow, unequalRow, joinRow, peersRow, standinRow}

// rowsNamed finds rows by their names.
func rowsNamed(names []string) (found []Row, err error) {
	for _, name := range names {
		i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no row %q; use %s: %w", name, strings.Join(rowNames(), ", "), errUsage)
		}
		found = append(found, rows[i])
	}
	return found, nil
}

func rowNames() (names []string) {
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

// needsTorch says whether a row needs a Python with PyTorch.
func needsTorch(name string) bool {
	return slices.ContainsFunc(rows, func(r Row) bool { return r.Name == name && r.Torch })
}

// tokens scales a run, and takes the second number for the short form. A node has a few steps at least.
func (s Settings) tokens(full, quick float64) string {
	if s.Quick {
		full = quick
	}
	return fmt.Sprintf("%.0f", max(full*s.Scale, leastTokens))
}

// noEval leaves out the evaluation of the model.
const noEval = "--no-eval"

// leastTokens is enough for eight nodes to take a step of the largest batch here.
const leastTokens = 4096

// small is a run of the model small with short steps, as accelerators have them. With one row a step AdamW's is cheap
// beside its bytes; Muon takes six times as long.
//
// What the model is worth takes a minute to say, so only rows that ask for it pass --eval.
func small(name string, nodes int, tokens string, seed uint64, flags ...string) World {
	if !slices.Contains(flags, "--eval") {
		flags = append(flags, noEval)
	}
	return testnetWorld(name, append([]string{
		"--nodes", fmt.Sprint(nodes), "--model", "small", "--batch", "1", "--optimizer", "adamw", "--data", "goroot",
		"--seed", fmt.Sprint(seed), "--tokens", tokens,
	}, flags...)...)
}

// Tokens of a step of a node.
const (
	smallStep = 256 // of small, with one row
	tinyStep  = 512 // of tiny, with four
)

// smallParams is how many parameters small has; a test compares it with the model.
const smallParams = 10_720_128
