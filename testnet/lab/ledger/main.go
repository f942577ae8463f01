// Package ledger makes the folder of a node that has seen very many rounds, and measures what a
// start on it takes, what it takes on disk, and what retention and a walk over all of it cost.
//
// Headers come in as they do in a run: round by round over all fragments, with the records,
// and what is final is put away every so often. Signatures are random bytes: the store does not
// look at them. Only the last rounds have payloads, of a few bytes, as in a run with --keep.
package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"text/tabwriter"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . ledger [--rounds 42000] [--fragments 24] [--deltas 16] [--dir DIR] [--walk] [--json]

  --rounds     of each fragment; with 24 fragments, 42,000 are a million in all
  --deltas     of each round, each by another author
  --dir        a folder for the ledger, which stays; one that is not complete is completed. Without it
               a folder in the temporary one, which goes
  --walk       read all records and headers as well: minutes for a million rounds
  --start DIR  only measure the ledger in a folder that was made before
  --json       print an object and not a table
`

// options are what a measurement is of.
type options struct {
	Rounds    int `json:"rounds_of_each_fragment"`
	Fragments int `json:"fragments"`
	Deltas    int `json:"deltas_of_each_round"`

	dir, start string
	walk, json bool
}

// Usage is what there is to type.
func Usage() string { return usage }

// Main does what was typed.
func Main(_ context.Context, args []string, out, log io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	return run(o, out, log)
}

// leastRounds is what a ledger needs to have old rounds.
const leastRounds = 4 * window

func parse(args []string) (o options, err error) {
	f := flag.NewFlagSet("ledger", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.Rounds, "rounds", 42_000, "")
	f.IntVar(&o.Fragments, "fragments", 24, "")
	f.IntVar(&o.Deltas, "deltas", 16, "")
	f.StringVar(&o.dir, "dir", "", "")
	f.StringVar(&o.start, "start", "", "")
	f.BoolVar(&o.walk, "walk", false, "")
	f.BoolVar(&o.json, "json", false, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.Rounds < leastRounds || o.Fragments < 1 || o.Deltas < 1 {
		return o, fmt.Errorf("%d rounds of %d fragments with %d deltas: choose at least %d rounds, 1 fragment and 1 delta", o.Rounds, o.Fragments, o.Deltas, leastRounds)
	}
	return o, nil
}

// result is what was measured.
type result struct {
	options
	MakeS           float64 `json:"make_s,omitempty"`
	IndexBytes      int64   `json:"index_bytes"`
	SegmentBytes    int64   `json:"segment_bytes"`
	SegmentFiles    int     `json:"segment_files"`
	SealedDeltas    int64   `json:"deltas_in_segments"`
	BytesPerDelta   float64 `json:"segment_bytes_per_delta"`
	LargestFolder   int     `json:"entries_of_the_largest_folder"`
	Started         started `json:"start"`
	WalkS           float64 `json:"walk_s,omitempty"`
	WalkedDeltas    int     `json:"walked_deltas,omitempty"`
	RetainS         float64 `json:"retain_s"`
	RetainedDropped int     `json:"retain_dropped"`
	RetainIdleS     float64 `json:"retain_idle_s"`
}

// started is what a start took, in a process of its own.
type started struct {
	OpenS     float64 `json:"open_s"`
	LoadS     float64 `json:"load_s"`    // what a node reads: the last rounds and payloads
	AuthorsS  float64 `json:"authors_s"` // who contributed how much
	TotalS    float64 `json:"total_s"`
	PeakBytes int64   `json:"peak_rss_bytes,omitempty"`
}

func run(o options, out, log io.Writer) (err error) {
	if o.start != "" {
		s, err := startOn(o)
		if err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(s)
	}
	if o.dir == "" {
		if o.dir, err = os.MkdirTemp("", "atoll-ledger-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	}
	r := result{options: o}
	if r.MakeS, err = fill(o, log); err != nil {
		return err
	}
	if err := r.weigh(); err != nil {
		return err
	}
	if r.Started, err = inProcess(o); err != nil {
		return err
	}
	if err := r.use(); err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(out).Encode(r)
	}
	return r.write(out)
}

// inProcess measures a start in a new process of this program.
func inProcess(o options) (s started, err error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	cmd := exec.Command(self, "ledger", "--start", o.dir, "--fragments", fmt.Sprint(o.Fragments), "--deltas", fmt.Sprint(o.Deltas), "--rounds", fmt.Sprint(o.Rounds))
	cmd.Stderr = os.Stderr
	b, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	return s, err
}

// weigh measures what the folder takes.
func (r *result) weigh() error {
	entries := map[string]int{}
	err := filepath.WalkDir(r.dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || path == r.dir {
			return err
		}
		parent := filepath.Dir(path)
		if entries[parent]++; entries[parent] > r.LargestFolder {
			r.LargestFolder = entries[parent]
		}
		info, err := e.Info()
		if err != nil || e.IsDir() {
			return err
		}
		in, _ := filepath.Rel(r.dir, path)
		switch {
		case in == "index.db":
			r.IndexBytes = info.Size()
		case filepath.Dir(filepath.Dir(in)) == "segments":
			r.SegmentBytes += info.Size()
			r.SegmentFiles++
		}
		return nil
	})
	return err
}

func (r *result) write(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	type line struct{ what, is string }
	lines := []line{
		{"rounds of all fragments", fmt.Sprintf("%d, %d deltas each", r.Rounds*r.Fragments, r.Deltas)},
		{"making it", fmt.Sprintf("%.0f s", r.MakeS)},
		{"index", fmt.Sprintf("%.1f MB", float64(r.IndexBytes)/1e6)},
		{"segments", fmt.Sprintf("%.1f MB in %d files, %.1f bytes a delta", float64(r.SegmentBytes)/1e6, r.SegmentFiles, r.BytesPerDelta)},
		{"entries of the largest folder", fmt.Sprint(r.LargestFolder)},
		{"start", fmt.Sprintf("%.2f s: open %.2f, load %.2f, authors %.2f; %.0f MB of memory at most", r.Started.TotalS, r.Started.OpenS, r.Started.LoadS, r.Started.AuthorsS, float64(r.Started.PeakBytes)/1e6)},
		{"retention that drops nothing", fmt.Sprintf("%.2f ms", 1000*r.RetainIdleS)},
		{"retention", fmt.Sprintf("%.2f s for %d payloads", r.RetainS, r.RetainedDropped)},
	}
	if r.walk {
		lines = append(lines, line{"a walk over all records and headers", fmt.Sprintf("%.1f s for %d deltas", r.WalkS, r.WalkedDeltas)})
	}
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%s\n", l.what, l.is)
	}
	return w.Flush()
}
