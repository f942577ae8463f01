package node

import (
	"slices"

	"atoll/node/store"
)

// maxUnrecorded is how many rounds of a fragment wait for a disk that takes none:
// hours of rounds, in a megabyte or less. Those before are recorded by the next start,
// which folds what has no record.
const maxUnrecorded = 1024

// unrecorded are the rounds that were folded while the disk took no record of
// them, by fragment. Without them the ledger would keep what a late delta changed
// in a round, and each later round, until the next start. It belongs to the fold queue.
type unrecorded map[int]span

// span are consecutive rounds from first on.
type span struct {
	first  uint32
	rounds []store.Round
}

// join puts the rounds of a fold behind those that wait, in place of those that it
// made anew. A fold begins at a tip, so there is no gap between them.
func (u unrecorded) join(fragment int, made span) span {
	s, waits := u[fragment]
	if !waits || made.first <= s.first {
		return made
	}
	before := min(int(made.first-s.first), len(s.rounds))
	return span{s.first, slices.Concat(s.rounds[:before], made.rounds)}
}

// keep has a span wait, the newest of its rounds if they are too many.
func (u unrecorded) keep(fragment int, s span) {
	if over := len(s.rounds) - maxUnrecorded; over > 0 {
		s = span{s.first + uint32(over), slices.Clone(s.rounds[over:])}
	}
	u[fragment] = s
}

// keepRounds writes the rounds of a fold to the ledger, and those that waited.
func (n *node) keepRounds(fragment int, made span) {
	s := n.unrecorded.join(fragment, made)
	if err := n.store.PutRounds(fragment, s.first, s.rounds); err != nil {
		n.unrecorded.keep(fragment, s)
		n.check("record rounds", err)
		return
	}
	delete(n.unrecorded, fragment)
	n.check("drop rounds", n.store.TruncateRounds(fragment, s.first+uint32(len(s.rounds))-1))
}
