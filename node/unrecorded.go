package node

import (
	"slices"

	"atoll/node/store"
)

// maxUnrecorded is how many rounds of a fragment wait for a disk that takes none:
// hours of rounds, in a megabyte or less. Those before have no record any more: their
// payloads may be past the window, so that nobody folds them again. The ledger says so.
const maxUnrecorded = 1024

// unrecorded are the rounds that were folded while the disk took no record of
// them, by fragment. Without them the ledger would keep what a late delta changed
// in a round, and each later round, until the next start. It belongs to the fold queue.
type unrecorded map[int]span

// span are consecutive rounds from first on.
type span struct {
	first   uint32
	rounds  []store.Round
	givenUp uint32 // rounds from here to first waited in vain; 0 = none did
}

// join puts the rounds of a fold behind those that wait, in place of those that it
// made anew. A fold begins at a tip, so there is no gap between them.
func (u unrecorded) join(fragment int, made span) span {
	s, waits := u[fragment]
	if !waits || s.givenUp == 0 && made.first <= s.first || made.first <= s.givenUp {
		return made
	}
	if made.first <= s.first {
		return span{made.first, made.rounds, s.givenUp}
	}
	before := min(int(made.first-s.first), len(s.rounds))
	return span{s.first, slices.Concat(s.rounds[:before], made.rounds), s.givenUp}
}

// keep has a span wait, the newest of its rounds if they are too many. It reports
// whether these are the first that are given up.
func (u unrecorded) keep(fragment int, s span) (gap bool) {
	if over := len(s.rounds) - maxUnrecorded; over > 0 {
		if gap = s.givenUp == 0; gap {
			s.givenUp = s.first
		}
		s.first, s.rounds = s.first+uint32(over), slices.Clone(s.rounds[over:])
	}
	u[fragment] = s
	return gap
}

// keepRounds writes the rounds of a fold to the ledger, and those that waited.
func (n *node) keepRounds(fragment int, made span) {
	s := n.unrecorded.join(fragment, made)
	if err := n.putRounds(fragment, s); err != nil {
		if n.unrecorded.keep(fragment, s) {
			n.log.Warn("the disk has taken no record for too long: rounds stay without one", "fragment", fragment, "from", n.unrecorded[fragment].givenUp)
		}
		n.check("record rounds", err)
		return
	}
	delete(n.unrecorded, fragment)
	n.check("drop rounds", n.store.TruncateRounds(fragment, s.first+uint32(len(s.rounds))-1))
}

// putRounds writes a span to the ledger. What the ledger has of rounds that were given
// up goes first: it may be what they were before a late delta changed them, and a gap
// that shows is better than a chain that does not hold.
func (n *node) putRounds(fragment int, s span) error {
	if s.givenUp > 0 {
		if err := n.store.TruncateRounds(fragment, s.givenUp-1); err != nil {
			return err
		}
	}
	return n.store.PutRounds(fragment, s.first, s.rounds)
}
