package serve

import (
	"cmp"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/headers"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Payloads to one peer leave one after the other once the own uplink is known to be busy.
// Answers that leave together share the uplink, and each is as late as the last. One
// after the other the first ones are early and the last is no later. So only as much
// leaves at once as covers a round trip, and the rest waits in order of need.

// backlog counts the bytes of answers that have begun and not left. It falls at the rate of
// the uplink whatever their askers do: one that reads slowly must not hold up the others.
type backlog struct {
	bytes float64
	at    effect.Time
}

func (b *backlog) drain(now effect.Time, rate float64) {
	b.bytes = max(0, b.bytes-rate*float64(now-b.at))
	b.at = now
}

// mayBegin reports whether an answer of so many bytes may begin to leave beside so many:
// nothing else is leaving, or all of it together is gone within AheadMs. An uplink that was never
// measured takes any.
func (s *Serve) mayBegin(bytes, leaving int) bool {
	rate := s.upload()
	if rate == 0 {
		return true
	}
	s.backlog.drain(s.Now, rate)
	waiting := min(s.backlog.bytes, float64(leaving))
	return waiting == 0 || waiting+float64(bytes) <= rate*AheadMs
}

// upload is what the own uplink carries, in bytes per ms; 0 if it was never full.
func (s *Serve) upload() float64 {
	if self := s.heartbeats.Self(); self.Full {
		return self.Upload / 1000
	}
	return 0
}

// leaving are the answers whose last byte is not on its way: their bytes, and to whom.
func (s *Serve) leaving() (bytes int, to map[*peers.Peer]bool) {
	to = map[*peers.Peer]bool{}
	for _, r := range s.replies {
		if !r.left {
			bytes += r.bytes
			to[r.to] = true
		}
	}
	return bytes, to
}

// need orders the payloads that wait to leave, the most urgent first.
type need uint8

const (
	open     need = iota // of a round that is open, or was a moment ago
	further              // the same, where others have it and are to give it to the asker
	repaired             // of a round that closed long ago
	repeated             // the asker got it before
)

// needs says how urgent a parked request is for a payload of which v is known, if anything is.
func (s *Serve) needs(q parked, v *headers.Sighting) need {
	switch {
	case v == nil && s.Now < q.since+RepairWaitMs:
		return repaired
	case v == nil:
		return open
	case slices.Contains(v.Given, q.from.ID):
		return repeated
	case s.Now < q.since+RepairWaitMs && uint64(v.Header.Header.Round)+OpenRounds <= uint64(s.chain.Closed(int(v.Header.Header.Fragment))):
		return repaired
	case s.relayed(v):
		return further
	}
	return open
}

// relayed reports whether v is an own delta that others spread: this node is too thin to,
// and has given it to as many as it has to.
func (s *Serve) relayed(v *headers.Sighting) bool {
	own := v.Header.Header.Author == s.Config.Self && len(v.Given) >= OwnCopies
	return own && s.fetch.Relayed(v.ID)
}

// next answers the parked requests for payloads that are held, as far as there is room.
// Among those that are as urgent, the one whose header came first goes first: its round is
// the next to close. A peer that nothing leaves to gets its own in any case: what another
// reads slowly, and a rate that was measured by that, must not hold it up.
func (s *Serve) next() {
	line := s.line()
	if len(line) == 0 {
		return
	}
	var done []uint64
	bytes, sending := s.leaving()
	full := false
	for _, q := range line {
		full = full || !s.mayBegin(s.size(q.id), bytes)
		waits := full && (q.need > open || sending[q.from])
		if !waits && s.give(q.handle, q.from, q.id) {
			bytes += s.replies[len(s.replies)-1].bytes
			sending[q.from] = true
			done = append(done, q.handle)
		}
	}
	if len(done) > 0 {
		s.unpark(func(q parked) bool { return slices.Contains(done, q.handle) })
	}
}

// crowded reports whether payloads wait for the uplink.
func (s *Serve) crowded() bool {
	return s.upload() > 0 && slices.ContainsFunc(s.parked, func(q parked) bool { return s.chain.Has(q.id) })
}

// inLine is a request and what its place in the line depends on.
type inLine struct {
	parked
	need need
	met  uint64 // its header, in the order in which they came
}

// line are the parked requests for payloads that are held, in the order of their need.
func (s *Serve) line() (line []inLine) {
	for _, q := range s.parked {
		if !s.chain.Has(q.id) {
			continue
		}
		v := s.seen.Find(q.id)
		l := inLine{parked: q, need: s.needs(q, v)}
		if v != nil {
			l.met = v.Met
		}
		line = append(line, l)
	}
	slices.SortStableFunc(line, func(a, b inLine) int {
		return cmp.Or(cmp.Compare(a.need, b.need), cmp.Compare(a.met, b.met))
	})
	return line
}

// unpark forgets the parked requests that pick selects.
func (s *Serve) unpark(pick func(parked) bool) {
	s.parked = slices.DeleteFunc(s.parked, func(q parked) bool {
		out := pick(q)
		if out {
			peerOf(q.from).parked--
		}
		return out
	})
}

// give sends a payload that is held, if there is a slot for it.
func (s *Serve) give(handle uint64, p *peers.Peer, id wire.Digest) bool {
	if !s.admit(reply{handle: handle, to: p, bytes: s.size(id), id: id}) {
		return false
	}
	if v := s.seen.Find(id); v != nil {
		v.Give(p.ID)
	}
	s.Emit(effect.ReplyPayload{Handle: handle, ID: id})
	return true
}

// size is the size of a payload held, or of a chunk if the header is forgotten.
func (s *Serve) size(id wire.Digest) int {
	if v := s.seen.Find(id); v != nil {
		return int(v.Header.Header.Size)
	}
	return wire.ChunkSize
}
