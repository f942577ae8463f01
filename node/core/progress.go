package core

// maxLead is the share of the budget by which what is made may exceed what is
// folded. It is several times what honest learners have under way in a run of any
// length. A liar can shift everybody's learning rate by as much.
const maxLead = 0.05

// Progress is the share of the budget that is folded or known to be made and not
// folded yet: what the learning rate follows. It is local knowledge, and the same
// everywhere within a heartbeat or two. By what is folded alone the rate would come a
// round late, a good part of a short run. The first H steps would have the rate of
// the start, and none the rate of the end.
//
// What others only claim counts for no more than what this node has seen of all.
// Otherwise one claim at the start would end the warm-up of everybody's rate.
func (v View) Progress(now Time) float64 {
	claimants := v.m.claimants(now)
	var seen, said, params float64
	for p, f := range v.m.cfg.Plan {
		known, claimed := v.m.made(now, p, true, claimants)
		seen += float64(f.Len) * float64(known)
		said += float64(f.Len) * float64(claimed)
		params += float64(f.Len)
	}
	made := (seen + min(said, seen)) / params
	folded, budget := float64(v.FoldedTokens()), float64(v.m.cfg.Params.Budget)
	return (folded + max(0, min(made-folded, maxLead*budget))) / budget
}
