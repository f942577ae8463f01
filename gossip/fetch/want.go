package fetch

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// want is one payload that is missing.
type want struct {
	id      wire.Digest
	header  *wire.SignedHeader
	state   state
	class   class
	until   effect.Time // nobody is asked any more then; of one that is taken: the disk had its time
	author  source
	sources []source    // beside the author
	brought wire.PeerID // who brought the header first
	narrow  bool        // the author's uplink is narrower than most
	via     wire.PeerID // the author or a relay, to ask before the others; zero for none

	// The requests that await an answer. There is a second one only when the first is overdue:
	// what it brings after all is still taken.
	calls []uint64
	due   effect.Time // when the newest should have been answered
}

// state is how far a want is.
type state uint8

const (
	waiting state = iota // nobody was asked for it
	asked                // somebody was, and may be still
	taken                // handed up, awaiting what becomes of it
)

// class orders wants: a later one is asked for after all of an earlier one.
type class uint8

const (
	sure     class = iota // its author gives what it announces
	doubtful              // it may never come, by its author
	strange               // its author is a stranger, and nobody who is known has it
)

// source is a peer that should have the payload.
type source struct {
	id    wire.PeerID
	tries int
	after effect.Time // not before: it was busy, or could not give it
	holds bool        // it said so
	relay bool        // it is to have it before this node
	asked bool        // and has yet to answer
}

func (w *want) size() int { return int(w.header.Header.Size) }

// full reports whether no further peer may be asked now.
func (w *want) full(now effect.Time) bool {
	return len(w.calls) >= maxFlights || len(w.calls) > 0 && now < w.due
}

// over reports whether no further peer is to be asked for good. One that waited for its turn longer
// than it may be asked for still has it, unless it comes last.
func (w *want) over(now effect.Time) bool {
	return w.state == taken || now > w.until && (w.state == asked || w.class > sure)
}

// ends reports whether a want ends with its time: nothing of it is under way, and it had its turn.
func (w *want) ends(now effect.Time) bool {
	return now > w.until && (w.state == taken || len(w.calls) == 0 && w.over(now))
}

func (w *want) find(id wire.PeerID) *source {
	if id == w.author.id {
		return &w.author
	}
	for i := range w.sources {
		if w.sources[i].id == id {
			return &w.sources[i]
		}
	}
	return nil
}

// also adds a source behind the others, if there is room.
func (w *want) also(id wire.PeerID) {
	if w.find(id) == nil && len(w.sources) < maxPayloadSources {
		w.sources = append(w.sources, source{id: id})
	}
}

// first puts a source before the others.
func (w *want) first(s source) {
	if old := w.find(s.id); old != nil {
		s.asked = old.asked
	}
	w.sources = slices.DeleteFunc(w.sources, func(other source) bool { return other.id == s.id })
	w.sources = slices.Insert(w.sources, 0, s)
	w.sources = w.sources[:min(len(w.sources), maxPayloadSources)]
}

// goVia has a peer asked before the others; zero is none.
func (w *want) goVia(via wire.PeerID) {
	w.via = via
	if via != w.author.id && via != (wire.PeerID{}) {
		w.first(source{id: via, relay: true})
	}
}

// inTurn is the i-th source to ask, the author at its place among the others.
func (w *want) inTurn(i int) *source {
	switch place := w.authorsTurn(); {
	case i == place:
		return &w.author
	case i > place:
		i--
	}
	return &w.sources[i]
}

// authorsTurn is the author's among the sources: the first where it brought the header
// itself and has as wide an uplink as most, or where this node gets it from there for others.
// Otherwise it is the last. Others that forwarded the header mostly wait for the payload as
// well: nodes that asked each other before an author that they know would all wait.
func (w *want) authorsTurn() int {
	direct := w.via == wire.PeerID{} && w.brought == w.author.id && !w.narrow
	if direct || w.via == w.author.id {
		return 0
	}
	return len(w.sources)
}
