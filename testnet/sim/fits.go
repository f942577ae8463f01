package sim

import (
	"fmt"
	"slices"

	"atoll/testnet/fault"
)

// Fit is what a run came to on its links.
type Fit struct {
	Late      float64 `json:"late"`        // share of the deltas that others made, by those who had them after their round
	Discarded float64 `json:"discarded"`   // share of the tokens trained
	Over      float64 `json:"over"`        // share of the budget by which the folded tokens exceed it
	MostOver  float64 `json:"most_over"`   // that is allowed
	EndMs     Time    `json:"end_ms"`      // from the last step of any learner until all knew that the run is over
	MostEndMs Time    `json:"most_end_ms"` // that is allowed
	Plans     float64 `json:"plans"`       // the largest plan of a node over its smallest, once rounds had settled; 0 before
}

// Limits of what runs are promised that suit their links.
const (
	mostLate          = 0.10
	mostOver          = 0.01
	mostEndTravel     = 3 // times what the last payloads travel
	mostEndHeartbeats = 5 // and heartbeat periods: three of silence, and those of the heartbeats before and after it
	settleRounds      = 5
	mostPlans         = 1.25 // within which plans stay as they are, see optimizer/rounds
)

// fit is a promise about links. It holds where applies says so.
type fit struct {
	name    string
	applies func(s Scenario) bool
	broken  func(f Fit) string // "" = it is kept
}

// fits are the promises about links, beside those that hold of any run.
var fits = []fit{
	{"nothing discarded", func(s Scenario) bool { return !disturbs(s, fault.Kill) && s.carries() },
		func(f Fit) string { return above("share of the tokens discarded", f.Discarded, 0) }},
	{"in time", Scenario.carries,
		func(f Fit) string { return above("share of the deltas that came late", f.Late, mostLate) }},
	{"exact budget", anywhere,
		func(f Fit) string {
			return above("share by which the budget is exceeded", f.Over, f.MostOver)
		}},
	{"soon over", anywhere,
		func(f Fit) string { return above("ms of idling at the end", float64(f.EndMs), float64(f.MostEndMs)) }},
	{"plans settle", func(s Scenario) bool { return len(s.Faults) == 0 },
		func(f Fit) string {
			return above("the largest plan after five rounds over the smallest", f.Plans, mostPlans)
		}},
}

func above(what string, got, most float64) string {
	if got <= most {
		return ""
	}
	return fmt.Sprintf("%s: %.4g, at most %.4g", what, got, most)
}

// disturbs says whether something of a kind happens.
func disturbs(s Scenario, kind fault.Verb) bool {
	return slices.ContainsFunc(s.Faults, func(f Fault) bool { return f.Kind == kind })
}

// demand is what a node's deltas of H steps take of the uplink of all, where each goes to each
// other node once.
func (s Scenario) demand() float64 {
	return bytesAt(s.Scale) * float64(len(s.Founders)-1) / float64(Time(s.Params.H)*s.StepMs) / s.Link.BytesMs
}

// carries says whether deltas of the largest useful number of steps fit the links.
func (s Scenario) carries() bool {
	return s.demand()*float64(s.Params.H) <= fills*float64(s.Params.MostH())
}

func anywhere(Scenario) bool { return true }

// fitting are the names of the promises that are checked in a scenario.
func fitting(s Scenario) (names []string) {
	for _, f := range fits {
		if notYet[f.name] == "" && f.applies(s) {
			names = append(names, f.name)
		}
	}
	return names
}

// notYet are the promises that schedules do not keep yet, and why.
var notYet = map[string]string{
	"in time":      "where latency is a good part of a round, and where links are full, more than a tenth comes late",
	"exact budget": "learners step on while the last tokens are on their way",
	"soon over":    "the end waits for what a thin uplink still has to give",
}

// Fit is how the run fitted its links.
func (w *World) Fit() Fit {
	var f Fit
	var late, trained, discarded, over float64
	var last, travel, period Time
	for _, n := range w.nodes {
		late += float64(n.late)
		trained += float64(n.book.trained)
		discarded += n.tokens(nil).Discarded
		last = max(last, n.steppedAt)
		f.Plans = max(f.Plans, n.plans.spread())
		if n.up {
			late += float64(n.lateNow())
			f.EndMs = max(f.EndMs, n.endedAt)
			travel = max(travel, n.travelMs())
			period = max(period, n.machine.Gossip().HeartbeatPeriodMs())
		}
	}
	for p := range w.plan {
		over = max(over, float64(w.first().machine.Rounds().Fragment(p).Tip().Tokens)/float64(w.s.Params.Budget)-1)
	}
	f.EndMs = max(f.EndMs-last, 0)
	f.Late = late / max(float64(w.counts.Deltas*(len(w.nodes)-1)), 1)
	f.Discarded, f.Over, f.MostOver = discarded/max(trained, 1), over, w.mostOver()
	f.MostEndMs = mostEndTravel*travel + mostEndHeartbeats*period
	return f
}

// travelMs is how long a delta of every fragment takes to all others, from this node.
func (n *Node) travelMs() Time {
	own := n.spec.Link.over(n.w.s.Link)
	ms := own.LatencyMs + own.JitterMs
	if own.BytesMs > 0 {
		ms += Time(float64(4*len(n.trainer.Params())*(len(n.w.nodes)-1)) / own.BytesMs)
	}
	return ms
}

// mostOver is by how much the budget may be exceeded: one in a hundred, and where the run is
// small a step of each learner.
func (w *World) mostOver() float64 {
	return mostOver + float64(len(w.nodes)*w.s.Task.Tokens())/float64(w.s.Params.Budget)
}

// checkFits: the run suits its links.
func (w *World) checkFits() {
	if len(w.s.Fits) == 0 {
		return
	}
	got := w.Fit()
	for _, f := range fits {
		if !slices.Contains(w.s.Fits, f.name) {
			continue
		}
		if text := f.broken(got); text != "" {
			w.broken(f.name, "%s", text)
		}
	}
}

// plans are the bounds of what a node planned once its rounds had settled: steps that a
// delta has by what the links of all carry. Nodes measure their links each for itself, so
// their plans differ; what settles is that of each.
type plans struct{ least, most int }

// looksAtPlan records what a node plans that steps.
func (w *World) looksAtPlan(n *Node) {
	if !n.may {
		return
	}
	n.planned = n.machine.Rounds().Plan().Steps
	if w.checks.ending || n.machine.Rounds().Fragment(0).Closed() < settleRounds {
		return
	}
	common := n.machine.Rounds().Plan().Common
	p := &n.plans
	if p.least == 0 {
		p.least = common
	}
	p.least, p.most = min(p.least, common), max(p.most, common)
}

func (p plans) spread() float64 {
	if p.least == 0 {
		return 0
	}
	return float64(p.most) / float64(p.least)
}
