package replica

import (
	"slices"

	"atoll/node/core"
	"atoll/optimizer/outer"
)

// maxUnrecorded is how many rounds of a fragment wait for a disk that takes none:
// hours of rounds, in a megabyte or less. Those before have no record any more: their
// payloads may be past the window, so that nobody folds them again. The ledger says so.
const maxUnrecorded = 1024

// unrecorded are the rounds that were folded while the disk took no record of
// them, by fragment. Without them the ledger would keep what a late delta changed
// in a round, and each later round, until the next start. It belongs to the folds.
type unrecorded map[int]span

// span are consecutive rounds, oldest first.
type span struct {
	rounds  []outer.Link
	givenUp uint32 // rounds from here to the first one waited in vain; 0 = none did
}

func (s span) first() uint32 { return s.rounds[0].Round }
func (s span) last() uint32  { return s.rounds[len(s.rounds)-1].Round }

// join puts the rounds of a fold behind those that wait, in place of those that it
// made anew. A fold begins at a tip, so there is no gap between them.
func (u unrecorded) join(fragment int, made []outer.Link) span {
	s, waits := u[fragment]
	first := made[0].Round
	switch {
	case !waits, s.givenUp == 0 && first <= s.first(), first <= s.givenUp:
		return span{rounds: made}
	case first <= s.first():
		return span{made, s.givenUp}
	}
	before := min(int(first-s.first()), len(s.rounds))
	return span{slices.Concat(s.rounds[:before], made), s.givenUp}
}

// keep has a span wait, the newest of its rounds if they are more than most (0 =
// any number). It reports whether these are the first that are given up.
func (u unrecorded) keep(fragment int, s span, most int) (gap bool) {
	if over := len(s.rounds) - most; most > 0 && over > 0 {
		if gap = s.givenUp == 0; gap {
			s.givenUp = s.first()
		}
		s.rounds = slices.Clone(s.rounds[over:])
	}
	u[fragment] = s
	return gap
}

// keepRounds writes the rounds of a fold to the ledger, and those that waited.
func (r *Replica) keepRounds(fragment int, made []outer.Link) {
	s := r.waiting.join(fragment, made)
	if err := r.putRounds(fragment, s); err != nil {
		if r.waiting.keep(fragment, s, r.policy.MaxUnrecorded) {
			from := r.waiting[fragment].givenUp
			r.exec.Post(func(core.Time) { r.watcher.Saw(GivenUp{fragment, from}) })
		}
		r.watcher.Check("record rounds", err)
		return
	}
	delete(r.waiting, fragment)
	r.watcher.Check("drop rounds", r.ledger.TruncateRounds(fragment, s.last()))
}

// putRounds writes a span to the ledger. What the ledger has of rounds that were given
// up goes first. It may be what they were before a late delta changed them, and a
// visible gap is better than a chain that does not hold.
func (r *Replica) putRounds(fragment int, s span) error {
	if s.givenUp > 0 {
		if err := r.ledger.TruncateRounds(fragment, s.givenUp-1); err != nil {
			return err
		}
	}
	return r.ledger.PutRounds(fragment, s.rounds)
}
