package core

// Sizes calls each with how much is held of what others may cause, here and in both
// cores, and the constant that bounds it.
func (m *Machine) Sizes(each func(what string, count, most int)) {
	m.gossip.Sizes(each)
	m.rounds.Sizes(each)
	largest := 0
	for _, kept := range m.equivocation {
		largest = max(largest, len(kept))
	}
	each("rounds with equivocation proofs", len(m.equivocation), maxEquivocationRounds)
	each("headers of equivocation proofs for one round", largest, maxEquivocation)
}
