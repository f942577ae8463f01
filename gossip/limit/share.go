package limit

import "atoll/gossip/wire"

// share is what the authors who came by one invite may say together: as much as so many authors as it
// is meant for. Keys are free to whoever has the invite, if it has leaked. Guests have one share, whatever
// their invites are.
//
// As many authors as it is meant for have slots: who has made a delta that was folded, in that order.
// What they say is taken from the share, and is held to their own rate alone. So all the others have
// what these leave, and cannot silence them.
type share struct {
	of    [kinds]bucket
	slots map[wire.PeerID]bool
}

// share is that of an invite. Owners make few invites, and a table of members bounds how many are known.
func (l *Limiter) share(invite wire.PeerID) *share {
	s := l.shares[invite]
	if s == nil {
		s = &share{slots: map[wire.PeerID]bool{}}
		l.shares[invite] = s
	}
	return s
}

// hasSlot reports whether an author has one of so many slots, and gives it one if there is one left.
func (l *Limiter) hasSlot(s *share, author wire.PeerID, uses uint32) bool {
	if !s.slots[author] && l.folded[author] && len(s.slots) < int(uses) {
		s.slots[author] = true
	}
	return s.slots[author]
}

// shareOf is the invite whose share an author's heartbeats are of, and for how many it is meant;
// for none where nothing bounds them. Of several it is one in which the author has a slot: others
// may have given the author the rest, and used those up.
func (l *Limiter) shareOf(author wire.PeerID) (invite wire.PeerID, uses uint32) {
	bounds := l.cfg.Members.Bounds(author)
	for _, v := range bounds {
		if s := l.shares[v.Key]; s != nil && s.slots[author] {
			return v.Key, v.Uses
		}
	}
	if len(bounds) == 0 {
		return invite, 0
	}
	return bounds[0].Key, bounds[0].Uses
}

// charge notes what a message takes of its author's own, out of the bucket of its kind unless own names another, and what
// it takes of the share of the invite by which the author came.
func (l *Limiter) charge(author, invite wire.PeerID, uses uint32, kind int, own toll) {
	if own.from == nil {
		own.from = &l.meters.peek(author).of[kind]
	}
	l.tolls = append(l.tolls, own)
	if uses > 0 {
		s := l.share(invite)
		l.tolls = append(l.tolls, toll{from: &s.of[kind], perMs: own.perMs * float64(uses), size: own.size * float64(uses), owed: l.hasSlot(s, author, uses)})
	}
}

// inviteOf is the invite by which a header's author came, and for how many it is meant; for none where
// nothing bounds that.
func (l *Limiter) inviteOf(h wire.Header) (invite wire.PeerID, uses uint32) {
	c, known := l.cfg.Members.Find(h.Certificate)
	switch {
	case !known:
		return invite, 0
	case c.Invite.Guests:
		return invite, GuestsSlots
	}
	return c.Invite.Key, c.Invite.Uses
}
