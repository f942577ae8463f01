package fetch

import (
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Config is what a Fetch goes by.
type Config struct {
	SweepMs int64   // what links take for the deltas of all fragments of all other learners, as the run was made; 0 if that is short
	DownMs  float64 // what this node may receive, in bytes per ms; 0 is no limit

	// Final reports whether a delta is older than what this node can still fold.
	Final func(wire.Header) bool
	// Ended is told of each payload that is not fetched any more, whether it was wanted or not.
	Ended func(id wire.Digest, how Outcome)
}

// Outcome is how a want ended.
type Outcome uint8

const (
	Held     Outcome = iota // verified and held
	Missing                 // nobody gave it, or it is unusable
	Unwanted                // the outer side has no use for it
)

// Fetch is the machine: the payloads that are wanted, and what is asked for. Its methods that are exported are at the
// end, in fetch.go.
type Fetch struct {
	*peers.Table
	cfg    Config
	disk   Disk
	relays relays

	wants     []*want // in order of arrival
	byID      map[wire.Digest]*want
	counts    map[wire.PeerID]int // wants per author
	strangers int                 // wants of the class strange
	failed    map[wire.PeerID]int // payloads that an author owes, since one of its came

	flying  int // requests in flight
	bytes   int // that they are for
	inDoubt int // how many of them are for what may never come
}

// add makes a want, nil if there is no room. vouched says that somebody who is known has the payload.
func (f *Fetch) add(id wire.Digest, s *wire.SignedHeader, ttl effect.Time, vouched bool) *want {
	author := s.Header.Author
	of := f.classOf(author, vouched)
	if f.Paused || f.counts[author] >= maxWantsPerAuthor || !f.makeRoom(of) {
		return nil
	}
	w := &want{id: id, header: s, class: of, author: source{id: author}, until: f.Now + ttl}
	f.wants = append(f.wants, w)
	f.byID[id] = w
	f.counts[author]++
	if of == strange {
		f.strangers++
	}
	return w
}

// makeRoom reports whether there is room for one more want. A stranger's takes the place of the
// oldest one of strangers that nobody is asked for now, as does any once all slots are taken.
func (f *Fetch) makeRoom(of class) bool {
	if len(f.wants) < maxWants && !(of == strange && f.strangers >= maxStrangersWants) {
		return true
	}
	i := slices.IndexFunc(f.wants, func(w *want) bool { return w.class == strange && w.state != taken && len(w.calls) == 0 })
	if i < 0 {
		return false
	}
	f.end(f.wants[i].id, Missing)
	return true
}

// end forgets the want for id, if there is one, and tells how it ended.
func (f *Fetch) end(id wire.Digest, how Outcome) {
	if w := f.byID[id]; w != nil {
		delete(f.byID, id)
		f.hangUp(w)
		i := slices.Index(f.wants, w)
		f.wants = slices.Delete(f.wants, i, i+1)
		if f.counts[w.author.id]--; f.counts[w.author.id] == 0 {
			delete(f.counts, w.author.id)
		}
		if w.class == strange {
			f.strangers--
		}
		if how == Held {
			delete(f.failed, w.author.id)
		}
	}
	f.cfg.Ended(id, how)
}

// hangUp ends the requests for w: its payload is here, or of no use any more. What else
// waits for it elsewhere would only travel in vain.
func (f *Fetch) hangUp(w *want) {
	for _, call := range slices.Clone(w.calls) {
		f.HangUp(call)
	}
}

// giveUp ends a want that nobody gave.
func (f *Fetch) giveUp(w *want, why string) {
	if w.state == asked {
		f.owes(w.author.id, 1)
	}
	f.report(w, why)
	f.end(w.id, Missing)
}

// outlived ends a want whose round has become final.
func (f *Fetch) outlived(w *want) {
	if w.state == asked {
		f.report(w, "no source had it before the round was final")
	}
	f.end(w.id, Unwanted)
}

// report says why a payload is not asked for any more.
func (f *Fetch) report(w *want, why string) {
	h := w.header.Header
	f.Event(effect.EventGaveUp, h.Author, fmt.Sprintf("payload of fragment %d round %d: %s", h.Fragment, h.Round, why))
}

// classOf is the class of a delta of an author that nobody was asked for.
func (f *Fetch) classOf(author wire.PeerID, vouched bool) class {
	stranger := f.Stranger(author)
	switch {
	case stranger && !vouched:
		return strange
	case stranger || f.Failing(author):
		return doubtful
	}
	return sure
}

// reclass decides anew whether a want comes last: its author may have become known, or failed.
// A stranger's delta is as any other once one of the same author was folded. A delta that came
// before the run began, when nobody was a stranger, comes last if its author is still unknown and
// cannot be asked, and another peer was asked in vain.
func (f *Fetch) reclass(w *want) {
	known := f.Known(w.author.id)
	if w.class == strange && known {
		w.class = doubtful
		f.strangers--
	}
	if len(w.calls) > 0 || w.class == strange {
		return // a request in flight is counted as what it was
	}
	last := w.class == doubtful || w.state == asked && f.Begun() && !f.Usable(f.Find(w.author.id))
	w.class = sure
	if f.Failing(w.author.id) || last && !known {
		w.class = doubtful
	}
}

// Failing reports whether an author is a failing source: it did not give what it announced recently.
func (f *Fetch) Failing(author wire.PeerID) bool { return f.failed[author] >= MostOwed }

// owes counts so many payloads that an author owes. That it says itself that it has none counts
// more than that nobody had one: its uplink may be thin.
func (f *Fetch) owes(author wire.PeerID, times int) {
	if _, noted := f.failed[author]; !noted && len(f.failed) >= maxWants {
		maps.DeleteFunc(f.failed, func(id wire.PeerID, _ int) bool { return f.Stranger(id) })
		if len(f.failed) >= maxWants {
			return
		}
	}
	f.failed[author] += times
}
