package testnet

import (
	"fmt"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/genesis"
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
	text, err := d.describe(c)
	if err != nil {
		return genesis.Genesis{}, err
	}
	return settings(c, text, now)
}

// settings is the genesis of a world that trains on a text. The error names the flag that does not suit the model.
func settings(c Config, text genesis.Text, now time.Time) (g genesis.Genesis, err error) {
	s := genesis.Spec{
		Name: genesis.ModelLabel(c.Model), Text: text, Seed: c.Seed, CreatedMs: now.UnixMilli(), Tokens: c.Tokens, Profile: p2p.Local,
		Batch: c.Batch, Optimizer: c.Optimizer, LR: c.LR, H: c.H, Fragments: c.Fragments, Learners: c.Nodes, Window: uint32(c.Window),
	}
	if s.Model, err = genesis.ModelConfig(c.Model); err != nil {
		return g, err
	}
	if most := len(s.Model.Specs()); c.Fragments > most {
		return g, fmt.Errorf("--fragments is %d: the model has only %d tensors", c.Fragments, most)
	}
	if c.Batch > genesis.MaxBatch {
		return g, fmt.Errorf("--batch is %d: use at most %d", c.Batch, genesis.MaxBatch)
	}
	if err := genesis.CheckOptimizer(c.Optimizer); err != nil {
		return g, fmt.Errorf("--optimizer: %w", err)
	}
	if c.Codec != "" {
		if s.Codec, err = codec.Parse(c.Codec); err != nil {
			return g, fmt.Errorf("--codec: %w", err)
		}
	}
	if c.Baseline != Atoll { // of these diloco has outer steps: a mean in f32, whatever atoll would have, of all at once
		s.Codec, s.Learners = codec.Int4, 1
	}
	if c.LR == 0 && c.Baseline != Atoll && c.Baseline != baseline.DiLoCo {
		if g, err = s.Trained(); err != nil {
			return g, err
		}
		s.LR = genesis.RateWith(g, false)
	}
	g, _, err = s.Make()
	return g, err
}
