package sweep

import (
	"fmt"
	"io"
	"slices"

	"atoll/testnet/lab/trials"
)

// ReadTrials reads a file of trials, as trials.Read does.
func ReadTrials(path string) ([]Trial, error) { return trials.Read[Trial](path) }

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
		if err := trials.Append(path, t); err != nil {
			return err
		}
		fmt.Fprintf(log, "%d/%d %s seed %d: %.4f bits per byte, %.1f s %s\n", i+1, len(plan), t.Baseline, t.Seed, t.ValBPB, t.Seconds, t.Failed)
	}
	return nil
}
