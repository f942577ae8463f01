package testnet

import (
	"fmt"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
	"atoll/testnet/baseline"
)

// Genesis returns the genesis of a world on this machine, created now, for
// learners that train on data.
func Genesis(c Config, data *corpus.Corpus, now time.Time) (genesis.Genesis, error) {
	return genesisOf(c, plainText{data}, now)
}

func genesisOf(c Config, d data, now time.Time) (genesis.Genesis, error) {
	g, err := settings(c, now)
	if err != nil {
		return g, err
	}
	if err := d.describe(&g); err != nil {
		return g, err
	}
	return g, g.Validate()
}

// settings is a genesis without the data. The error names the flag that does
// not suit the model.
func settings(c Config, now time.Time) (genesis.Genesis, error) {
	g, err := genesis.Default(c.Model, c.Tokens, c.Seed, now.UnixMilli())
	if err != nil {
		return g, err
	}
	if err := g.SetProfile(p2p.Local); err != nil {
		return g, err
	}
	if most := int(g.Outer.MaxTokensPerStep) / g.Model.Context; c.Batch > most {
		return g, fmt.Errorf("--batch is %d: use at most %d with this model", c.Batch, most)
	}
	if most := len(g.Model.Specs()); c.Fragments > most {
		return g, fmt.Errorf("--fragments is %d: the model has only %d tensors", c.Fragments, most)
	}
	g.Batch = orDefault(c.Batch, g.Batch)
	if err := setOuter(&g.Outer, c); err != nil {
		return g, err
	}
	g.CutRows()
	if c.Fragments == 0 {
		g.SplitToFit()
	}
	if err := g.SetOptimizer(c.Optimizer); err != nil {
		return g, fmt.Errorf("--optimizer: %w", err)
	}
	g.SetRate(c.Baseline == Atoll || c.Baseline == baseline.DiLoCo)
	g.Inner.LR = orDefault(c.LR, g.Inner.LR)
	return g, g.Validate()
}

// setOuter sets the outer step. Of the baselines diloco has one, a mean in f32 whatever codec
// and merge atoll would have, with the rate and momentum that go with a mean.
func setOuter(o *outer.Params, c Config) (err error) {
	o.Fragments = orDefault(c.Fragments, o.Fragments)
	kind := o.Codec
	if c.Codec != "" {
		if kind, err = codec.Parse(c.Codec); err != nil {
			return fmt.Errorf("--codec: %w", err)
		}
	}
	if c.Baseline == Atoll {
		o.Codec = kind
	}
	o.SetH(c.H)
	merge := c.Merge
	if c.Baseline != Atoll {
		merge = outer.MergeMean
	}
	if merge != "" {
		o.SetMerge(merge)
	}
	if c.Baseline == Atoll {
		o.SetLearners(c.Nodes)
	}
	if c.Eta != nil || c.Mu != nil {
		o.Eta, o.Mu = valueOr(c.Eta, 1), valueOr(c.Mu, 0)
	}
	if c.Window > 0 {
		o.WindowUnion = uint32(c.Window)
		o.WindowAccept = min(o.WindowAccept, o.WindowUnion)
	}
	return nil
}

// valueOr is *p, or v where there is none.
func valueOr(p *float64, v float64) float64 {
	if p != nil {
		return *p
	}
	return v
}
