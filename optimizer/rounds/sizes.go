package rounds

// Sizes calls each with the most deltas that a round has, as R-13 counts them, and the
// constant that bounds them. A learner's own finds room in a full round.
func (m *Machine) Sizes(each func(what string, count, most int)) {
	largest := 0
	for _, f := range m.frags {
		for _, r := range f.rounds {
			largest = max(largest, r.size())
		}
	}
	each("deltas of one round", largest, maxEntries+1)
}
