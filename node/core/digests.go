package core

import "atoll/gossip/wire"

// Digests are one digest each over the chain and the state digests of all
// fragments at their newest tips.
func (m *Machine) Digests() (chain, state wire.Digest) {
	var c, s []byte
	for p := range m.rounds.Fragments() {
		tip := m.rounds.Tip(p)
		c = append(c, tip.Chain[:]...)
		s = append(s, tip.State[:]...)
	}
	return wire.Sum(c), wire.Sum(s)
}
