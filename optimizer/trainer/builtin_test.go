package trainer

import (
	"bytes"
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// mini is a model that trains in milliseconds.
var mini = llama.Config{Vocab: 256, Hidden: 16, Layers: 1, Heads: 2, KVHeads: 1, Intermediate: 32, Context: 16, RopeTheta: 10000, NormEps: 1e-5, Tied: true}

func miniConfig() Config {
	return Config{Model: mini, Batch: 4, Optim: DefaultOptim(), Seed: 1, Threads: 1}
}

// alphabet is a text whose next letter follows from the last one: its unigram
// entropy is 3 bits, 2.08 nats, a byte.
func alphabet() *corpus.Corpus {
	return corpus.New("alphabet", []byte(strings.Repeat("abcdefgh", 100)))
}

// muonConfig is miniConfig with the other optimizer.
func muonConfig() Config {
	cfg := miniConfig()
	cfg.Optim.Name, cfg.Optim.Momentum = optimizer.NameMuon, DefaultMomentum
	return cfg
}

// eachOptimizer runs a test with either.
func eachOptimizer(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, cfg := range []Config{miniConfig(), muonConfig()} {
		t.Run(cfg.Optim.Name, func(t *testing.T) { test(t, cfg) })
	}
}

func newTrainer(t *testing.T, cfg Config) *Builtin {
	t.Helper()
	b, err := New(cfg, alphabet())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// steps takes n steps and returns the last loss.
func steps(t *testing.T, tr Trainer, n int) float64 {
	t.Helper()
	var last StepResult
	for range n {
		var err error
		if last, err = tr.Step(context.Background(), 0.02); err != nil {
			t.Fatal(err)
		}
	}
	return last.Loss
}

func TestLearnsTheAlphabet(t *testing.T) {
	b := newTrainer(t, miniConfig())
	if first := steps(t, b, 1); math.Abs(first-math.Log(256)) > 0.1 {
		t.Errorf("first loss is %v, want about that of a guess among 256", first)
	}
	if last := steps(t, b, 99); last > 0.2 {
		t.Errorf("loss is %v nats after 100 steps, want far below 2.08", last)
	}
	if b.Steps() != 100 {
		t.Errorf("%d steps, want 100", b.Steps())
	}
	bits, err := BitsPerByte(context.Background(), mini, b.Slab(), corpus.Windows(alphabet().HeldOut(), mini.Context))
	if err != nil || bits > 0.4 {
		t.Errorf("%v bits per byte held out, %v; want far below 3", bits, err)
	}
}

func TestStepTokens(t *testing.T) {
	r, err := newTrainer(t, miniConfig()).Step(context.Background(), 0)
	if err != nil || r.Tokens != 4*16 {
		t.Errorf("%d tokens, %v; want batch x context = 64", r.Tokens, err)
	}
}

func TestSameConfigSameBits(t *testing.T) { eachOptimizer(t, sameConfigSameBits) }

func sameConfigSameBits(t *testing.T, cfg Config) {
	a, b := newTrainer(t, cfg), newTrainer(t, cfg)
	steps(t, a, 5)
	steps(t, b, 5)
	if !slices.Equal(a.Params(), b.Params()) {
		t.Error("two trainers of one config went different ways")
	}
	cfg.Author[0] = 1
	c := newTrainer(t, cfg)
	steps(t, c, 5)
	if slices.Equal(a.Params(), c.Params()) {
		t.Error("two learners drew the same batches")
	}
}

// A trainer that was tuned steps as one that was made so.
func TestTune(t *testing.T) { eachOptimizer(t, tunes) }

func tunes(t *testing.T, cfg Config) {
	want := cfg
	want.Batch, want.MicroBatch, want.Precision = 6, 3, tensor.BF16
	made := newTrainer(t, want)
	tuned, err := New(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	slab := tuned.Params()
	if err := tuned.Tune(want, alphabet()); err != nil {
		t.Fatal(err)
	}
	steps(t, tuned, 3)
	steps(t, made, 3)
	if !slices.Equal(slab, made.Params()) {
		t.Error("the parameters after three steps differ")
	}
	if err := tuned.Tune(cfg, alphabet()); err == nil {
		t.Error("a trainer was tuned after its first step")
	}
	bad := want
	if bad.Batch = 0; newTrainer(t, cfg).Tune(bad, alphabet()) == nil {
		t.Error("a trainer was tuned to a batch of no rows")
	}
	if newTrainer(t, cfg).Tune(want, corpus.New("short", []byte("a"))) == nil {
		t.Error("a trainer was tuned to a text without a window")
	}
}

// TestMicroBatches: gradients of parts add up to the gradient of the whole.
func TestMicroBatches(t *testing.T) {
	whole := newTrainer(t, miniConfig())
	cfg := miniConfig()
	cfg.MicroBatch = 1
	parts := newTrainer(t, cfg)
	lossWhole, err1 := whole.Gradient(context.Background(), nil)
	lossParts, err2 := parts.Gradient(context.Background(), nil)
	if err1 != nil || err2 != nil || math.Abs(lossWhole.Loss-lossParts.Loss) > 1e-6 {
		t.Errorf("losses %v and %v, %v, %v", lossWhole, lossParts, err1, err2)
	}
	for i, g := range whole.grads.Data {
		if d := math.Abs(float64(g - parts.grads.Data[i])); d > 1e-6 {
			t.Fatalf("gradient %d is %v in one pass, %v in four", i, g, parts.grads.Data[i])
		}
	}
}

func TestResumeIsSeamless(t *testing.T) { eachOptimizer(t, resumeIsSeamless) }

func resumeIsSeamless(t *testing.T, cfg Config) {
	a := newTrainer(t, cfg)
	steps(t, a, 3)
	saved := stateOf(t, a)
	b := newTrainer(t, cfg)
	copy(b.Params(), a.Params())
	if err := b.LoadState(bytes.NewReader(saved)); err != nil || b.Steps() != 3 {
		t.Fatalf("%d steps, %v", b.Steps(), err)
	}
	lossA, lossB := steps(t, a, 3), steps(t, b, 3)
	if lossA != lossB || !slices.Equal(a.Params(), b.Params()) {
		t.Errorf("losses %v and %v after resuming", lossA, lossB)
	}
}

// endsLater is a context that is cancelled once it was asked so often.
type endsLater struct {
	context.Context
	asks int
}

func (e *endsLater) Err() error {
	if e.asks--; e.asks < 0 {
		return context.Canceled
	}
	return nil
}

// A step that is cancelled in the middle of a pass ends there and changes nothing.
func TestStepIsCutBetweenLayers(t *testing.T) {
	b := newTrainer(t, miniConfig())
	before := slices.Clone(b.Params())
	for asks := range 3 { // before the layer, on the way back, at the end
		if _, err := b.Step(&endsLater{context.Background(), asks}, 0.1); !errors.Is(err, context.Canceled) {
			t.Errorf("cut after %d: error %v", asks, err)
		}
	}
	if b.Steps() != 0 || !slices.Equal(before, b.Params()) {
		t.Error("a step that was cut left a trace")
	}
	whole := newTrainer(t, miniConfig())
	if got, want := steps(t, b, 2), steps(t, whole, 2); got != want || !slices.Equal(b.Params(), whole.Params()) {
		t.Errorf("loss %v after steps that were cut, %v without", got, want)
	}
}

func TestCancelledStepChangesNothing(t *testing.T) {
	b := newTrainer(t, miniConfig())
	before := slices.Clone(b.Params())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Step(ctx, 0.1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if b.Steps() != 0 || !slices.Equal(before, b.Params()) {
		t.Error("a cancelled step left a trace")
	}
}

func TestDivergedStepChangesNothing(t *testing.T) { eachOptimizer(t, divergedStepChangesNothing) }

func divergedStepChangesNothing(t *testing.T, cfg Config) {
	b := newTrainer(t, cfg)
	b.Params()['a'*mini.Hidden] = float32(math.Inf(1)) // in the embedding of a letter that occurs
	before := slices.Clone(b.Params())
	_, err := b.Step(context.Background(), 0.1)
	if !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "step 1") {
		t.Errorf("error %v", err)
	}
	if b.Steps() != 0 || !slices.Equal(before, b.Params()) {
		t.Error("a diverged step left a trace")
	}
}

func TestMemoryBytesIsWhatNewAllocates(t *testing.T) { eachOptimizer(t, memoryBytesIsWhatNewAllocates) }

func memoryBytesIsWhatNewAllocates(t *testing.T, cfg Config) {
	data := alphabet()
	cfg.Model.Hidden, cfg.Model.Intermediate = 128, 256 // large beside the bookkeeping
	tensor.SetThreads(cfg.Threads)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := New(cfg, data); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	got, want := float64(after.TotalAlloc-before.TotalAlloc), float64(cfg.MemoryBytes())
	if got < want || got > 1.05*want {
		t.Errorf("allocated %v bytes, estimated %v", got, want)
	}
}

func TestNewErrors(t *testing.T) {
	for _, tc := range []struct {
		want   string
		change func(c *Config)
	}{
		{"Heads is 3", func(c *Config) { c.Model.Heads = 3 }},
		{"Vocab is 255", func(c *Config) { c.Model.Vocab = 255 }},
		{"model of 103113162752 parameters", func(c *Config) { c.Model.Hidden, c.Model.Intermediate = 1<<17, 1<<17 }},
		{"Batch is 0", func(c *Config) { c.Batch = 0 }},
		{"MicroBatch is 3", func(c *Config) { c.MicroBatch = 3 }},
		{"MicroBatch is -1", func(c *Config) { c.MicroBatch = -1 }},
		{"at most 1048576 tokens", func(c *Config) { c.Batch = MaxBatch }},
		{"Clip is NaN", func(c *Config) { c.Optim.Clip = math.NaN() }},
		{"Threads is -1", func(c *Config) { c.Threads = -1 }},
		{"Beta1 is 2", func(c *Config) { c.Optim.AdamW.Beta1 = 2 }},
		{`Optim.Name is "sgd": use "adamw" or "muon"`, func(c *Config) { c.Optim.Name = "sgd" }},
		{"Muon Momentum is 1", func(c *Config) { c.Optim.Name, c.Optim.Momentum = optimizer.NameMuon, 1 }},
		{"pass at least 810 bytes", func(c *Config) { c.Model.Context = 80 }},
	} {
		cfg := miniConfig()
		tc.change(&cfg)
		if _, err := New(cfg, alphabet()); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}
