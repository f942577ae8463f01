package baseline

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/node/store"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/shaping"
)

// toy is a genesis whose steps take a millisecond.
func toy(t *testing.T, tokens uint64) genesis.Genesis {
	t.Helper()
	g, err := genesis.Default("tiny", tokens, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	g.Model = llama.Config{Vocab: 256, Hidden: 16, Layers: 2, Heads: 2, KVHeads: 1, Intermediate: 24, Context: 16, RopeTheta: 1e4, NormEps: 1e-5, Tied: true}
	g.Outer.Fragments, g.Outer.H = 2, 4
	g.WayMs = 1
	if err := g.Validate(); err != nil {
		t.Fatal(err)
	}
	return g
}

// fox is a text to learn.
var fox = strings.Repeat("the quick brown fox jumps over the lazy dog. ", 200)

// newTrainerOf is the trainer of the learner with a number.
func newTrainerOf(t *testing.T, g genesis.Genesis, n byte) *trainer.Builtin {
	t.Helper()
	b, err := trainer.New(trainer.Config{Model: g.Model, Batch: g.Batch, Seed: g.Seed, Author: idOf(n), Threads: 1, Optim: g.Inner.Optim()}, corpus.New("fox", []byte(fox)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func commonOf(t *testing.T, g genesis.Genesis, n byte) common {
	t.Helper()
	s, err := store.Open(t.TempDir(), g.RunID())
	if err != nil {
		t.Fatal(err)
	}
	log, err := s.OpenStepLog()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(log.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	a := &account{began: time.Now()}
	a.joined()
	c, err := newCommon(g, newTrainerOf(t, g, n), new(atomic.Int64), a, log)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// roundOf has learners make a round together, through rings.
func roundOf(t *testing.T, from Label, learners ...Learner) Label {
	t.Helper()
	n := len(learners)
	var vectors [][]float32
	for _, l := range learners {
		last := len(l.Vector()) + 1
		err := l.Round(context.Background(), from, n, func(lo int) {
			if lo >= last {
				t.Errorf("told %d after %d", lo, last)
			}
			last = lo
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != 0 {
			t.Errorf("the whole vector was never said to be final, but at %d and beyond", last)
		}
		vectors = append(vectors, l.Vector())
	}
	c := newCircle(n, []int{len(vectors[0])}, vectors)
	if err := c.run(func(int) int { return 0 }); err != nil {
		t.Fatal(err)
	}
	for _, l := range learners {
		if err := l.Apply(from, n); err != nil {
			t.Fatal(err)
		}
	}
	return Label{1, from.Round + 1, from.Tokens + learners[0].Tokens(from, n)}
}

// TestDPIsOneLearnerWithAllBatches: three members make the steps of one optimizer on the
// mean of their gradients, up to the rounding of what travels. They end with equal bits.
func TestDPIsOneLearnerWithAllBatches(t *testing.T) {
	g := toy(t, 1e4)
	var learners []Learner
	var plain []*trainer.Builtin
	for n := byte(1); n <= 3; n++ {
		learners = append(learners, &dp{commonOf(t, g, n)})
		plain = append(plain, newTrainerOf(t, g, n))
	}
	one := newTrainerOf(t, g, 9)
	at := Label{}
	for range 5 {
		rate := learners[0].(*dp).run.Rate(at.Tokens, 3, 0)
		if at = roundOf(t, at, learners...); at.Tokens != at.Round*3*64 {
			t.Fatalf("%+v", at)
		}
		if _, err := one.Gradient(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		clear(one.Grads())
		for _, p := range plain {
			copy(p.Params(), one.Params())
			if _, err := p.Gradient(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
			for i, x := range p.Grads() {
				one.Grads()[i] += x / 3
			}
			if err := p.Update(rate); err != nil { // so that its next batch is the next one
				t.Fatal(err)
			}
		}
		if err := one.Update(rate); err != nil {
			t.Fatal(err)
		}
	}
	first := learners[0].(*dp).builtin.Params()
	for _, l := range learners[1:] {
		if !slices.Equal(l.(*dp).builtin.Params(), first) {
			t.Error("two members hold other bits")
		}
	}
	var far, moved float64
	start := newTrainerOf(t, g, 9).Params()
	for i, x := range one.Params() {
		far += math.Pow(float64(x-first[i]), 2)
		moved += math.Pow(float64(x-start[i]), 2)
	}
	if r := math.Sqrt(far / moved); r > 0.05 { // bfloat16, and the sign of gradients near zero in Adam's first steps
		t.Errorf("off by %.3f of the way that the parameters went", r)
	}
}

// TestDiLoCoAloneIsTheInnerOptimizer: with eta 1 and without momentum, the global
// parameters of a lone member are where its inner steps lead.
func TestDiLoCoAloneIsTheInnerOptimizer(t *testing.T) {
	g := toy(t, 1e5)
	d, plain := newDiLoCo(commonOf(t, g, 1), g), newTrainerOf(t, g, 1)
	at := Label{}
	for range 3 {
		before := at.Tokens
		at = roundOf(t, at, d)
		for i := range uint64(g.Outer.H) {
			if _, err := plain.Step(context.Background(), d.run.Rate(before, 1, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, x := range plain.Params() {
		if diff := math.Abs(float64(x - d.outer.Global[i])); diff > 1e-5 {
			t.Fatalf("parameter %d is %v, without rounds %v", i, d.outer.Global[i], x)
		}
	}
	if !slices.Equal(d.outer.Global, d.builtin.Params()) {
		t.Error("after a round, the local parameters are not the global ones")
	}
}

// TestNesterov compares outer steps with the formula, written out.
func TestNesterov(t *testing.T) {
	g := toy(t, 1e5)
	g.Outer.H = 24
	d := newDiLoCo(commonOf(t, g, 1), g)
	a, m := float64(d.outer.Global[5]), 0.0
	for _, u := range []float32{0.5, -0.25, 1} {
		d.progress[5] = 2 * u // the sum of two members
		if err := d.Apply(Label{}, 2); err != nil {
			t.Fatal(err)
		}
		m = 0.6*m + float64(u)
		a += 0.8 * (float64(u) + 0.6*m)
		if math.Abs(float64(d.outer.Global[5])-a) > 1e-6 || math.Abs(float64(d.outer.Momentum[5])-m) > 1e-6 {
			t.Fatalf("global parameters %v, momentum %v; want %v, %v", d.outer.Global[5], d.outer.Momentum[5], a, m)
		}
	}
	d.progress[5] = float32(math.NaN())
	if err := d.Apply(Label{}, 2); !errors.Is(err, trainer.ErrDiverged) {
		t.Errorf("NaN: %v", err)
	}
}

// TestStateGoesToAnotherMember: a member that takes a state makes the same next step as its
// source on the same batch.
func TestStateGoesToAnotherMember(t *testing.T) {
	g := toy(t, 1e5)
	for name, make := range map[string]func(n byte) Learner{
		DP:     func(n byte) Learner { return &dp{commonOf(t, g, n)} },
		DiLoCo: func(n byte) Learner { return newDiLoCo(commonOf(t, g, n), g) },
	} {
		source, taker := make(1), make(1)
		at := roundOf(t, roundOf(t, Label{}, source), source)
		b, err := source.State()
		if err != nil || len(b) > source.StateLimit() {
			t.Fatalf("%s: %d bytes of %d, %v", name, len(b), source.StateLimit(), err)
		}
		before, _ := taker.State()
		for _, bad := range [][]byte{nil, b[:len(b)-4], append(slices.Clone(b), 0, 0, 0, 0)} {
			if err := taker.SetState(bad); err == nil {
				t.Errorf("%s: a state of %d bytes was taken", name, len(bad))
			}
		}
		if after, _ := taker.State(); !slices.Equal(before, after) {
			t.Errorf("%s: a refused state changed something", name)
		}
		if err := taker.SetState(b); err != nil {
			t.Fatal(err)
		}
		roundOf(t, at, source)
		roundOf(t, at, taker)
		x, _ := source.State()
		if y, _ := taker.State(); !slices.Equal(x, y) {
			t.Errorf("%s: the taker's next round leads elsewhere", name)
		}
	}
}

// TestBuckets: whole tensors, all of them, from the end on, and not too small.
func TestBuckets(t *testing.T) {
	for _, c := range []llama.Config{llama.Tiny, llama.Small} {
		views := llama.NewParams(c).Views
		ends := buckets(views)
		if len(ends) < 2 || ends[len(ends)-1] != c.Params() {
			t.Fatalf("%d parameters in buckets that end at %v", c.Params(), ends)
		}
		begin := 0
		for i, end := range ends {
			if !slices.ContainsFunc(views, func(v tensor.View) bool { return v.Offset+v.Len == end }) {
				t.Errorf("bucket %d ends within a tensor, at %d", i, end)
			}
			if i > 0 && end-begin < bucketValues {
				t.Errorf("bucket %d has %d values", i, end-begin)
			}
			begin = end
		}
	}
}

// TestRunInOneProcess runs a coordinator and three members over real connections, kills
// nobody, and compares the models that they leave.
func TestRunInOneProcess(t *testing.T) {
	link := &shaping.Link{Delay: time.Millisecond}
	for _, kind := range []string{DP, DiLoCo} {
		g := toy(t, 20_000)
		text := filepath.Join(t.TempDir(), "fox.txt")
		if err := os.WriteFile(text, []byte(fox), 0o600); err != nil {
			t.Fatal(err)
		}
		coordinator, err := NewCoordinator(g.RunID(), DefaultRules(3, g.Outer.Budget), link, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		dirs, ended := []string{t.TempDir(), t.TempDir(), t.TempDir()}, make(chan error)
		for _, dir := range dirs {
			go func() {
				ended <- Run(context.Background(), Config{
					Kind: kind, Genesis: g.Encode(), Dir: dir, Coordinator: coordinator.Addr(), Data: text, Threads: 1, Overlap: true, Link: link,
				})
			}()
		}
		for range dirs {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		compareModels(t, g, dirs)
		history := coordinator.History()
		if len(history) != 1 || history[0].Last.Tokens < g.Outer.Budget || coordinator.Views() != 1 {
			t.Errorf("%s: history %+v", kind, history)
		}
		for _, dir := range dirs {
			sum, err := store.SumSteps(dir)
			if want := history[0].Last.Tokens / 3; err != nil || sum.Tokens != want {
				t.Errorf("%s: %d tokens in the step log of a member, %d in the model, %v", kind, sum.Tokens, want, err)
			}
		}
		if s := coordinator.host.Stats(); s.Sent == 0 || s.Received == 0 {
			t.Errorf("%s: the coordinator sent %d bytes, received %d", kind, s.Sent, s.Received)
		}
		if err := coordinator.Close(); err != nil {
			t.Error(err)
		}
	}
}

func compareModels(t *testing.T, g genesis.Genesis, dirs []string) {
	t.Helper()
	first := llama.NewParams(g.Model)
	for i, dir := range dirs {
		slab := llama.NewParams(g.Model)
		if err := ReadModel(dir, slab); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = slab
		} else if !slices.Equal(slab.Data, first.Data) {
			t.Errorf("members 0 and %d left other models", i)
		}
	}
	if bits, err := trainer.BitsPerByte(context.Background(), g.Model, first, corpus.Windows([]byte(fox)[:500], g.Model.Context)); err != nil || bits > 7 {
		t.Errorf("%v bits per byte after training, %v: it has learnt nothing", bits, err)
	}
}

func TestConfigErrors(t *testing.T) {
	good := Config{Kind: DP, Dir: "x", Coordinator: "/ip4/127.0.0.1/tcp/1/p2p/12D3KooWEZXjE41uU4EL2gpkAQeDXYok6wghN7wwNVPF5bwkaNfS"}
	if err := good.validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"kind":        func(c *Config) { c.Kind = "atoll" },
		"folder":      func(c *Config) { c.Dir = "" },
		"threads":     func(c *Config) { c.Threads = -1 },
		"pace":        func(c *Config) { c.Pace = -1 },
		"coordinator": func(c *Config) { c.Coordinator = "/ip4/127.0.0.1/tcp/1" },
	} {
		c := good
		change(&c)
		if err := c.validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q in it", err, want)
		}
	}
	if err := Run(context.Background(), good); err == nil {
		t.Error("an empty genesis was taken")
	}
}
