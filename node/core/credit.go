package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// maxContributed bounds the authors remembered as having contributed: as many as
// a table of peers has.
const maxContributed = 4096

// Credit says that something of an author was folded on the chain held here, as
// the ledger knows: its claims count where chains differ. Those of a guest never do.
func (m *Machine) Credit(author wire.PeerID) {
	if m.guest(author) {
		return
	}
	m.join.met = m.join.met || author != m.self
	if len(m.contributed) < maxContributed && !m.contributed[author] {
		m.contributed[author] = true
		m.gossip.Contributed(author)
	}
}

// creditFold credits the authors of what is about to be folded, in a round that closed or
// late in an older one. An author that is always late contributes as well.
func (m *Machine) creditFold(e rounds.WantFold) {
	for i := range e.Sets {
		if l, known := m.rounds.Fragment(e.Fragment).Link(e.Start + 1 + uint32(i)); known {
			m.credit(l)
		}
	}
}

// credit credits the authors of what a round folded.
func (m *Machine) credit(l outer.Link) {
	for _, id := range l.Folded {
		if h, known := m.headers[wire.Digest(id)]; known && !h.Header.Revocation() {
			m.Credit(h.Header.Author)
		}
	}
}
