package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
)

// ReadTrials reads a file of trials, one JSON object on a line, in the order of
// the lines; of a file that does not exist, none. What follows the last newline
// was not written to its end and is left out. The error names the line.
func ReadTrials(path string) ([]Trial, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trials: %w", err)
	}
	var trials []Trial
	number := 0
	for line := range bytes.Lines(whole(text)) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t Trial
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("read trials: %s line %d: %w", path, number, err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// whole is the part of a file that ends with a newline.
func whole(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// Play runs the entries of a plan without a trial in path, and appends each when
// it is done. So a plan may be stopped and played again at any time. Progress
// goes to log.
func (l *Lab) Play(plan []Entry, path string, log io.Writer) error {
	done, err := ReadTrials(path)
	if err != nil {
		return err
	}
	played := map[Entry]bool{}
	for _, t := range done {
		played[Entry{t.Setting, t.Seed}] = true
	}
	left := slices.DeleteFunc(slices.Clone(plan), func(e Entry) bool { return played[e] })
	if len(left) == 0 {
		fmt.Fprintf(log, "all %d trials are in %s\n", len(plan), path)
		return nil
	}
	fmt.Fprintf(log, "%d of %d trials to run; each takes seconds to half an hour, and is in %s once it is over\n", len(left), len(plan), path)
	for i, e := range plan {
		if played[e] {
			continue
		}
		t, err := l.Run(e.Setting, e.Seed)
		if err != nil {
			return fmt.Errorf("trial %d of the plan: %w", i+1, err)
		}
		if err := appendTrial(path, t); err != nil {
			return err
		}
		fmt.Fprintf(log, "%d/%d %s seed %d: %.4f bits per byte, %.1f s %s\n", i+1, len(plan), t.Baseline, t.Seed, t.ValBPB, t.Seconds, t.Failed)
	}
	return nil
}

// appendTrial adds one line. What a write that was cut short left at the end goes
// first.
func appendTrial(path string, t Trial) error {
	line, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	end := int64(len(whole(text)))
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	if _, err := f.WriteAt(append(line, '\n'), end); err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	return f.Close()
}
