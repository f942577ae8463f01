package core

// maxLead is the share of the budget by which what is made may count for more than
// what is folded: several times what honest learners have under way in a run of
// any length, and as much as a liar can shift everybody's learning rate.
const maxLead = 0.05

// Progress is the share of the budget that is folded or known to be made and not
// folded yet: what the learning rate follows. It is local knowledge, and the same
// everywhere within a beat or two. By what is folded alone the rate would come a
// round late, which over a short run is a good part of it: the first H steps would
// be taken at the rate of the start, and none at that of the end.
//
// What others only say that they made counts for no more than what this node has
// seen of all: one claim at the start would else end the warm-up of everybody's rate.
func (v View) Progress(now Time) float64 {
	claims := v.m.claims(now)
	var seen, said, params float64
	for p, f := range v.m.cfg.Plan {
		seen += float64(f.Len) * float64(v.m.rounds.Fragment(p).Projected(now)+v.m.rounds.Fragment(p).Promised())
		said += float64(f.Len) * float64(claims[p])
		params += float64(f.Len)
	}
	made := (seen + min(said, seen)) / params
	folded, budget := float64(v.FoldedTokens()), float64(v.m.cfg.Params.Budget)
	return (folded + max(0, min(made-folded, maxLead*budget))) / budget
}
