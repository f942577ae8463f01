package fetch

import (
	"errors"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Pump asks for as much as there is room for: the oldest wants first, and after them those that
// come last. The strangers' are the last of these, the newest first: the older ones were asked for
// in vain.
func (f *Fetch) Pump() {
	for of := sure; of < strange; of++ {
		for i := 0; i < len(f.wants) && f.hasRoom(); {
			w := f.wants[i]
			if w.class == of {
				f.advance(w)
			}
			if i < len(f.wants) && f.wants[i] == w {
				i++
			}
		}
	}
	for i := len(f.wants) - 1; i >= 0 && f.hasRoom() && f.inDoubt < maxDoubtful; i-- {
		if i < len(f.wants) && f.wants[i].class == strange {
			f.advance(f.wants[i])
		}
	}
}

// hasRoom reports whether one more request may be in flight.
func (f *Fetch) hasRoom() bool { return f.flying < f.disk.Allows(f.Now, MaxPulls) }

// advance asks the next source of w, if it has room, and gives up if there is
// none left.
func (f *Fetch) advance(w *want) {
	if w.over(f.Now) || w.full(f.Now) || !f.hasRoom() || w.class > sure && f.inDoubt >= maxDoubtful {
		return
	}
	switch s, left := f.pick(w); {
	case s != nil && !f.linkFull(w):
		f.ask(w, s)
	case s == nil && !left && len(w.calls) == 0:
		f.giveUp(w, "no source had it")
	}
}

// linkFull reports whether what is asked for is all that the capped downlink of this node
// carries soon. Two requests are under way in any case: one may wait for its payload.
func (f *Fetch) linkFull(w *want) bool {
	ahead := f.cfg.DownMs * DownAheadMs
	return ahead > 0 && f.flying >= MinDownCalls && float64(f.bytes+w.size()) > ahead
}

// SetDown changes Config.DownMs.
func (f *Fetch) SetDown(bytesPerMs float64) { f.cfg.DownMs = bytesPerMs }

// ask requests the payload of w from s. After its timeout another source is asked too; the
// request goes on for as long as a transfer may take again, so that bytes under way need
// not travel twice.
func (f *Fetch) ask(w *want, s *source) {
	p, from := f.Find(s.id), s.id
	wait, transfer := f.timeouts(w, s, p)
	if w.state == waiting && w.class == sure {
		w.until = f.Now + max(wantTtlMs, wantAsks*(wait+2*transfer)) // one that waited for its turn has as long as any
	}
	w.state = asked
	s.tries++
	s.asked = true
	w.due = f.Now + wait + transfer
	asked, began, late := *s, f.Now, peerOf(p).late
	f.fly(w, &asked, p, 1)
	request := wire.Request{Kind: wire.GetPayload, Digest: w.id, WaitMs: uint32(wait)}
	most := w.size() + len(wire.Response{Status: wire.OK}.Encode())
	var call uint64
	call = f.Call(from, request, most, wait+2*transfer, func(b []byte, err error) {
		w.calls = slices.DeleteFunc(w.calls, func(id uint64) bool { return id == call })
		f.fly(w, &asked, p, -1)
		if s := w.find(from); s != nil {
			s.asked = false
		}
		if errors.Is(err, effect.ErrHungUp) {
			return
		}
		peerOf(p).ended(f.Now-began-wait, transfer, late, err)
		if err == nil && f.Took > 0 {
			f.measure(p, len(b))
		}
		f.answered(w, asked.id, b, err)
	})
	w.calls = append(w.calls, call)
}

// fly adds to the requests in flight, of w and of a peer.
func (f *Fetch) fly(w *want, s *source, p *peers.Peer, n int) {
	of := peerOf(p)
	if s.relay {
		of.relayed += n
	} else {
		of.calls += n
	}
	of.bytes += n * w.size()
	f.bytes += n * w.size()
	f.flying += n
	if w.class > sure {
		f.inDoubt += n
	}
}

// measure takes a payload of so many bytes into what its peer is known to send. In a run of long transfers
// the first one takes the place of the guess, however much slower it was.
func (f *Fetch) measure(p *peers.Peer, bytes int) {
	if p.Sampled(bytes, f.Took, f.cfg.SweepMs > 0 && !Measured(p)) {
		peerOf(p).measured = true
	}
}

func (f *Fetch) answered(w *want, from wire.PeerID, b []byte, err error) {
	switch {
	case f.byID[w.id] != w || w.state == taken:
		// Ended or came another way meanwhile: only the slot is freed.
	case errors.Is(err, wire.ErrBusy):
		f.rest(w, from)
		if s := w.find(from); s != nil {
			s.tries-- // it does not count
		}
	case err != nil:
		if from == w.author.id && errors.Is(err, wire.ErrNotFound) {
			f.owes(from, MostOwed)
		}
		f.rest(w, from)
	default:
		f.came(w, from, b)
	}
	f.Pump()
}

// rest leaves a source alone for a while, in which others are asked.
func (f *Fetch) rest(w *want, from wire.PeerID) {
	w.due = min(w.due, f.Now)
	if s := w.find(from); s != nil {
		s.after = f.Now + BusyRetryMs
	}
}

// came takes a payload.
func (f *Fetch) came(w *want, from wire.PeerID, b []byte) {
	if bad := w.header.Header.CheckPayload(b); bad != nil {
		f.Misbehaved(from, bad.Error())
		w.due = min(w.due, f.Now)
		if s := w.find(from); s != nil {
			s.tries = MaxTries // it is not asked again
		}
		return
	}
	f.take(w, b)
	switch p := f.Find(w.via); {
	case p == nil || w.via == w.author.id:
	case from == w.via:
		f.relays.gave(p)
	case from == w.author.id && f.relays.failed(p):
		f.goRound(w.via)
	}
}

// take hands up the payload of w.
func (f *Fetch) take(w *want, payload []byte) {
	w.state, w.until = taken, f.Now+storeTtlMs
	f.hangUp(w)
	f.Emit(effect.Fetched{ID: w.id, Header: w.header, Payload: payload})
}

// goRound has all that waits for a relay come another way.
func (f *Fetch) goRound(relay wire.PeerID) {
	load := f.relays.load()
	for _, w := range f.wants {
		if w.via == relay && w.state != taken {
			w.due = min(w.due, f.Now)
			w.goVia(f.relays.via(load, w.id, w.author.id))
		}
	}
}
