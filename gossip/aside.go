package gossip

import (
	"maps"
	"slices"

	"atoll/gossip/wire"
)

// aside keeps headers back that gossip brings to a joiner: while chunks of its tips are under way, and then until it is the turn
// of the fragment to catch up. Before that no payload of it is of use, and those that are share the downlink with it.
// The newest header of each author is kept. The rounds before it come by repair.
type aside struct {
	*env
	pull      *pull
	relays    *relays
	fragments []map[wire.PeerID]heardOf // by fragment; nil where headers are taken as they come
	count     int
}

// heardOf is a header that gossip brought.
type heardOf struct {
	id     wire.Digest
	header *wire.SignedHeader
	from   wire.PeerID
}

// begin keeps the headers of all fragments back, those whose payloads are wanted now as well.
func (a *aside) begin() {
	a.fragments, a.count = make([]map[wire.PeerID]heardOf, a.chain.Fragments()), 0
	for f := range a.fragments {
		a.fragments[f] = map[wire.PeerID]heardOf{}
	}
	for _, w := range slices.Clone(a.pull.wants) {
		if !w.fetched {
			a.keep(heardOf{w.id, w.header, w.brought})
			a.pull.end(w.id, unwanted)
		}
	}
}

// end keeps nothing back any more.
func (a *aside) end() {
	for f := range a.fragments {
		a.turn(f)
	}
	a.fragments = nil
}

// keep keeps a header back, and reports whether it is of a fragment whose headers are.
func (a *aside) keep(h heardOf) bool {
	f, author := int(h.header.Header.Fragment), h.header.Header.Author
	if f >= len(a.fragments) || a.fragments[f] == nil {
		return false
	}
	before, known := a.fragments[f][author]
	switch {
	case !known && a.count >= maxAside:
	case !known:
		a.count++
		a.fragments[f][author] = h
	case before.header.Header.Round < h.header.Header.Round:
		a.fragments[f][author] = h
	}
	return true
}

// turn takes what was kept back of a fragment, and from now on what comes.
func (a *aside) turn(f int) {
	if f >= len(a.fragments) {
		return
	}
	kept := a.fragments[f]
	a.fragments[f] = nil
	a.count -= len(kept)
	for _, author := range slices.SortedFunc(maps.Keys(kept), wire.PeerID.Compare) {
		if h := kept[author]; !a.chain.Has(h.id) {
			a.emit(Offer{ID: h.id, Header: h.header, From: h.from})
			a.relays.announced(h.header.Header)
			a.pull.announced(h.id, h.header, h.from)
		}
	}
}
