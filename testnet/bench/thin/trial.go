package thin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
)

// Trial is one run of a world.
type Trial struct {
	Row     string   `json:"row"`
	World   string   `json:"world"`
	Turn    int      `json:"turn"` // from 1
	Args    []string `json:"args"` // of atoll testnet, without the pace
	Outcome Outcome  `json:"outcome"`
}

// is says whether a trial answers for this turn of a world.
func (t Trial) is(row string, w World, turn int) bool {
	return t.Row == row && t.World == w.Name && t.Turn == turn && slices.Equal(t.Args, w.Args)
}

// ReadTrials reads a file of trials, a JSON object on a line; of a file that does not exist, none. A last line without
// an end was not written whole, and is left out.
func ReadTrials(path string) (trials []Trial, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trials: %w", err)
	}
	number := 0
	for line := range lines(text[:bytes.LastIndexByte(text, '\n')+1]) {
		number++
		var t Trial
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("read trials: %s, object %d: %w", path, number, err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// lines are those of a text that say anything.
func lines(text []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// appendTrial adds a line to a file of trials.
func appendTrial(path string, t Trial) error {
	line, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	_, err = f.Write(append(line, '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	return nil
}
