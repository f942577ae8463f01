// Package torch trains one model twice, with atoll's trainer and with PyTorch. Both read the same first
// parameters, batches and learning rates from one file. It compares the losses on the way and the bits
// per byte of held-out text at the end.
package torch

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/llama"
)

const usage = `usage, from the top of the repository:

  go run -C testnet/lab . torch [--tokens 2e6] [--threads 1] [--data goroot]

It ends with 1 if the bits per byte differ by more than half a per cent. All flags:

`

// mostApart is by how much the bits per byte may differ, relative to PyTorch's.
const mostApart = 0.005

// settings is what was typed.
type settings struct {
	plan
	data, keep string
	python     interpreter
	threads    int
	every      int
	json       bool
}

// parse reads flags. What there is to type goes to help if that is asked for, or if it was typed otherwise.
func parse(args []string, help io.Writer) (s settings, err error) {
	f := flag.NewFlagSet("torch", flag.ContinueOnError)
	f.SetOutput(help)
	f.Usage = func() { fmt.Fprint(help, usage); f.PrintDefaults() }
	model := f.String("model", "tiny", "tiny, small or base")
	tokens := f.String("tokens", "2e6", "tokens to train on")
	f.IntVar(&s.batch, "batch", 16, "rows of a step")
	f.Float64Var(&s.rate, "lr", 2e-3, "highest learning rate")
	f.Uint64Var(&s.seed, "seed", 1, "of parameters and batches")
	f.IntVar(&s.threads, "threads", 1, "threads of either")
	f.StringVar(&s.data, "data", corpus.GoCode, "a file, a folder, or goroot for Go's own code")
	f.StringVar((*string)(&s.python), "python", "/usr/bin/python3", "the Python that has PyTorch")
	f.StringVar(&s.keep, "keep", "", "where to leave the file that both read (default: nowhere)")
	f.IntVar(&s.every, "every", 50, "steps for each line of mean losses")
	f.BoolVar(&s.json, "json", false, "answer with one JSON object")
	if err := f.Parse(args); err != nil {
		return s, err
	}
	n, err := strconv.ParseFloat(*tokens, 64)
	if err != nil || !(n >= 1 && n <= maxTokens) {
		return s, fmt.Errorf("--tokens is %s: use 1 to %d", *tokens, maxTokens)
	}
	s.tokens = int(n)
	var known bool
	s.model, known = llama.Named(*model)
	switch {
	case !known:
		return s, fmt.Errorf("--model is %q: use tiny, small or base", *model)
	case s.threads < 1:
		return s, fmt.Errorf("--threads is %d: use 1 or more", s.threads)
	case s.every < 1:
		return s, fmt.Errorf("--every is %d: use 1 or more", s.every)
	case f.NArg() > 0:
		return s, fmt.Errorf("%q is no flag", f.Arg(0))
	}
	return s, s.validate()
}

// Main does what was typed: it compares. The answer goes to out, what there is to say meanwhile to notes.
func Main(ctx context.Context, args []string, out, notes io.Writer) error {
	s, err := parse(args, notes)
	if err != nil {
		return err
	}
	version, err := s.python.version(ctx)
	if err != nil {
		return err
	}
	text, err := corpus.Open(s.data)
	if err != nil {
		return err
	}
	drawn, err := newExchange(s.plan, text)
	if err != nil {
		return err
	}
	file, remove, err := s.place()
	if err != nil {
		return err
	}
	defer remove()
	e, err := handOver(drawn, file)
	if err != nil {
		return err
	}
	fmt.Fprintf(notes, "%d steps of %d x %d tokens of %s, %d threads; PyTorch %s\n", len(e.rates), e.Batch, e.Model.Context, text.Name(), s.threads, version)
	answer, err := s.compare(ctx, e, file, notes)
	if err != nil {
		return err
	}
	answer.Torch, answer.Data = version, text.SHA256()
	return answer.print(out, s.json)
}

// place is where the file of the exchange goes, and a function to call when all is done.
func (s settings) place() (file string, remove func(), err error) {
	if s.keep != "" {
		return s.keep, func() {}, nil
	}
	dir, err := os.MkdirTemp("", "atoll-torch-")
	if err != nil {
		return "", nil, err
	}
	return filepath.Join(dir, "exchange.safetensors"), func() { os.RemoveAll(dir) }, nil
}

// handOver writes an exchange and reads it again: atoll trains from what PyTorch is given.
func handOver(drawn *exchange, file string) (*exchange, error) {
	encoded, err := drawn.encode()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, encoded, 0o644); err != nil {
		return nil, err
	}
	if encoded, err = os.ReadFile(file); err != nil {
		return nil, err
	}
	e, err := decodeExchange(encoded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return e, nil
}

// compare trains with one after the other, so that neither is in the other's way.
func (s settings) compare(ctx context.Context, e *exchange, file string, notes io.Writer) (answer, error) {
	a := answer{Params: e.Model.Params(), Tokens: len(e.rates) * e.Batch * e.Model.Context, Threads: s.threads, Held: len(e.heldOut)}
	ours, theirs := make([]float64, len(e.rates)), make([]float64, len(e.rates))
	var err error
	fmt.Fprintf(notes, "%8s %10s\n", "STEP", "ATOLL")
	start := time.Now()
	a.Ours, err = train(ctx, e, s.threads, func(step int, loss float64) {
		ours[step] = loss
		if from := s.lineAt(step, len(ours)); from >= 0 {
			fmt.Fprintf(notes, "%8d %10.5f\n", step+1, mean(ours[from:step+1]))
		}
	})
	if err != nil {
		return a, err
	}
	a.OurSeconds = time.Since(start).Seconds()
	fmt.Fprintf(notes, "%8s %10s %10s %9s\n", "STEP", "ATOLL", "PYTORCH", "APART")
	start = time.Now()
	a.Theirs, err = s.python.train(ctx, file, s.threads, len(theirs), func(step int, loss float64) {
		theirs[step] = loss
		if from := s.lineAt(step, len(theirs)); from >= 0 {
			x, y := mean(ours[from:step+1]), mean(theirs[from:step+1])
			fmt.Fprintf(notes, "%8d %10.5f %10.5f %8.3f%%\n", step+1, x, y, 100*apart(x, y))
		}
	})
	if err != nil {
		return a, err
	}
	a.TheirSeconds = time.Since(start).Seconds()
	a.Apart = apart(a.Ours, a.Theirs)
	for i := range ours {
		a.LossApart = max(a.LossApart, math.Abs(apart(ours[i], theirs[i])))
	}
	return a, nil
}

// lineAt returns the first of the steps that a line after this step shows, or -1 where there is none.
func (s settings) lineAt(step, steps int) int {
	if (step+1)%s.every == 0 || step == steps-1 {
		return step / s.every * s.every
	}
	return -1
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// apart is by how much x is above y, relative to y.
func apart(x, y float64) float64 { return (x - y) / y }

// answer is how the two trainings ended.
type answer struct {
	Params       int     `json:"params"`
	Tokens       int     `json:"tokens"`
	Threads      int     `json:"threads"`
	Data         string  `json:"data_sha256"`
	Held         int     `json:"held_out_bytes"`
	Torch        string  `json:"torch_version"`
	Ours         float64 `json:"val_bpb"`
	Theirs       float64 `json:"torch_val_bpb"`
	Apart        float64 `json:"apart"`           // (ours - theirs) / theirs
	LossApart    float64 `json:"loss_apart_most"` // the same of a step's loss, the largest without its sign
	OurSeconds   float64 `json:"seconds"`         // scoring included
	TheirSeconds float64 `json:"torch_seconds"`   // likewise, with the start of Python
}

// print shows the answer, and returns an error if the two do not agree.
func (a answer) print(out io.Writer, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(out).Encode(a)
	} else {
		_, err = fmt.Fprintf(out, "after %d tokens, bits per byte of %d held-out bytes: atoll %.5f, PyTorch %.5f, apart %+.4f %%\n"+
			"losses of a step: at most %.4f %% apart; seconds: %.1f and %.1f\n",
			a.Tokens, a.Held, a.Ours, a.Theirs, 100*a.Apart, 100*a.LossApart, a.OurSeconds, a.TheirSeconds)
	}
	if err == nil && !(math.Abs(a.Apart) <= mostApart) {
		err = fmt.Errorf("the bits per byte are %+.4f %% apart; at most %v %% are allowed", 100*a.Apart, 100*mostApart)
	}
	return err
}
