package rounds

import (
	"encoding/hex"
	"fmt"
	"strings"

	"atoll/optimizer/outer"
)

// Reason is why the open round closes, or what it waits for: a row of the table closing. Reasons are in its order.
type Reason uint8

// The reasons, by what they are called in the table.
const (
	Over Reason = iota
	TooSoon
	ClosedElsewhere
	NextHeld
	LeftOut
	NoProposal
	Complete
	GraceLimitOver
	Leaving
	TooFew
	InGrace
	GraceOver
)

// What a row of the table says of the open round.
const (
	closes = true
	waits  = false
)

// closing is when a round closes: the first row whose condition holds says whether the open round closes or waits.
// Nothing else closes one. The test of a row is TestClosing/WORD. SPEC.md of gossip/wire has the same rows as its table
// closes, for other implementations.
var closing = [...]struct {
	word   string // what status, trace and tests call it
	closes bool
	when   func(m *Machine, now Time, f *fragment) bool
	text   string // for people; %s is whose delta is missing
}{
	// Nobody needs another round.
	Over: {"over", waits, func(_ *Machine, _ Time, f *fragment) bool { return f.chain.last().Ended() },
		"the run has all its tokens"},
	// A flood of proposals is no reason to close rounds faster than learners make them.
	TooSoon: {"too soon", waits, func(m *Machine, now Time, f *fragment) bool { return m.early(now, f) },
		"rounds closed faster than min_round allows"},
	// All that somebody folded is here: nothing is gained by waiting longer.
	ClosedElsewhere: {"closed elsewhere", closes, func(_ *Machine, _ Time, f *fragment) bool { return f.proposal.target >= f.open() },
		"a peer closed it, or this node before its restart, and all that it folded is here"},
	// Its author has closed the open round. A header alone says so for nothing, and closes nothing.
	NextHeld: {"next", closes, func(_ *Machine, _ Time, f *fragment) bool { return f.deltas.rounds[f.open()+1].heldOfMembers() > 0 },
		"a delta of the next round is here"},
	// All learners may have signed the round on a chain that they left, and then nobody could ever propose it.
	LeftOut: {"left out", closes, func(m *Machine, now Time, f *fragment) bool {
		return f.learn.leaves >= f.open() || m.stuckTooLong(now, f)
	},
		"this learner has signed it already, and nobody proposed it"},
	// No member has made enough steps, and an empty round is worth nothing. Guests propose none.
	NoProposal: {"no proposal", waits, func(_ *Machine, _ Time, f *fragment) bool { return f.proposal.at == 0 },
		"waits for a member to propose it"},
	// Nothing is to come: see awaiting.
	Complete: {"complete", closes, func(m *Machine, _ Time, f *fragment) bool { return m.complete(f) },
		"all that were sampled have published"},
	// A hung peer stalls nothing, and a proposal whose payload never comes ends in an empty round.
	GraceLimitOver: {"grace limit over", closes, func(m *Machine, now Time, f *fragment) bool { return now-f.proposal.at >= m.GraceLimit() },
		"waited in vain for %s"},
	// Who steps no more gains nothing by a close without the last deltas of the others.
	Leaving: {"leaving", waits, func(m *Machine, _ Time, _ *fragment) bool { return m.stopped },
		"waits for %s, as this learner steps no more"},
	// A round of few deltas is worth little, and those to come would be late and folded again.
	TooFew: {"too few", waits, func(m *Machine, _ Time, f *fragment) bool { return m.fewerThanQuorum(f) },
		"waits for %s, as it has few"},
	// What usually comes in time is no late delta yet.
	InGrace: {"grace", waits, func(m *Machine, now Time, f *fragment) bool {
		waited := now - f.proposal.at
		return waited < m.p.GraceMinMs || waited < m.grace()
	}, "waits for %s"},
	// One that is slow has no right to hold up all others: its delta is folded late.
	GraceOver: {"grace over", closes, func(*Machine, Time, *fragment) bool { return true },
		"went on without %s"},
}

// awaiting is for whose delta the open round of a fragment waits, of those sampled to publish in it (Machine.sampled):
// the first row whose condition holds says it. The test of a row is TestAwaiting/WORD. It is the table awaited of SPEC.md.
var awaiting = [...]struct {
	word  string
	waits bool
	when  func(m *Machine, f *fragment, r *round, a outer.Author) bool
}{
	// Nothing that it signs is taken any more.
	{"muted", false, func(m *Machine, f *fragment, _ *round, a outer.Author) bool { return m.muted(f, a) }},
	{"held", false, func(_ *Machine, _ *fragment, r *round, a outer.Author) bool { return r.holds(a) }},
	// It steps no more, and all that it made is announced.
	{"spent", false, func(m *Machine, f *fragment, r *round, a outer.Author) bool { return m.spent(f, r, a) }},
	// Where rounds are long it takes minutes, and comes whatever plan its author says that it has: at first plans go by what links
	// carried in a moment.
	{"announced", true, func(m *Machine, _ *fragment, r *round, a outer.Author) bool { return m.p.SweepMs() > 0 && r.by(a) }},
	// Its link is so thin that it leaves rounds out.
	{"thin", false, func(m *Machine, f *fragment, _ *round, a outer.Author) bool { return !m.due(f, f.open(), a) }},
	{"sampled", true, func(*Machine, *fragment, *round, outer.Author) bool { return true }},
}

// why walks the table of closing.
func (m *Machine) why(now Time, f *fragment) Reason {
	for i := range closing {
		if closing[i].when(m, now, f) {
			return Reason(i)
		}
	}
	return GraceOver // its condition always holds
}

// awaits walks the table of awaiting: it says whether the open round waits for an author's delta.
func (m *Machine) awaits(f *fragment, r *round, a outer.Author) bool {
	for i := range awaiting {
		if awaiting[i].when(m, f, r, a) {
			return awaiting[i].waits
		}
	}
	return true // the condition of the last row always holds
}

// Closes says whether a round closes for that reason.
func (r Reason) Closes() bool { return closing[r].closes }

// String is the word of the table.
func (r Reason) String() string { return closing[r].word }

// Why is why a round closes or what it waits for at a moment.
type Why struct {
	Reason
	For    outer.Author // whose delta is missing, if it waits for one or waited in vain; else zero
	Waited Time         // milliseconds since it was proposed; 0 before
	Most   Time         // for how many after that it waits at most; 0 where that follows from no clock
}

// whyOf adds to a reason what people want to know.
func (m *Machine) whyOf(now Time, f *fragment, r Reason) Why {
	w := Why{Reason: r}
	if f.proposal.at != 0 {
		w.Waited = now - f.proposal.at
	}
	switch r {
	case GraceLimitOver, Leaving, TooFew:
		w.Most = m.GraceLimit()
	case InGrace, GraceOver:
		w.Most = min(m.GraceLimit(), max(m.p.GraceMinMs, m.grace()))
	default:
		return w
	}
	w.For, _ = m.missing(f)
	return w
}

// shownBytes are as many of an id as people see of one everywhere.
const shownBytes = 5

// Text says it for people, with times in seconds.
func (w Why) Text() string {
	missing := "deltas"
	if w.For != (outer.Author{}) {
		missing = "the delta of " + hex.EncodeToString(w.For[:shownBytes])
	}
	text := strings.Replace(closing[w.Reason].text, "%s", missing, 1)
	if w.Most > 0 {
		text += fmt.Sprintf(", %.1f s of at most %.1f s", float64(w.Waited)/1000, float64(w.Most)/1000)
	}
	return text
}
