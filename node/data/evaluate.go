package data

import (
	"context"
	"math"
	"slices"
	"sync"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/optimizer/trainer/external"
)

// sample is of the held-out part; empty until an evaluation has read it.
type sample struct {
	mu sync.Mutex
	shards.Sample
}

// HeldOutHere reports whether all held-out shards are here.
func (c *Corpus) HeldOutHere() bool {
	return !slices.ContainsFunc(c.dir.Manifest.HeldOut, func(s shards.Shard) bool { return !c.content.Has(wire.Digest(s.Digest)) })
}

// readSample reads what evaluations measure, once. It keeps its own windows alone: the held-out part may be large.
func (c *Corpus) readSample(ctx context.Context, text int) (shards.Sample, error) {
	c.sample.mu.Lock()
	defer c.sample.mu.Unlock()
	if len(c.sample.Windows) > 0 {
		return c.sample.Sample, nil
	}
	sample, err := c.dir.Manifest.Sample(ctx, c.fetch, c.tokenizer, int64(text), c.cfg.Genesis.Model.Context)
	if err != nil {
		return sample, err
	}
	for i, w := range sample.Windows {
		sample.Windows[i] = slices.Clone(w)
	}
	c.sample.Sample = sample
	return sample, nil
}

// Evaluate measures global parameters on a sample of so many bytes.
func (c *Corpus) Evaluate(ctx context.Context, tips []*outer.Tip, text int) (external.Evaluation, error) {
	sample, err := c.readSample(ctx, text)
	if err != nil {
		return external.Evaluation{}, err
	}
	g := c.cfg.Genesis
	bits, err := trainer.BitsPerByteOf(ctx, g.Model, g.Global(tips), sample.Windows, sample.Bytes)
	targets := 0
	for _, w := range sample.Windows {
		targets += len(w) - 1
	}
	return external.Evaluation{Loss: bits * math.Ln2 * float64(sample.Bytes) / float64(targets), Tokens: targets, Bytes: int(sample.Bytes)}, err
}
