package testnet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// What the checks allow.
const (
	// budgetSlack is how far beyond its budget a run may end.
	budgetSlack = 0.01
	// hearMs is how long a heartbeat may take from one process to another where more want to
	// run than there are cores. Beside the tests of other packages some 75 were seen on two cores.
	hearMs = 100
	// shareSlack is how far a learner's share may be from 1/divisor, relative to it.
	shareSlack = 0.15
	// shareAfter is the least length of a run whose shares are compared: in a
	// shorter one the second in which the first node was alone shows.
	shareAfter = 30 * time.Second
)

// checks compares what came of the run with what was promised.
func (w *world) checks(r Report, a account) []Check {
	list := []Check{
		w.checkEqual("one chain", r.ChainEqual, r.ChainDigest),
		w.checkEqual("one digest", r.DigestsEqual, r.StateDigest),
		checkAccount(r, a),
		w.checkBudget(r, a),
		checkWaiting(r),
		w.checkFolds(),
	}
	list = append(list, w.chaosChecks(a)...)
	for _, c := range []*Check{w.checkJoiners(r), w.checkShares(r), w.checkOrphans(orphansWithin), w.checkModel()} {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}

func (w *world) checkEqual(name string, equal bool, digest string) Check {
	c := Check{Name: name, Passed: equal, Detail: held(len(w.survivors()), digest)}
	if equal {
		return c
	}
	var each []string
	for _, m := range w.survivors() {
		s := m.newest().last
		each = append(each, fmt.Sprintf("%s chain %.10s state %.10s", m.name(), s.ChainDigest, s.StateDigest))
	}
	c.Detail = strings.Join(each, ", ")
	return c
}

// checkModel fails if the model is worse at the end than it was; nil otherwise, and where members lie to make it so.
func (w *world) checkModel() *Check {
	if slices.ContainsFunc(w.members, func(m *member) bool { return m.inverted }) {
		return nil
	}
	for _, m := range w.survivors() {
		if text := m.newest().last.Worse(); text != "" {
			return &Check{Name: "it learned", Detail: m.name() + ": " + text + "; try a smaller --lr"}
		}
	}
	return nil
}

// held says how many nodes hold something.
func held(nodes int, digest string) string {
	if nodes == 1 {
		return fmt.Sprintf("1 node holds %.10s", digest)
	}
	return fmt.Sprintf("%d nodes hold %.10s", nodes, digest)
}

func checkAccount(r Report, a account) Check {
	misfits := a.misfits()
	c := Check{Name: "account exact", Passed: len(misfits) == 0, Detail: strings.Join(misfits, "; ")}
	if c.Passed {
		c.Detail = fmt.Sprintf("%s; each node and fragment adds up as well", r.accountText())
	}
	return c
}

// checkBudget compares what was folded with the budget. Every fragment ends at
// its own budget. What a kill or a lost chain takes is not the same in all of
// them, so all have enough when the one that lost most has. That one is judged
// then.
func (w *world) checkBudget(r Report, a account) Check {
	slack := w.mayExceed(r, w.unheardSteps())
	counted := a.chain.mean(func(p int) uint64 { return a.chain.tokens[p] })
	judged, least := counted, slices.Min(a.chain.tokens)
	text := ""
	if r.TokensFolded > counted {
		text = fmt.Sprintf(", and %d that count for no budget, as their authors made more than twice what is usual", r.TokensFolded-counted)
	}
	if r.TokensLost+r.TokensDiscarded+r.TokensLostHere > 0 {
		judged, text = least, text+fmt.Sprintf(", %d in the fragment that lost most", least)
	}
	ok := judged >= r.TokensBudget && judged-r.TokensBudget <= slack
	return Check{Name: "ended at the budget", Passed: ok, Detail: fmt.Sprintf(
		"%d tokens folded of %d: %+.2f %%%s, %d more are allowed", counted, r.TokensBudget,
		100*(float64(counted)/float64(r.TokensBudget)-1), text, slack)}
}

// mayExceed is how many tokens a run may end beyond its budget, where that many steps of every
// learner may come on top.
func (w *world) mayExceed(r Report, steps int) uint64 {
	return max(uint64(budgetSlack*float64(r.TokensBudget)), uint64(steps*len(w.members))*w.genesis.StepTokens())
}

// unheardSteps is how many steps of every learner a run may end beyond its budget: one was
// under way when the others had enough, and short ones begin until the last heartbeat has
// come. Near the end heartbeats tell of each step.
func (w *world) unheardSteps() int {
	return 1 + int(hearMs/w.calibration.step())
}

// waitingShare is the part of a learner's time that may stay unexplained: the
// account is kept by hand around a step of milliseconds, on a shared machine.
// A learner that waited for anybody would show tens of per cent.
const waitingShare = 0.02

func checkWaiting(r Report) Check {
	c := Check{Name: "nobody waited on peers", Passed: true}
	var most float64
	for _, n := range r.NodesReport {
		if n.Time == nil || n.Time.Total == 0 {
			continue
		}
		share := n.Time.Waiting / n.Time.Total
		most = max(most, share)
		c.Passed = c.Passed && share <= waitingShare
	}
	c.Detail = fmt.Sprintf("a learner waited for %.2f %% of its time at most; %.0f %% are allowed", 100*most, 100*waitingShare)
	return c
}

func (w *world) checkJoiners(r Report) *Check {
	c := Check{Name: "joiners contribute", Passed: true}
	var shares []string
	for i, m := range w.members {
		if m.joiner {
			share := r.NodesReport[i].Share
			c.Passed = c.Passed && share > 0
			shares = append(shares, fmt.Sprintf("%s %.1f %%", m.name(), 100*share))
		}
	}
	if len(shares) == 0 {
		return nil
	}
	c.Detail = "share of the folded tokens: " + strings.Join(shares, ", ")
	return &c
}

// checkShares compares the learners' shares with their speeds, where nothing
// but speed tells them apart. A program that trains in place of the built-in trainer starts when
// its framework is there and has a speed of its own, so what each has trained is compared there.
func (w *world) checkShares(r Report) *Check {
	guests := len(r.NodesReport) > len(w.members)
	if len(w.members) < 2 || len(w.chaos) > 0 || guests || r.WallS < shareAfter.Seconds() {
		return nil
	}
	if len(w.learners) == 0 && w.crowded(r) {
		return &Check{Name: "shares follow speed", Passed: true, Detail: "not judged: the machine was too busy for the speeds asked for"}
	}
	var all, worst float64
	for i, m := range w.members {
		all += w.speed(i, m, r)
	}
	var shares []string
	for i, m := range w.members {
		expected := w.speed(i, m, r) / all
		share := r.NodesReport[i].Share
		worst = max(worst, math.Abs(share/expected-1))
		shares = append(shares, fmt.Sprintf("%s %.1f %%, expected %.1f %%", m.name(), 100*share, 100*expected))
	}
	return &Check{Name: "shares follow speed", Passed: worst <= shareSlack, Detail: fmt.Sprintf(
		"%s; no share is off by more than %.1f %% of the expected one, %.0f %% are allowed", strings.Join(shares, "; "), 100*worst, 100*shareSlack)}
}

// speed is what a learner's share ought to follow.
func (w *world) speed(i int, m *member, r Report) float64 {
	if len(w.learners) > 0 {
		return float64(r.NodesReport[i].Tokens)
	}
	return 1 / m.divisor
}

// leastPaced is the part of their stepping time that the fastest learners must
// have slept to keep the pace asked for. Where they hardly did, the machine set
// the speeds.
const leastPaced = 0.05

// crowded says whether the fastest learners could not hold their pace.
func (w *world) crowded(r Report) bool {
	fastest := math.Inf(1)
	for _, m := range w.members {
		fastest = min(fastest, m.divisor)
	}
	var step, paced float64
	for i, m := range w.members {
		if t := r.NodesReport[i].Time; t != nil && m.divisor == fastest {
			step, paced = step+t.Step, paced+t.Paced
		}
	}
	return paced < leastPaced*step
}
