package gossip

import (
	"fmt"

	"atoll/gossip/wire"
)

// The run goes on while a joiner fetches tips, and what it folds meanwhile has to be fetched on top. So on its way the
// joiner takes newer tips of the fragments of which it has asked for nothing yet: their deltas are in there.

// renewal is when and how a transfer asks for newer tips.
type renewal struct {
	asks  bool  // an answer, or a vote on it, is awaited
	from  int64 // no sooner than that many bytes are stored
	after Time  // and not before
}

// next lets a part of the transfer, and a while, pass before newer tips are asked for.
func (r *renewal) next(now Time, t *transfer) {
	r.from, r.after = t.have+t.total/renewParts, now+renewMs
}

// renew asks a donor for newer tips, if it is time and there are any.
func (s *snapshot) renew() {
	r := &s.transfer.renewal
	if r.asks || s.transfer.have < r.from || s.now < r.after || s.only || !s.joining() {
		return
	}
	r.next(s.now, &s.transfer)
	p := s.renewer()
	if p == nil {
		return
	}
	at, some := s.outdated(p)
	if !some {
		return
	}
	r.asks = true
	attempt := s.attempt
	s.call(p.id, wire.Request{Kind: wire.GetTips, At: at}, s.mostManifest(), s.tipsMs(), func(b []byte, err error) {
		if attempt != s.attempt {
			return
		}
		m, err := s.open(p, b, err)
		if err != nil {
			r.asks = false
			return
		}
		s.attestRenewal(p, at, m)
	})
}

// renewer is the peer to ask for newer tips: the donor, or another one that gives chunks.
func (s *snapshot) renewer() (other *peer) {
	for _, p := range s.peers.list {
		switch {
		case !s.transfer.recruits[p.id] || !s.mayDonate(p):
		case p.id == s.donor:
			return p
		case other == nil:
			other = p
		}
	}
	return other
}

// outdated asks for the newest tip of each fragment that is not begun and in which p has closed some rounds since, and
// says whether there is one.
func (s *snapshot) outdated(p *peer) (at []uint32, some bool) {
	at = s.noTips()
	for f, fm := range s.manifest.Fragments {
		if p.beat != nil && !s.transfer.begun[f] && p.beat.Closed[f] >= fm.Closed+renewRounds {
			at[f], some = wire.NewestTip, true
		}
	}
	return at, some
}

// noTips asks for no tip of any fragment.
func (s *snapshot) noTips() []uint32 {
	at := make([]uint32, len(s.manifest.Fragments))
	for f := range at {
		at[f] = wire.NoTip
	}
	return at
}

// attestRenewal asks other peers what they know of newer tips, unless the donor is believed anyway.
func (s *snapshot) attestRenewal(p *peer, at []uint32, m wire.Manifest) {
	if s.trusts(p.id) {
		s.transfer.renewal.asks = false
		s.take(p, at, m)
		return
	}
	b := newBallot(s.now, m)
	count := func() {
		if b.open > 0 {
			return
		}
		b.over = true
		s.transfer.renewal.asks = false
		if yes, _, known := b.result(); 2*yes > known {
			s.take(p, at, m)
		}
	}
	s.askAttesters(m, &b, count)
	count()
}

// take puts newer tips in the place of those that are still not begun, and asks the other donors for the same.
func (s *snapshot) take(p *peer, asked []uint32, m wire.Manifest) {
	t := &s.transfer
	at, n := s.noTips(), 0
	for f, fm := range m.Fragments {
		if asked[f] == wire.NewestTip && !t.begun[f] && fm.Round > s.manifest.Fragments[f].Round {
			s.manifest.Fragments[f], at[f] = fm, fm.Round
			n++
		}
	}
	if n == 0 {
		return
	}
	s.list()
	s.resume = roundsOf(s.manifest)
	s.event(EventSnapshot, p.id, fmt.Sprintf("takes newer tips of %d fragments", n))
	s.emit(Fetching{At: s.resume})
	for h := range t.holds {
		if at[h.fragment] != wire.NoTip {
			delete(t.holds, h)
		}
	}
	s.donates(p.id, m, at)
	for _, q := range s.peers.list {
		if q != p && t.recruits[q.id] && s.usable(q) {
			s.askTips(q, at)
		}
	}
	s.pump()
}
