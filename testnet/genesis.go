package testnet

import (
	"time"

	"atoll/gossip/p2p"
	"atoll/node"
	"atoll/optimizer/trainer/corpus"
)

// Genesis returns the genesis of a world on this machine, created now, for
// learners that train on data.
func Genesis(c Config, data *corpus.Corpus, now time.Time) (node.Genesis, error) {
	g, err := node.DefaultGenesis(c.Model, c.Tokens, c.Seed, now.UnixMilli())
	if err != nil {
		return g, err
	}
	if err := g.SetProfile(p2p.Local); err != nil {
		return g, err
	}
	g.Data = node.Data{Name: data.Name(), SHA256: data.SHA256()}
	g.Batch = orDefault(c.Batch, g.Batch)
	g.Inner.LR = orDefault(c.LR, g.Inner.LR)
	o := &g.Outer
	o.Fragments = orDefault(c.Fragments, o.Fragments)
	o.H, o.HMin = c.H, max(1, c.H/4)
	if err := g.Validate(); err != nil {
		return g, err
	}
	return g, data.Fits(g.Model.Context)
}
