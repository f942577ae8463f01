package rounds

import (
	"cmp"

	"atoll/optimizer/outer"
)

// Time is milliseconds of a clock that never goes back, and stands still while the whole node
// sleeps. The machine only compares and subtracts it.
type Time = int64

// Machine is the state machine of the rounds of all fragments. It holds
// metadata only: tensors live in outer.Learner and outer.Fold. Inputs are method
// calls that carry the time; outputs are effects, drained with Effects. What
// it decides from clocks and peer lists may only delay: the bits of a tip follow
// from the set of deltas alone.
type Machine struct {
	p            outer.Params
	run          outer.Digest
	self         outer.Author
	learner      bool
	closedByMost func(fragment int, rnd uint32) bool
	spentElse    func(fragment int, a outer.Author) bool // Config.Spent
	invites      func(a outer.Author) [][32]byte
	guest        bool
	peerList     peerList
	frags        []*fragment
	out          []Effect
	late         lateness
	steps        stepClock
	plan         planning
	withhold     bool // publish nothing
	stopped      bool // steps no more
	flush        bool // publish whatever is unpublished, H or not
	excluded     map[outer.Author]bool
}

// Config is what a machine goes by.
type Config struct {
	Params  outer.Params
	Run     outer.Digest // the run's id, which priorities go by
	Self    outer.Author
	Learner bool // an observer folds and never publishes

	// MostDeltas is how many deltas of a round a fold takes; 0 means 1,024, as SPEC.md has it.
	// All nodes of a run have to have the same. It is there for tests.
	MostDeltas int

	// ClosedByMost says whether most peers have closed a round; nil is never. Local
	// knowledge: this node catches up with them.
	ClosedByMost func(fragment int, rnd uint32) bool

	// Invites are the invites by which an author came; nil is none of anybody. Local knowledge: no
	// round waits for an author all of whose invites are revoked.
	Invites func(a outer.Author) [][32]byte
	// Guest says that Self is a guest of the run: it proposes no round, and publishes in every one.
	Guest bool

	// Spent says whether an author steps no more and everything that it made of a fragment
	// is announced; nil is never. Local knowledge: no round waits for its next delta.
	Spent func(fragment int, a outer.Author) bool
}

// New returns the machine of a node that holds only genesis tips.
func New(cfg Config, tips []*outer.Tip) *Machine {
	m := &Machine{
		p: cfg.Params, run: cfg.Run, self: cfg.Self, learner: cfg.Learner, closedByMost: cfg.ClosedByMost, spentElse: cfg.Spent, invites: cfg.Invites, guest: cfg.Guest,
		excluded: map[outer.Author]bool{}, late: lateness{self: cfg.Self},
		plan: planning{Plan: Plan{Steps: cfg.Params.H, Common: cfg.Params.H}},
	}
	for i, t := range tips {
		f := &fragment{index: i, deltas: deltas{rounds: map[uint32]*round{}, excluded: map[outer.Author][]uint32{}, most: cmp.Or(cfg.MostDeltas, maxEntries), guests: max(1, cfg.Params.LearnersPerRound/guestPart)}}
		f.reset(t, []outer.Link{{Round: t.Round, Chain: t.Chain, State: t.State, Tokens: t.Tokens, EndRound: t.EndRound}})
		f.learn.since = i * m.p.H / m.p.Fragments
		f.learn.opened = f.learn.since
		m.frags = append(m.frags, f)
	}
	return m
}

// Effects drains what the machine wants done, in order.
func (m *Machine) Effects() []Effect {
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

// SetStopped says whether the learner steps no more, as the budget is reached or the node
// leaves, and whether it publishes all that is unpublished, however few steps it is.
func (m *Machine) SetStopped(now Time, stopped, flush bool) {
	if stopped == m.stopped && flush == m.flush {
		return // every other input runs the rules by itself
	}
	m.stopped, m.flush = stopped, flush
	m.each(now)
}

// Withhold keeps the learner from publishing, or lets it: while it is not known which
// rounds its key has signed already.
func (m *Machine) Withhold(on bool) { m.withhold = on }

// Tick lets time pass: grace may be over, a refold may be due.
func (m *Machine) Tick(now Time) { m.each(now) }

func (m *Machine) each(now Time) {
	for _, f := range m.frags {
		m.advance(now, f)
	}
}

// advance runs every rule of one fragment until none applies.
func (m *Machine) advance(now Time, f *fragment) {
	for r := m.why(now, f); r.Closes(); r = m.why(now, f) {
		m.close(now, f, r)
	}
	m.recordStuck(now, f)
	m.giveUpLate(f)
	m.askDraft(now, f)
	m.askFold(now, f)
}

// Fragments is the number of fragments.
func (m *Machine) Fragments() int { return len(m.frags) }

// Excluded says that there is an equivocation proof against an author, so that its new deltas
// are not taken.
func (m *Machine) Excluded(a outer.Author) bool { return m.excluded[a] }

// Sizes calls each with the most deltas that a round has, as R-13 counts them, and the
// constant that bounds them. A learner's own finds room in a full round.
func (m *Machine) Sizes(each func(what string, count, most int)) {
	largest := 0
	for _, f := range m.frags {
		for _, r := range f.deltas.rounds {
			largest = max(largest, len(r.entries))
		}
	}
	each("deltas of one round", largest, maxEntries+maxOverflow+maxAwaited+1)
}
