package thin

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

// Settings say how rows are played.
type Settings struct {
	Atoll  string        // program; "" = the source here is built
	Before string        // the program of an earlier version, for the row that compares them; "" = none
	Out    string        // file of trials
	Only   []string      // rows and groups; none = all
	Runs   int           // turns of each row
	Scale  float64       // of tokens and times: 0.25 is a quick look
	Pace   time.Duration // of a step; 0 = what the first run of a row is calibrated to
	Model  string
	Data   string
	Seed   uint64
	Keep   bool      // the folders of runs stay
	Log    io.Writer // what happens
}

// World is one run of real processes.
type World struct {
	Name string
	Args []string // of atoll testnet, without the pace
	Old  bool     // the program of before runs it
}

// Row is one question, with the worlds that answer it.
type Row struct {
	Group, Name string
	About       string
	Worlds      []World
	Pace        time.Duration // 0 = as Settings have it
	Figures     func(worlds map[string]Outcome) []Figure
}

// Result is what a row came to.
type Result struct {
	Row     string    `json:"row"`
	About   string    `json:"about"`
	Worlds  []string  `json:"worlds"` // the commands
	Failed  []string  `json:"failed,omitempty"`
	Figures []Summary `json:"figures"`
}

// Met says that every target is met, of at least one turn.
func (r Result) Met() bool {
	return len(r.Failed) == 0 && len(r.Figures) > 0 && !slices.ContainsFunc(r.Figures, func(s Summary) bool { return s.Met != nil && !*s.Met })
}

// Run plays the rows and hands over each result as it comes.
func Run(ctx context.Context, s Settings, each func(Result)) error {
	if s.Atoll == "" {
		dir, err := os.MkdirTemp("", "atoll-thin-")
		if err != nil {
			return fmt.Errorf("make a folder for the program: %w", err)
		}
		defer os.RemoveAll(dir)
		if s.Atoll, err = program.Build(ctx, dir, s.Log); err != nil {
			return err
		}
	}
	rows, err := s.rows(ctx)
	if err != nil {
		return err
	}
	for _, row := range rows {
		done, err := s.play(ctx, row)
		if err != nil {
			return fmt.Errorf("row %s: %w", row.Name, err)
		}
		each(row.result(done, s.Runs))
	}
	return nil
}

// play runs what of a row is not in the file of trials.
func (s Settings) play(ctx context.Context, row Row) ([]Trial, error) {
	done, err := trials.Read[Trial](s.Out)
	if err != nil {
		return nil, err
	}
	for turn := 1; turn <= s.Runs; turn++ {
		for _, w := range trials.InTurn(row.Worlds, turn) {
			if slices.ContainsFunc(done, func(t Trial) bool { return t.is(row.Name, w, turn) }) {
				continue
			}
			fmt.Fprintf(s.Log, "%s, turn %d of %d: %s: atoll testnet %s\n", row.Name, turn, s.Runs, w.Name, strings.Join(w.Args, " "))
			o, err := s.program(w).testnet(ctx, append(slices.Clip(w.Args), s.paceFlag(row, done)...))
			if err != nil {
				return done, err
			}
			t := Trial{Row: row.Name, World: w.Name, Turn: turn, Args: w.Args, Outcome: o}
			if err := trials.Append(s.Out, t); err != nil {
				return done, err
			}
			done = append(done, t)
		}
	}
	return done, nil
}

func (s Settings) program(w World) caller {
	p := caller{path: s.Atoll, keep: s.Keep, log: s.Log}
	if w.Old {
		p.path = s.Before
	}
	return p
}

// paceFlag gives all worlds of a row the pace of the first: each would be calibrated to another one.
func (s Settings) paceFlag(row Row, trials []Trial) []string {
	pace := max(row.Pace, s.Pace)
	for _, t := range trials {
		if pace == 0 && t.Row == row.Name {
			pace = time.Duration(t.Outcome.Calibration.Ms * float64(time.Millisecond))
		}
	}
	if pace == 0 {
		return nil
	}
	return []string{"--pace", pace.Round(time.Millisecond).String()}
}

// result makes the figures of a row.
func (row Row) result(trials []Trial, runs int) Result {
	r := Result{Row: row.Name, About: row.About}
	for _, w := range row.Worlds {
		r.Worlds = append(r.Worlds, w.Name+": atoll testnet "+strings.Join(w.Args, " "))
	}
	var turns [][]Figure
	for turn := 1; turn <= runs; turn++ {
		outcomes := map[string]Outcome{}
		for _, w := range row.Worlds {
			for _, t := range trials {
				if !t.is(row.Name, w, turn) {
					continue
				}
				if t.Outcome.Failed != "" {
					r.Failed = append(r.Failed, fmt.Sprintf("turn %d, %s: %s", turn, w.Name, t.Outcome.Failed))
					continue
				}
				outcomes[w.Name] = t.Outcome
			}
		}
		if len(outcomes) == len(row.Worlds) {
			figures, without := finite(row.Figures(outcomes))
			turns = append(turns, figures)
			for _, name := range without {
				r.Failed = append(r.Failed, fmt.Sprintf("turn %d: the run is too short for the figure %q", turn, name))
			}
		}
	}
	r.Figures = summarize(turns)
	return r
}
