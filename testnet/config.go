package testnet

import (
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"atoll/node/genesis"
	"atoll/node/web"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/baseline"
)

// Config is a world to run. Zero fields mean the default where one is named.
type Config struct {
	Nodes  int       // learners that start together; 0 = DefaultNodes
	Model  string    // tiny, small, base or a file of sizes; "" = tiny
	Data   string    // folder of a corpus, or text as corpus.Open takes it; "" = the prose that comes with atoll
	Tokens uint64    // budget: tokens folded; 0 = DefaultTokens
	Seed   uint64    // of the initial parameters and the batches
	Speed  []float64 // a divisor for each node, from the first again where they are short: 4 = four times slower; nil = all 1
	Chaos  string    // see package fault

	Baseline  string   // how the nodes train together: Atoll, or one of the baselines; "" = Atoll
	NoOverlap bool     // dp: gradients wait until all of them are there
	Link      []string // what links are made: LINK for all nodes or NODES:LINK for some, as shape.Parse reads it; the last that names a node wins; nil = as they are
	Learner   []string // programs that train instead of the built-in trainer: CMD for all nodes or NODES:CMD for some; nil = none
	Precision []string // of the built-in trainer: f32, bf16 or auto for all nodes or NODES:f32 for some; nil = whichever is faster
	Trace     bool     // the nodes write the life of every delta
	NoEval    bool     // the model is not evaluated at the end

	Pace    time.Duration // least time of a step of a node with divisor 1; 0 = calibrated to this machine
	Timeout time.Duration // the world is killed then; 0 = once nothing was folded for half an hour, or for eight rounds where these take longer

	Place

	Window    int     // union window in rounds; 0 = as usual
	H         int     // inner steps of a round; 0 = what goes with the codec
	Fragments int     // 0 = as the model suggests
	Batch     int     // rows of an inner step; 0 = as the model suggests
	Optimizer string  // inner: adamw or muon; "" = muon
	Codec     string  // of the deltas of atoll; "" = as every run
	LR        float64 // peak learning rate; 0 = what measured best with the optimizer and the width of the model

	Console
}

// Place is where a world is.
type Place struct {
	Dir    string // where everything is kept; "" = a fresh folder for temporary files
	Binary string // this program; "" = the running executable
}

// Console is who watches a world.
type Console struct {
	Out      io.Writer                   // what happens, live; nil = nowhere
	Terminal func() (columns, lines int) // size of the terminal that Out is, which is redrawn; nil = it is none: lines are added
	Abort    <-chan struct{}             // closed: kill all nodes now, without the ordered leave that the end of the context asks for
	Log      *slog.Logger                // nil = discard
	Watch    func(web.World)             // told of all nodes about twice a second; nil = nobody
}

// Atoll is what baselines are compared with: nodes without a leader.
const Atoll = "atoll"

// baselines are all ways in which nodes train together.
var baselines = []string{Atoll, baseline.DP, baseline.DiLoCo, baseline.Local}

// Defaults of a world.
const (
	DefaultNodes  = 4
	DefaultTokens = 2_000_000
)

// Limits on a world: one machine carries it.
const (
	maxNodes   = 256  // processes that one machine starts
	maxDivisor = 1000 // beyond it a node takes no step in a run of minutes
	maxLR      = 10   // as a genesis allows
)

// Files of a world's folder.
const (
	genesisFile = "genesis"
	linkFile    = "link"
	reportFile  = "report.json"
	logFile     = "log" // in a node's folder
)

// usualH is the H where none is given. The baselines have codecs of their own.
func (c Config) usualH() int {
	kind, err := codec.Parse(c.Codec)
	if err != nil || c.Baseline != Atoll { // what is wrong with a codec is said where it is used
		kind = codec.Int4
	}
	return outer.DefaultH(kind)
}

// withDefaults fills what is zero and checks the rest; the error names the flag
// that sets it.
func (c Config) withDefaults() (Config, error) {
	c.Baseline = orDefault(c.Baseline, Atoll)
	c.Nodes = orDefault(c.Nodes, DefaultNodes)
	if c.Baseline == baseline.Local {
		c.Nodes = 1
	}
	c.Model = orDefault(c.Model, "tiny")
	c.Tokens = orDefault(c.Tokens, DefaultTokens)
	c.H = orDefault(c.H, c.usualH())
	if len(c.Speed) == 0 {
		c.Speed = []float64{1}
	}
	if c.Out == nil {
		c.Out = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Binary == "" {
		binary, err := os.Executable()
		if err != nil {
			return c, fmt.Errorf("find this program: %w", err)
		}
		c.Binary = binary
	}
	return c, c.check()
}

// Validate returns an error that names the first flag whose value cannot be
// meant, a chaos spec included. What needs the disk is checked by Run.
func (c Config) Validate() error {
	c, err := c.withDefaults()
	if err == nil {
		_, err = planChaos(c)
	}
	if err == nil {
		_, err = settings(c, genesis.Text{}, time.UnixMilli(0))
	}
	return err
}

func orDefault[T comparable](v, byDefault T) T {
	var zero T
	if v == zero {
		return byDefault
	}
	return v
}

func (c Config) check() error {
	switch {
	case !slices.Contains(baselines, c.Baseline):
		return fmt.Errorf("--baseline is %.20q: use %s", c.Baseline, strings.Join(baselines, ", "))
	case c.Nodes < 1 || c.Nodes > maxNodes:
		return fmt.Errorf("--nodes is %d: use 1 to %d", c.Nodes, maxNodes)
	case len(c.Speed) > maxNodes:
		return fmt.Errorf("--speed has %d divisors: use at most %d", len(c.Speed), maxNodes)
	case c.Pace < 0:
		return fmt.Errorf("--pace is %v: use the least time of a step, or leave it out to calibrate it", c.Pace)
	case c.Timeout < 0:
		return fmt.Errorf("--timeout is %v: use a duration such as 30m", c.Timeout)
	case c.H < 1 || c.H > outer.MaxH:
		return fmt.Errorf("--h is %d: use 1 to %d", c.H, outer.MaxH)
	case c.Trace && c.Baseline != Atoll:
		return fmt.Errorf("--trace is of deltas, which %s has none of: leave it out", c.Baseline)
	case len(c.Precision) > 0 && c.Baseline != Atoll:
		return fmt.Errorf("--precision is of atoll, and %s trains in f32: leave it out", c.Baseline)
	case c.Window < 0 || c.Window > 0 && c.Window < outer.LeastWindow || c.Window > outer.MaxWindow:
		return fmt.Errorf("--union-window is %d: use %d to %d rounds, or leave it out", c.Window, outer.LeastWindow, outer.MaxWindow)
	case c.Fragments < 0:
		return fmt.Errorf("--fragments is %d: use 1 or more, or leave it out", c.Fragments)
	case c.Batch < 0:
		return fmt.Errorf("--batch is %d: use 1 or more, or leave it out", c.Batch)
	case !(c.LR >= 0 && c.LR <= maxLR):
		return fmt.Errorf("--lr is %v: use a learning rate between 0 and %d", c.LR, maxLR)
	}
	if _, err := parseLearners(c.Learner); err != nil {
		return err
	}
	if _, err := parsePrecisions(c.Precision); err != nil {
		return err
	}
	if _, err := parseLinks(c.Link); err != nil {
		return err
	}
	for _, d := range c.Speed {
		if !(d >= 1 && d <= maxDivisor) {
			return fmt.Errorf("--speed has the divisor %v: use 1 (full speed) to %d (as many times slower)", d, maxDivisor)
		}
	}
	return nil
}

// divisor is how many times slower than full speed a node is.
func (c Config) divisor(i int) float64 { return c.Speed[i%len(c.Speed)] }

// makeDir makes the world's folder, or a fresh one. A folder with an earlier
// world in it is refused: its ledgers would be taken for this run's.
func makeDir(dir string) (string, error) {
	if dir == "" {
		made, err := os.MkdirTemp("", "atoll-testnet-")
		if err != nil {
			return "", fmt.Errorf("make folder for the testnet: %w", err)
		}
		return made, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("testnet folder %s: %w", dir, err)
	}
	for _, name := range []string{genesisFile, nodeName(0)} {
		if _, err := os.Stat(filepath.Join(abs, name)); err == nil {
			return "", fmt.Errorf("%s holds an earlier testnet (%s): remove it or choose another folder", dir, name)
		}
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("make testnet folder: %w", err)
	}
	return abs, nil
}

// folderSize is how many bytes of files a folder holds, as far as they can be
// counted: it is there to tell people, not to decide by.
func folderSize(dir string) uint64 {
	var sum uint64
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			sum += uint64(info.Size())
		}
		return nil
	})
	return sum
}

func nodeName(i int) string { return fmt.Sprintf("node%d", i) }
