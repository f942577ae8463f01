package headline

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"atoll/testnet/lab/program"
	"atoll/testnet/lab/trials"
)

// Trial is one run of a world.
type Trial struct {
	Row     string   `json:"row"`
	World   string   `json:"world"`
	Turn    int      `json:"turn"` // from 1
	Command []string `json:"command"`
	Commit  string   `json:"commit"`
	Pace    string   `json:"pace"` // as typed
	Load    float64  `json:"load"` // of the machine before it, processes that want a core
	Outcome Outcome  `json:"outcome"`
}

// play plays the rows and stores what came of each.
func (t typed) play(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "atoll-headline-")
	if err != nil {
		return fmt.Errorf("make a folder for runs: %w", err)
	}
	if !t.Keep {
		defer os.RemoveAll(dir)
	}
	if t.Atoll == "" {
		if t.Atoll, err = program.Build(ctx, dir, t.Log); err != nil {
			return err
		}
	}
	met := true
	for _, row := range t.rows {
		r, err := t.resultOf(ctx, row, dir)
		if err != nil {
			return fmt.Errorf("row %s: %w", row.Name, err)
		}
		fmt.Fprint(out, r.Text())
		met = met && r.met()
		if len(t.Only) == 0 {
			if err := r.save(t.Out); err != nil {
				return err
			}
		}
	}
	if !met {
		return errMissed
	}
	return nil
}

// resultOf plays a row, or further turns of it.
func (t typed) resultOf(ctx context.Context, row Row, dir string) (r Result, err error) {
	s := t.Settings
	var before Result
	if t.more {
		if before, err = storedRow(t.Out, row.Name); err != nil {
			return r, err
		}
		if s, err = s.after(row, before); err != nil {
			return r, err
		}
	}
	m, err := machineHere(ctx)
	if err != nil {
		return r, err
	}
	done, err := s.playRow(ctx, row, m, dir)
	if err != nil {
		return r, err
	}
	r = s.result(row, done, m)
	if t.more {
		r = before.with(r)
	}
	return r, nil
}

// playRow plays what of a row is not in the file of trials.
func (s Settings) playRow(ctx context.Context, row Row, m Machine, dir string) ([]Trial, error) {
	done, err := trials.Read[Trial](s.Trials)
	if err != nil {
		return nil, err
	}
	var mine []Trial
	for turn := s.From + 1; turn <= s.From+s.Runs; turn++ {
		for _, w := range s.inTurn(row, turn) {
			if i := slices.IndexFunc(done, func(t Trial) bool { return t.is(row, w, turn, m.Commit, s.Pace) }); i >= 0 {
				mine = append(mine, done[i])
				continue
			}
			t, err := s.playWorld(ctx, row, w, turn, lab{Settings: s, pace: s.paceOf(row, mine)}, m, dir)
			if err != nil {
				return mine, err
			}
			mine = append(mine, t)
		}
	}
	return mine, nil
}

// is says whether a trial answers for this turn of a world. Source that is not committed may have changed since.
func (t Trial) is(row Row, w World, turn int, commit string, pace time.Duration) bool {
	return t.Row == row.Name && t.World == w.Name && t.Turn == turn && t.Commit == commit && !strings.HasSuffix(commit, changedMark) &&
		t.Pace == pace.String() && slices.Equal(t.Command, w.Command)
}

func (s Settings) playWorld(ctx context.Context, row Row, w World, turn int, l lab, m Machine, dir string) (Trial, error) {
	t := Trial{Row: row.Name, World: w.Name, Turn: turn, Command: w.Command, Commit: m.Commit, Pace: s.Pace.String(), Load: loadAverage()}
	fmt.Fprintf(s.Log, "%s, turn %d of %d, %s: %s\n", row.Name, turn, s.From+s.Runs, w.Name, w.text())
	place, err := os.MkdirTemp(dir, row.Name+"-")
	if err != nil {
		return t, fmt.Errorf("make a folder for the run: %w", err)
	}
	if !s.Keep {
		defer os.RemoveAll(place)
	}
	if t.Outcome, err = w.Run(ctx, l, w, place); err != nil {
		return t, err
	}
	return t, trials.Append(s.Trials, t)
}

// inTurn are the worlds of a turn, those that were asked for.
func (s Settings) inTurn(row Row, turn int) []World {
	worlds := row.Worlds(s, s.Seed+uint64(turn-1))
	if len(s.Only) > 0 {
		worlds = slices.DeleteFunc(worlds, func(w World) bool { return !slices.Contains(s.Only, w.Name) })
	}
	return trials.InTurn(worlds, turn)
}

// paceOf gives all worlds of a row the pace of the first: each would be calibrated to another one.
func (s Settings) paceOf(row Row, played []Trial) time.Duration {
	pace := s.Pace
	if pace == 0 {
		pace = row.Pace
	}
	for _, t := range played {
		if ms := t.Outcome.Report.Calibration.PaceMs; pace == 0 && ms > 0 {
			pace = time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond)
		}
	}
	return pace
}

// result makes the figures of a row.
func (s Settings) result(row Row, played []Trial, m Machine) Result {
	r := Result{
		Row: row.Name, About: row.About, Quick: s.Quick, Scale: s.Scale, PaceMs: float64(s.paceOf(row, played)) / float64(time.Millisecond),
		Part: Part{Turns: s.Runs, Seed: s.Seed + uint64(s.From), At: time.Now().UTC().Truncate(time.Second), Machine: m},
	}
	r.Worlds = s.commands(row)
	var turns [][]Line
	for turn := s.From + 1; turn <= s.From+s.Runs; turn++ {
		outcomes := map[string]Outcome{}
		for _, t := range played {
			if t.Turn != turn {
				continue
			}
			m.Load = max(m.Load, t.Load)
			r.Failed = append(r.Failed, t.failures()...)
			if t.Outcome.Failed == "" {
				outcomes[t.World] = t.Outcome
			}
		}
		turns = append(turns, row.Lines(outcomes))
	}
	r.Machine.Load = m.Load
	r.Lines = summarize(turns)
	return r
}

// commands are those of the first turn.
func (s Settings) commands(row Row) (all []Command) {
	for _, w := range s.inTurn(row, 1) {
		all = append(all, Command{Name: w.Name, Text: w.text()})
	}
	return all
}

// failures are what a run did not do that it should have.
func (t Trial) failures() (texts []string) {
	where := fmt.Sprintf("turn %d, %s: ", t.Turn, t.World)
	if t.Outcome.Failed != "" {
		return []string{where + t.Outcome.Failed}
	}
	for _, c := range t.Outcome.Report.Checks {
		if !c.Passed {
			texts = append(texts, where+"check failed: "+c.Name+": "+c.Detail)
		}
	}
	if p := t.Outcome.Peer; p != nil && len(p.Wrong) > 0 {
		texts = append(texts, where+strings.Join(p.Wrong, "; "))
	}
	return texts
}
