package headline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/testnet/lab/trials"
)

// seedsRow is a row whose figure is the seed. It notes the paces of its runs.
func seedsRow(name string, paces *[]time.Duration) Row {
	return Row{
		Name: name, About: "seeds",
		Worlds: func(s Settings, seed uint64) []World {
			return []World{{Name: "w", Command: []string{"atoll", name, fmt.Sprint(seed)}, Run: func(_ context.Context, l lab, _ World, _ string) (o Outcome, err error) {
				*paces = append(*paces, l.pace)
				o.Report.Seed, o.Report.Calibration.PaceMs = seed, 40
				return o, nil
			}}}
		},
		Lines: func(o map[string]Outcome) []Line {
			return []Line{alone("seed", "", float64(o["w"].Report.Seed), trials.AtLeast(6))}
		},
	}
}

// Turns that are added have further seeds, the pace of the first, and are judged with them.
func TestMore(t *testing.T) {
	dir := t.TempDir()
	var paces []time.Duration
	row := seedsRow("kept", &paces)
	play := func(more bool, runs int, row Row) (Result, error) {
		s := Settings{Scale: 1, Runs: runs, Seed: 5, Atoll: "atoll", Out: dir, Trials: filepath.Join(dir, "trials"), Log: io.Discard}
		r, err := typed{Settings: s, more: more}.resultOf(t.Context(), row, dir)
		if err == nil {
			err = r.save(dir)
		}
		return r, err
	}
	if _, err := play(true, 0, row); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("more of what is not stored: %v", err)
	}
	first, err := play(false, 1, row)
	if err != nil || first.met() {
		t.Fatalf("%+v, %v", first, err)
	}
	first.Lines[0].Value.Values, first.Lines[0].Atoll.Values = nil, nil // as in results that are older than they
	if err := first.save(dir); err != nil {
		t.Fatal(err)
	}
	all, err := play(true, 0, row)
	if err != nil || all.turns() != 3 || !all.met() || len(all.More) != 1 || all.More[0].Seed != 6 {
		t.Fatalf("%+v, %v", all, err)
	}
	if v := all.Lines[0].Value; v.Median != 6 || !slices.Equal(v.Values, []float64{5, 6, 7}) || all.Lines[0].Turns != 3 {
		t.Errorf("%+v", v)
	}
	if want := []time.Duration{0, 40 * time.Millisecond, 40 * time.Millisecond}; !slices.Equal(paces, want) {
		t.Errorf("paces %v", paces)
	}
	if text := table([]Result{all}); !strings.Contains(text, "| kept | 1 |") || !strings.Contains(text, "| kept | 2 |") || !strings.Contains(text, "--more kept`") {
		t.Errorf("%s", text)
	}
	if _, err := play(true, 0, row); err == nil || !strings.Contains(err.Error(), "has 3 turns already: say with --runs") {
		t.Errorf("error %v", err)
	}
	if all, err = play(true, 2, row); err != nil || all.turns() != 5 || all.Lines[0].Value.Max != 9 {
		t.Errorf("%+v, %v", all, err)
	}
}

// What cannot be added is refused, and what is stored stays.
func TestMoreRefuses(t *testing.T) {
	row := seedsRow("kept", new([]time.Duration))
	s := Settings{Scale: 1, Seed: 5}
	good := s.result(row, []Trial{{Turn: 1, World: "w"}}, Machine{})
	good.Turns, good.Lines = 2, summarize([][]Line{{alone("seed", "", 5, trials.Shown)}, {alone("seed", "", 6, trials.Shown)}})
	if s, err := s.after(row, good); err != nil || s.Runs != 1 || s.From != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	other := good
	other.Worlds = []Command{{Name: "w", Text: "atoll other"}}
	if _, err := s.after(row, other); err == nil || !strings.Contains(err.Error(), "are others than those that are stored") {
		t.Errorf("other worlds: %v", err)
	}
	good.Lines[0].Value.Values = nil
	if _, err := s.after(row, good); err == nil || !strings.Contains(err.Error(), "without the figures of its turns") {
		t.Errorf("no figures: %v", err)
	}
}
