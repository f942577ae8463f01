package headline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"atoll/testnet"
	"atoll/testnet/lab/program"
)

// World is one run of real processes.
type World struct {
	Name    string
	Command []string // what people would type, without the pace and the folder
	Run     func(ctx context.Context, l lab, w World, dir string) (Outcome, error)
	Read    func(dir string, o *Outcome) error // of the folder, before it goes; nil = nothing
}

// Outcome is what came of a world.
type Outcome struct {
	Failed string               `json:"failed,omitempty"` // why there is nothing else
	Report testnet.Report       `json:"report"`
	Times  map[string][]float64 `json:"times,omitempty"` // s, by what they are of
	Peer   *Peer                `json:"peer,omitempty"`  // of a world that is none of atoll
}

// lab is where worlds are played.
type lab struct {
	Settings
	pace   time.Duration // of the row; 0 = calibrated
	prefix []string      // words before the program; none = it runs where this one does
}

// testnetWorld is a run of atoll testnet.
func testnetWorld(name string, args ...string) World {
	return World{Name: name, Command: append([]string{"atoll", "testnet"}, args...), Run: runTestnet}
}

// runTestnet runs a world. One whose checks fail has a report as well; without one the outcome says why.
func runTestnet(ctx context.Context, l lab, w World, dir string) (Outcome, error) {
	args := append([]string{"testnet", "--json", filepath.Join(dir, "world")}, w.Command[2:]...)
	if l.pace > 0 {
		args = append(args, "--pace", l.pace.String())
	}
	words := append(slices.Clone(l.prefix), append([]string{l.Atoll}, args...)...)
	out, ended := l.command(ctx, words[0], words[1:]...)
	if ctx.Err() != nil {
		return Outcome{}, ended
	}
	var o Outcome
	if err := json.Unmarshal(program.LastLine(out), &o.Report); err != nil {
		o.Failed = errors.Join(ended, fmt.Errorf("read the report: %w", err)).Error()
		return o, nil
	}
	if w.Read != nil {
		return o, w.Read(filepath.Join(dir, "world"), &o)
	}
	return o, nil
}

// command calls a program, with the Python of the settings first in PATH, and returns what it printed.
func (l lab) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	return program.Output(ctx, l.Log, l.environment(), name, args...)
}

// environment has the Python of the settings first in PATH, and lets it find atoll's package.
func (l lab) environment() []string {
	env := append(os.Environ(), "PYTHONPATH="+pythonDir)
	if at, err := exec.LookPath(l.Python); err == nil {
		env = append(env, "PATH="+filepath.Dir(at)+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return env
}

// text is a world's command for people.
func (w World) text() string {
	words := make([]string, len(w.Command))
	for i, word := range w.Command {
		if words[i] = word; strings.ContainsAny(word, " |,;") {
			words[i] = `"` + word + `"`
		}
	}
	return strings.Join(words, " ")
}

// at is when so many tokens were folded, in seconds from the start.
func (o Outcome) at(tokens float64) float64 {
	p := o.Report.Progress
	for i := range p {
		if float64(p[i].Tokens) < tokens {
			continue
		}
		if i == 0 {
			return p[i].AtS
		}
		was := p[i-1]
		return was.AtS + (p[i].AtS-was.AtS)*(tokens-float64(was.Tokens))/float64(p[i].Tokens-was.Tokens)
	}
	return o.Report.WallS
}

// Shares of the folded tokens between which a run is neither at its start nor at its end. Short runs are half of both.
const steadyFrom, steadyTo = 0.25, 0.9

// steady is the tokens per second between the start and the end.
func (o Outcome) steady() float64 {
	all := float64(o.Report.TokensFolded)
	return (steadyTo - steadyFrom) * all / (o.at(steadyTo*all) - o.at(steadyFrom*all))
}

// sent is the bytes per second of each node at the steady rate.
func (o Outcome) sent() float64 {
	r := o.Report
	return float64(r.BytesSent) / float64(r.TokensFolded) * o.steady() / float64(len(r.NodesReport))
}

// bytesPerToken is all that all nodes received, over the tokens folded.
func (o Outcome) bytesPerToken() float64 { return o.Report.BytesPerToken }

// waited is the largest share of its time for which a learner may have waited for others.
func (o Outcome) waited() (most float64) {
	for _, n := range o.Report.NodesReport {
		if n.Time != nil && n.Time.Total > 0 {
			most = max(most, n.Time.Waiting/n.Time.Total)
		}
	}
	return most
}

func value(x *float64) float64 {
	if x == nil {
		return none
	}
	return *x
}
