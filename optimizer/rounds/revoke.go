package rounds

import (
	"maps"
	"slices"

	"atoll/optimizer/outer"
)

// revoke finds the names that the chain up to the base and the sets above it revoke, and forgets
// the deltas that these keep out. Nodes with the same revocations keep out the same deltas, in
// whatever order they learnt of them. What is kept out takes no room in a set.
func (m *Machine) revoke(f *fragment) {
	base, _ := f.chain.link(f.chain.base)
	table, known := base.Revoked, slices.Sorted(maps.Keys(f.deltas.rounds))
	for _, rnd := range known {
		if rnd > f.chain.base {
			table = outer.Revoke(table, f.deltas.rounds[rnd].set())
		}
	}
	f.deltas.revoked = table
	if len(table) == 0 {
		return
	}
	m.emit(Revoked{Fragment: f.index, Names: table})
	for _, rnd := range known {
		m.keepOut(f, f.deltas.rounds[rnd], rnd)
	}
}

// keepOut forgets the deltas of a round that are revoked.
func (m *Machine) keepOut(f *fragment, r *round, rnd uint32) {
	changed := false
	r.leaveOut(func(e entry) bool {
		out := f.keptOut(e.delta)
		if out {
			changed = changed || e.held && !e.overflow
			m.emit(Forgot{Fragment: f.index, Round: rnd, ID: e.delta.ID})
		}
		return out
	})
	if changed {
		f.touched(rnd)
	}
}

// keptOut says whether a revocation keeps a delta out of the set of its round.
func (f *fragment) keptOut(d outer.Delta) bool {
	at := outer.RevokedAt(f.deltas.revoked, d)
	return at != 0 && d.Round >= at
}

// muted says whether nothing that an author publishes for a fragment is taken any more: it
// signed two deltas for a round, or is revoked, or so are all invites by which it came.
func (m *Machine) muted(f *fragment, a outer.Author) bool {
	table := f.deltas.revoked
	switch {
	case m.excluded[a]:
		return true
	case len(table) == 0:
		return false
	case outer.RevokedAt(table, outer.Delta{Author: a}) != 0:
		return true
	case m.invites == nil:
		return false
	}
	came := m.invites(a)
	return len(came) > 0 && !slices.ContainsFunc(came, func(invite [32]byte) bool {
		return outer.RevokedAt(table, outer.Delta{Author: a, Invite: invite}) == 0
	})
}
