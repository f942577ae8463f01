package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Digests are one digest each over the chain and the state digests of the tips of
// all fragments.
func Digests(tips []*outer.Tip) (chain, state wire.Digest) {
	var c, s []byte
	for _, tip := range tips {
		c = append(c, tip.Chain[:]...)
		s = append(s, tip.State[:]...)
	}
	return wire.Sum(c), wire.Sum(s)
}

// Digests are the Digests of the newest tips.
func (v View) Digests() (chain, state wire.Digest) {
	tips := make([]*outer.Tip, v.m.rounds.Fragments())
	for p := range tips {
		tips[p] = v.m.rounds.Fragment(p).Tip()
	}
	return Digests(tips)
}
