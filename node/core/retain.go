package core

// Droppable is the last round of a fragment whose payloads no refold, repair or joiner
// needs any more: it is final, and a kept base has it folded.
func (v View) Droppable(fragment int) uint32 {
	closed := v.m.rounds.Fragment(fragment).Closed()
	return min(v.m.rounds.Fragment(fragment).Base(), closed-min(closed, v.m.cfg.Params.WindowUnion))
}
