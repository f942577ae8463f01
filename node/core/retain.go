package core

// Droppable is the last round of a fragment whose payloads no refold, repair or joiner
// needs any more: it is final, and a kept base has it folded.
func (m *Machine) Droppable(fragment int) uint32 {
	closed := m.rounds.Fragment(fragment).Closed()
	return min(m.rounds.Fragment(fragment).Base(), closed-min(closed, m.cfg.Params.WindowUnion))
}
