package inspect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// Bench is what this machine does for a run of a model.
type Bench struct {
	Model      string           `json:"model"`
	Params     int              `json:"params"`
	Threads    int              `json:"threads"`
	Kernel     string           `json:"kernel"`
	Precision  tensor.Precision `json:"precision"` // the faster one, as nodes choose it
	Optimizer  string           `json:"optimizer"`
	TokensPerS float64          `json:"tokens_per_s"`

	Codec      string  `json:"codec"`
	EncodePerS float64 `json:"encode_params_per_s"` // on one core
	Deltas     int     `json:"deltas"`              // of a fold
	FoldPerS   float64 `json:"fold_params_per_s"`   // of all its deltas together

	MsPerWrite float64 `json:"ms_per_synced_write"` // of a page
	MBPerS     float64 `json:"mb_per_s"`            // a long file, synced at its end
}

const (
	benchLearners = 8    // of the run, so that a fold has as many deltas
	benchProgress = 0.01 // deviation of a delta's values beside that of parameters

	// leastTimes is from how many measurements a median comes.
	leastTimes = 3

	pageBytes = 4 << 10
	// longBytes are about a tip of a model of millions of parameters.
	longBytes = 16 << 20
)

// Measure measures steps with so many threads, 0 for one per core, deltas, folds, and the disk under a folder, each for so
// long. Figures are medians.
func Measure(ctx context.Context, model, dir string, threads int, each time.Duration) (Bench, error) {
	sizes, err := genesis.ModelConfig(model)
	if err != nil {
		return Bench{}, err
	}
	g, _, err := genesis.Spec{Model: sizes, Tokens: 1 << 40, Learners: benchLearners}.Make()
	if err != nil {
		return Bench{}, err
	}
	b := Bench{Model: model, Params: g.Params(), Optimizer: g.Inner.Optimizer, Codec: g.Outer.Codec.String(), Deltas: benchLearners}
	t := timer{ctx, each}
	return b, errors.Join(b.steps(t, g, threads), b.folds(t, g), b.disk(t, dir))
}

// timer times things, each for so long at least.
type timer struct {
	ctx  context.Context
	each time.Duration
}

// seconds is the median of what op takes.
func (t timer) seconds(op func() error) (float64, error) {
	var took []float64
	for began := time.Now(); len(took) < leastTimes || time.Since(began) < t.each; {
		start := time.Now()
		if err := errors.Join(t.ctx.Err(), op()); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start).Seconds())
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

// steps measures training as a node does that starts.
func (b *Bench) steps(t timer, g genesis.Genesis, threads int) error {
	among, _, err := trainer.Precisions(trainer.AutoPrecision)
	if err != nil {
		return err
	}
	cfg := g.TrainerConfig(g.Batch)
	cfg.Threads = threads
	speed, precision, err := trainer.MeasureBest(t.ctx, cfg, among, leastTimes, t.each, time.Now)
	b.Threads, b.Kernel, b.Precision, b.TokensPerS = tensor.Threads(), tensor.KernelOf(precision), precision, speed.TokensPerSecond
	return err
}

// folds measures the encoding of a delta of the first fragment, and the fold of a round of them.
func (b *Bench) folds(t timer, g genesis.Genesis) error {
	rng := rand.New(rand.NewPCG(1, 1))
	plan, params := g.Plan(), g.OuterParams()
	n := plan[0].Len
	values, payload := normal(rng, n, benchProgress), []byte(nil)
	took, err := t.seconds(func() (err error) {
		payload, err = codec.Encode(g.Outer.Codec, values)
		return err
	})
	if err != nil {
		return fmt.Errorf("encode a delta: %w", err)
	}
	b.EncodePerS = float64(n) / took
	var set []outer.Contribution
	for i := range b.Deltas {
		author := outer.Author{byte(i + 1)}
		set = append(set, outer.Contribution{Payload: payload, Delta: outer.Delta{
			ID: outer.ID(wire.Sum(author[:])), Author: author, Round: 1, Steps: uint32(g.Outer.H), Tokens: uint64(g.Outer.H) * g.StepTokens(),
			Codec: g.Outer.Codec, Size: len(payload),
		}})
	}
	tip := outer.Genesis(plan[0], normal(rng, n, 1), params)
	took, err = t.seconds(func() error {
		_, result, err := outer.Fold(params, plan[0], tip, 1, set)
		if err == nil && len(result.Refused) > 0 {
			err = result.Refused[0].Err
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("fold a round: %w", err)
	}
	b.FoldPerS = float64(n*b.Deltas) / took
	return nil
}

// normal returns n normal values of a deviation.
func normal(rng *rand.Rand, n int, deviation float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(deviation * rng.NormFloat64())
	}
	return v
}

// disk writes into a new folder, which it removes.
func (b *Bench) disk(t timer, dir string) (err error) {
	own, err := os.MkdirTemp(dir, "atoll-bench-")
	if err != nil {
		return fmt.Errorf("disk: %w: choose another folder", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	f, err := os.Create(filepath.Join(own, "file"))
	if err != nil {
		return err
	}
	write := func(size int) (float64, error) {
		data := bytes.Repeat([]byte{0xa5}, size)
		return t.seconds(func() error {
			_, err := f.WriteAt(data, 0)
			return errors.Join(err, f.Sync())
		})
	}
	page, err := write(pageBytes)
	long, errLong := write(longBytes)
	if err = errors.Join(err, errLong, f.Close()); err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	b.MsPerWrite, b.MBPerS = 1000*page, longBytes/1e6/long
	return nil
}
