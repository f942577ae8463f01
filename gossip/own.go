package gossip

import (
	"cmp"
	"slices"

	"atoll/gossip/wire"
)

// own asks peers which deltas of this node they know of, for a key whose disk
// does not: signing one of those rounds again would bar it from the run.
type own struct {
	*env
	wanted  bool
	known   bool // OwnKnown was said
	asked   map[wire.PeerID]bool
	flying  int
	answers int
	first   Time // when the first answer came
}

// tick asks those that can be asked and were not, those that connect later as
// well: one that knows more may be among them.
func (o *own) tick() {
	if !o.wanted {
		return
	}
	for _, p := range o.peers.list {
		if o.usable(p) && !o.asked[p.id] && o.now >= p.ownAfter && len(o.asked) < maxPeers {
			o.ask(p)
		}
	}
	if !o.known && o.enough() {
		o.known = true
		o.emit(OwnKnown{})
	}
}

// enough reports whether the answers so far will do: of all who are here, some
// beats after the first, as the peer that held the newest delta may be the last to
// connect. Where somebody does not answer, the others have to do after a while.
func (o *own) enough() bool {
	switch since := int64(o.now - o.first); {
	case o.answers == 0:
		return false
	case o.flying > 0:
		return since >= callMs
	default:
		return since >= gatherBeats*o.beatPeriod()
	}
}

func (o *own) ask(p *peer) {
	o.asked[p.id] = true
	o.flying++
	o.call(p.id, wire.Request{Kind: wire.GetOwn}, wire.GetOwn.MaxResponse(), callMs, func(b []byte, err error) {
		o.flying--
		if err == nil {
			err = o.take(p, b)
		}
		if err != nil {
			p.ownAfter = o.now + ownRetryMs
			delete(o.asked, p.id)
			return
		}
		o.counts()
	})
}

// counts an answer.
func (o *own) counts() {
	if o.answers == 0 {
		o.first = o.now
	}
	o.answers++
}

// take believes what this node's own key has signed, whoever shows it.
func (o *own) take(p *peer, b []byte) error {
	headers, err := wire.DecodeHeaders(b)
	if err != nil {
		o.misbehaved(p.id, err.Error())
		return err
	}
	for _, h := range headers {
		if h.Header.Author != o.cfg.Self || !o.fragmentOf(h.Header.Fragment) || h.Verify(o.cfg.Run) != nil {
			continue // of no use, and no reason to ask again
		}
		o.emit(OwnHeader{Header: h})
	}
	return nil
}

// newest tells a peer its newest deltas, now and then: looking for them goes
// through all headers of the window, and who was told once knows.
func (s *serve) newest(handle uint64, p *peer) {
	if s.now < p.toldOwn {
		s.status(handle, wire.Busy)
		return
	}
	p.toldOwn = s.now + ownToldMs
	s.ok(handle, wire.EncodeHeaders(s.newestOf(p.id)))
}

// newestOf are the headers of an author's highest rounds that this node has met,
// one a fragment, with or without their payloads.
func (s *serve) newestOf(author wire.PeerID) []wire.SignedHeader {
	newest := s.chain.Newest(author)
	for _, v := range s.seen.ring {
		h := v.header.Header
		if h.Author != author {
			continue
		}
		i := slices.IndexFunc(newest, func(n wire.SignedHeader) bool { return n.Header.Fragment == h.Fragment })
		switch {
		case i < 0:
			newest = append(newest, v.header)
		case newest[i].Header.Round < h.Round:
			newest[i] = v.header
		}
	}
	slices.SortFunc(newest, func(a, b wire.SignedHeader) int { return cmp.Compare(a.Header.Fragment, b.Header.Fragment) })
	return newest
}
