package headline

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/lab/program"
	"atoll/testnet/lab/trials"
)

// This file holds the row about what people would use instead: hivemind and torchft, on the same model, text, tokens and
// machine. Their learners are the scripts in peers.

// peersDir has the scripts, pythonDir atoll's Python package, whose model they train; from the top of the repository.
const (
	peersDir  = "testnet/lab/headline/peers"
	pythonDir = "optimizer/trainer/external/python"
)

// peerSystems are what atoll stands beside.
var peerSystems = []string{"hivemind", "torchft-diloco", "torchft-ddp"}

// peerExamples are what the peers' documentation shows. Each must run before its peer is compared.
var peerExamples = []string{"example-hivemind", "example-torchft"}

// Peer is what came of a world of a peer.
type Peer struct {
	System   string       `json:"system"`
	Tokens   float64      `json:"tokens"`     // of all learners, in the model
	WallS    float64      `json:"wall_s"`     // first process to the end of the first learner
	AllStepS float64      `json:"all_step_s"` // until all learners have stepped
	Bytes    float64      `json:"bytes"`      // that the network carried; 0 = not counted
	RSSBytes float64      `json:"rss_bytes"`  // of a learner and what it starts, the most
	BackS    float64      `json:"back_s"`     // restart of the one that was killed to its first step
	StallS   float64      `json:"stall_s"`    // longest time without a step of the others, from the kill on
	Progress [][2]float64 `json:"progress"`   // s, tokens
	Example  []string     `json:"example"`    // what the learners of an example said at their end
	ValBPB   float64      `json:"val_bpb"`    // of the best model that a learner left
	Versions string       `json:"versions"`   // of what was installed
	Log      string       `json:"log"`        // the end of the first learner's
	Wrong    []string     `json:"wrong"`
}

// Shares of the tokens at which a learner is killed, and starts again.
const (
	peerKill = 0.33
	peerBack = 0.41
)

// peerNodes is how many learners there are.
const peerNodes = 4

// full is no pace at all: peers know none.
const full = time.Millisecond

var peersRow = Row{
	Name: "peers", About: "peers: hivemind and torchft, tiny, 4 learners", Takes: "25 minutes", TakesQuick: "four minutes", Pace: full, Torch: true,
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		tokens := s.tokens(2e6, 2e5)
		for _, e := range peerExamples {
			worlds = append(worlds, World{Name: e, Command: []string{"python3", peersDir + "/drive.py", "FOLDER", e}, Run: peerRun{system: e}.run})
		}
		for _, kill := range []bool{false, true} {
			name, chaos, flags := "", []string(nil), []string(nil)
			if kill {
				name = ", a kill"
				chaos = []string{"--chaos", fmt.Sprintf("kill 3 @%.0f%%..%.0f%%", 100*peerKill, 100*peerBack)}
				flags = []string{"--kill", fmt.Sprint(peerKill), "--back", fmt.Sprint(peerBack)}
			}
			atoll := testnetWorld("atoll"+name, append([]string{"--optimizer", "adamw", "--seed", fmt.Sprint(seed), "--tokens", tokens}, chaos...)...)
			atoll.Run, atoll.Read = runCounted, readRecovery
			worlds = append(worlds, atoll)
			for _, p := range peerSystems {
				r := peerRun{system: p, flags: flags, seed: seed, tokens: tokens}
				worlds = append(worlds, World{Name: p + name, Run: r.run,
					Command: slices.Concat([]string{"python3", peersDir + "/drive.py"}, flags, []string{"FOLDER:" + tokens + "-tokens-seed-" + fmt.Sprint(seed), p})})
			}
		}
		if s.Quick { // the runs with a kill show all columns
			return append(worlds[:len(peerExamples)], worlds[len(worlds)-1-len(peerSystems):]...)
		}
		return worlds
	},
	Lines: peerLines,
}

func peerLines(o map[string]Outcome) (lines []Line) {
	for _, p := range peerSystems {
		for _, name := range []string{"", ", a kill"} {
			atoll, have := o["atoll"+name]
			peer, havePeer := o[p+name]
			if have && havePeer && peer.Peer != nil && len(peer.Peer.Wrong) == 0 {
				lines = append(lines, besidePeer(p, name, atoll, peer.Peer)...)
			}
		}
	}
	for _, e := range peerExamples {
		if x, have := o[e]; have && x.Peer != nil {
			lines = append(lines, other("the documented example of "+strings.TrimPrefix(e, "example-")+" runs: 1 is yes", "", bool01(len(x.Peer.Wrong) == 0), "", trials.AtLeast(1)))
		}
	}
	return lines
}

func bool01(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// besidePeer has the columns of one peer, losses first.
func besidePeer(name, kill string, atoll Outcome, p *Peer) []Line {
	r, what := atoll.Report, "beside "+name+kill+", "
	lines := []Line{
		over(what+"model of equal tokens", "bits per byte", value(r.ValBPB), p.ValBPB, name, trials.Shown),
		over(what+"whole run", "tokens/s", r.TokensPerS, p.Tokens/p.WallS, name, trials.Shown),
		over(what+"without start and end", "tokens/s", atoll.steady(), p.steady(), name, trials.Shown),
	}
	if p.Bytes > 0 && len(atoll.Times[countedBytes]) > 0 {
		lines = append(lines, under(what+"all bytes on the network", "bytes per token", atoll.Times[countedBytes][0]/float64(r.TokensFolded), p.Bytes/p.Tokens, name, trials.Shown))
	}
	lines = append(lines,
		under(what+"until all four step", "s", atoll.allStep(), p.AllStepS, name, trials.Shown),
		under(what+"memory of a learner", "MB", atoll.memory()/1e6, p.RSSBytes/1e6, name, trials.Shown))
	if back := atoll.Times[rejoined]; kill != "" && len(back) > 0 {
		lines = append(lines, under(what+"from the restart until it trains with the others", "s", trials.Median(back), p.BackS, name, trials.Shown),
			other(what+"longest time without a step of the others", "s", p.StallS, name, trials.Shown))
	}
	return lines
}

// steady is the tokens per second between the start and the end.
func (p *Peer) steady() float64 {
	at := func(tokens float64) float64 {
		i := slices.IndexFunc(p.Progress, func(q [2]float64) bool { return q[1] >= tokens })
		if i < 0 {
			return p.WallS
		}
		return p.Progress[i][0]
	}
	from, to := at(steadyFrom*p.Tokens), at(steadyTo*p.Tokens)
	return (steadyTo - steadyFrom) * p.Tokens / (to - from)
}

// allStep is when the last of the first nodes began to train, in seconds from the start of the first.
func (o Outcome) allStep() (last float64) {
	var first time.Time
	for _, n := range o.Report.NodesReport {
		if len(n.Lives) > 0 && (first.IsZero() || n.Lives[0].Began.Before(first)) {
			first = n.Lives[0].Began
		}
	}
	for _, n := range o.Report.NodesReport {
		if len(n.Lives) > 0 && n.Time != nil {
			last = max(last, n.Lives[0].Began.Sub(first).Seconds()+n.Time.Joining/float64(len(n.Lives)))
		}
	}
	return last
}

// memory is the most that a node has at its end, in bytes.
func (o Outcome) memory() (most float64) {
	for _, n := range o.Report.NodesReport {
		if n.RSSBytes != nil {
			most = max(most, float64(*n.RSSBytes))
		}
	}
	return most
}

// countedBytes are the bytes that the network of a world of atoll carried, in Outcome.Times.
const countedBytes = "bytes on the network"

// apart are the words before a command that give it a network of its own, in which all bytes are counted; none where
// that is not allowed.
func apart(ctx context.Context) []string {
	words := []string{"unshare", "--net"}
	if exec.CommandContext(ctx, words[0], append(words[1:], "true")...).Run() != nil {
		return nil
	}
	return words
}

// drive are the words that start the driver of peers.
func (l lab) drive(ctx context.Context, args ...string) []string {
	return append(apart(ctx), append([]string{l.Python, filepath.Join(peersDir, "drive.py")}, args...)...)
}

// runCounted runs a world of atoll where its bytes are counted as those of peers are.
func runCounted(ctx context.Context, l lab, w World, dir string) (Outcome, error) {
	inside := l
	inside.prefix = l.drive(ctx, dir, "wrap")
	o, err := runTestnet(ctx, inside, w, dir)
	if err != nil || o.Failed != "" {
		return o, err
	}
	var counted struct{ Bytes float64 }
	b, err := os.ReadFile(filepath.Join(dir, "bytes.json"))
	if err == nil {
		err = json.Unmarshal(b, &counted)
	}
	if err != nil {
		return o, fmt.Errorf("read the bytes of %s: %w", w.Name, err)
	}
	if counted.Bytes > 0 {
		o.Times[countedBytes] = []float64{counted.Bytes}
	}
	return o, nil
}

// peerTimeout is after how long a world of a peer is given up.
const peerTimeout = 30 * time.Minute

// job is what learners of peers are told.
type job struct {
	Model       map[string]any `json:"model"`
	Learners    int            `json:"learners"`
	Tokens      uint64         `json:"tokens"` // of all learners
	Batch       int            `json:"batch"`  // rows of a step
	H           int            `json:"h"`
	Seed        uint64         `json:"seed"`
	Rate        float64        `json:"rate"`
	Beta1       float64        `json:"beta1"`
	Beta2       float64        `json:"beta2"`
	Eps         float64        `json:"eps"`
	WeightDecay float64        `json:"weight_decay"`
	Clip        float64        `json:"clip"`
	Warmup      float64        `json:"warmup"` // of the run
	Final       float64        `json:"final"`  // of the highest rate
	Timeout     float64        `json:"timeout"`
}

// jobOf is the job that a testnet of atoll has by default, with AdamW.
func jobOf(tokens, seed uint64) (j job, g genesis.Genesis, err error) {
	g, _, err = genesis.Spec{Model: llama.Tiny, Tokens: tokens, Seed: seed, Optimizer: "adamw", Learners: peerNodes}.Make()
	if err != nil {
		return j, g, err
	}
	m, o, s := g.Model, g.Inner.Optim(), g.Inner.Schedule()
	return job{
		Model: map[string]any{
			"vocab": m.Vocab, "hidden": m.Hidden, "layers": m.Layers, "heads": m.Heads, "kv_heads": m.KVHeads, "intermediate": m.Intermediate,
			"context": m.Context, "rope_theta": m.RopeTheta, "norm_eps": m.NormEps, "tied": m.Tied,
		},
		Learners: peerNodes, Tokens: tokens, Batch: g.Batch, H: g.Outer.H, Seed: seed, Rate: s.Peak, Beta1: o.AdamW.Beta1, Beta2: o.AdamW.Beta2, Eps: o.AdamW.Eps,
		WeightDecay: o.AdamW.WeightDecay, Clip: o.Clip, Warmup: s.WarmupFraction, Final: s.FinalFraction, Timeout: peerTimeout.Seconds(),
	}, g, nil
}

// peerRun is a world of a peer. Without tokens it is one of the peer's own examples.
type peerRun struct {
	system string
	flags  []string // of the driver
	seed   uint64
	tokens string
}

// run runs it, and evaluates what its learners left as atoll's model is evaluated.
func (p peerRun) run(ctx context.Context, l lab, _ World, dir string) (o Outcome, err error) {
	versions, err := l.peersInstalled(ctx)
	if err != nil {
		return Outcome{Failed: err.Error()}, nil
	}
	var g genesis.Genesis
	text, err := corpus.Open(corpus.Prose)
	if err != nil {
		return o, err
	}
	if p.tokens != "" {
		if g, err = writeJob(dir, text, p.tokens, p.seed); err != nil {
			return o, err
		}
	}
	words := l.drive(ctx, append(slices.Clone(p.flags), dir, p.system)...)
	out, ended := l.command(ctx, words[0], words[1:]...)
	if ctx.Err() != nil {
		return o, ended
	}
	o.Peer = &Peer{}
	if err := json.Unmarshal(program.LastLine(out), o.Peer); err != nil {
		return Outcome{Failed: errors.Join(ended, fmt.Errorf("read what came of it: %w", err)).Error()}, nil
	}
	o.Peer.Versions, o.Peer.Log = versions, lastLines(filepath.Join(dir, "learner0.log"))
	if g.Batch > 0 && len(o.Peer.Wrong) == 0 {
		o.Peer.ValBPB, err = bestModel(ctx, dir, g, text)
	}
	return o, err
}

// writeJob writes what learners read.
func writeJob(dir string, text *corpus.Corpus, all string, seed uint64) (g genesis.Genesis, err error) {
	tokens, err := strconv.ParseUint(all, 10, 64)
	if err != nil {
		return g, fmt.Errorf("tokens of a peer: %w", err)
	}
	j, g, err := jobOf(tokens, seed)
	if err != nil {
		return g, err
	}
	first := llama.NewParams(g.Model)
	llama.Init(g.Model, first, seed)
	var values bytes.Buffer
	told, err := json.Marshal(j)
	if err == nil {
		err = binary.Write(&values, binary.LittleEndian, first.Data)
	}
	for name, b := range map[string][]byte{"job.json": told, "init.f32": values.Bytes(), "train.txt": text.Train()} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), b, 0o644)
		}
	}
	if err != nil {
		return g, fmt.Errorf("write the job of a peer: %w", err)
	}
	return g, nil
}

// bestModel is the bits per byte of the best model that a learner left: learners of some peers do not hold the same.
func bestModel(ctx context.Context, dir string, g genesis.Genesis, text *corpus.Corpus) (float64, error) {
	best := math.Inf(1)
	for i := range peerNodes {
		b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("model%d.f32", i)))
		if errors.Is(err, os.ErrNotExist) {
			continue // it was still training when the first ended
		}
		slab := llama.NewParams(g.Model)
		if err == nil {
			err = readValues(b, slab)
		}
		if err != nil {
			return 0, fmt.Errorf("read the model of learner %d: %w", i, err)
		}
		bits, err := trainer.BitsPerByte(ctx, g.Model, slab, corpus.Windows(text.HeldOut(), g.Model.Context))
		if err != nil {
			return 0, err
		}
		best = min(best, bits)
	}
	return best, nil
}

func readValues(b []byte, slab *tensor.Slab) error {
	if len(b) != 4*len(slab.Data) {
		return fmt.Errorf("it has %d bytes, a model of %d values has %d", len(b), len(slab.Data), 4*len(slab.Data))
	}
	return binary.Read(bytes.NewReader(b), binary.LittleEndian, slab.Data)
}

// peersInstalled says which versions there are, or what is missing.
func (l lab) peersInstalled(ctx context.Context) (string, error) {
	const ask = "import importlib.metadata as m, platform; print('Python', platform.python_version(), *(f'{n} {m.version(n)}' for n in ('torch', 'hivemind', 'torchft')))"
	out, err := exec.CommandContext(ctx, l.Python, "-c", ask).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("left out: %s; install peers into a virtual environment, pip install torch==2.15.0 hivemind==1.1.12 torchft==0.2.0, and pass its python with --python", program.LastLine(out))
	}
	return strings.TrimSpace(string(out)), nil
}

// logLines is how many lines of a peer's log are kept.
const logLines = 30

func lastLines(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-logLines):], "\n")
}
