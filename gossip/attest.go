package gossip

import (
	"cmp"
	"fmt"
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// A snapshot is taken on the claim of a peer that the link names. Otherwise more than half
// of the peers that know its rounds must show the same chain and state there. A peer
// that has forgotten the rounds, or has not come to them, does not count.

// ballot counts the peers by what they show at the rounds of a manifest: each
// camp has a position of its own.
type ballot struct {
	camps []camp // the snapshot source is in the first
	asked int
	open  int // answers still awaited
	until Time
	over  bool // it was decided
}

type camp struct {
	position wire.Digest
	peers    int
}

// String is the count so far, for people.
func (b ballot) String() string {
	known := 0
	for _, c := range b.camps {
		known += c.peers
	}
	return fmt.Sprintf("attested by %d of %d", b.camps[0].peers, known)
}

// add counts a peer.
func (b *ballot) add(position wire.Digest) {
	i := slices.IndexFunc(b.camps, func(c camp) bool { return c.position == position })
	if i < 0 {
		b.camps = append(b.camps, camp{position, 1})
		return
	}
	b.camps[i].peers++
}

// result is how many peers are of the source's position, of the largest other
// one, and of any.
func (b *ballot) result() (yes, rival, known int) {
	yes = b.camps[0].peers
	known = yes
	for _, c := range b.camps[1:] {
		rival = max(rival, c.peers)
		known += c.peers
	}
	return yes, rival, known
}

// attest asks other peers what they know of the manifest's rounds, unless the
// source is believed anyway: the link names it, or repair chose its chain.
func (s *snapshot) attest() {
	s.ballot = ballot{camps: []camp{{position: positionOf(s.manifest), peers: 1}}, until: s.Now + attestMs}
	if s.only || s.Trusts(s.source) {
		s.begin()
		return
	}
	s.stage = attesting
	if genesisOnly(s.manifest) {
		s.attestGenesis()
	} else {
		s.askAttesters(s.manifest, &s.ballot, s.attesters(s.source), s.count)
	}
	s.count()
}

// positionOf is the position of a manifest's author.
func positionOf(m wire.Manifest) wire.Digest {
	var b []byte
	for _, f := range m.Fragments {
		if f.Round > 0 {
			b = append(append(b, f.Chain[:]...), f.State[:]...)
		}
	}
	return wire.Sum(b)
}

// attestGenesis counts by what the last heartbeats say: a run that has folded
// something is not at genesis.
func (s *snapshot) attestGenesis() {
	began := wire.Sum([]byte("began"))
	for _, p := range s.attesters(s.source) {
		switch {
		case p.Heartbeat == nil:
		case p.Heartbeat.Folded > 0:
			s.ballot.add(began)
		default:
			s.ballot.add(s.ballot.camps[0].position)
		}
	}
}

// attesters are the peers that may know something of the run, without a source.
// Contributors come first, then the rest by lot: keys are free, and a liar can choose
// the ids of its own.
func (s *snapshot) attesters(source wire.PeerID) []*peers.Peer {
	var out []*peers.Peer
	for _, p := range s.List {
		if p.ID != source && s.isSource(p) {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(p, q *peers.Peer) int {
		return cmp.Or(cmp.Compare(peers.BoolRank(s.Contributed(q)), peers.BoolRank(s.Contributed(p))), s.lot(p.ID).Compare(s.lot(q.ID)))
	})
	return out[:min(len(out), maxAttesters)]
}

// askAttesters asks peers for chain and state at the rounds of a manifest, which
// stand in front of the range that begins after each. counted is told of each answer.
func (s *snapshot) askAttesters(m wire.Manifest, b *ballot, peers []*peers.Peer, counted func()) {
	var ranges []wire.Range
	for f, fm := range m.Fragments {
		if fm.Round > 0 && fm.Round < ^uint32(0) {
			ranges = append(ranges, wire.Range{Fragment: uint16(f), From: fm.Round + 1, To: fm.Round + 1})
		}
	}
	attempt := s.attempt
	for _, p := range peers {
		b.asked++
		b.open++
		request := wire.Request{Kind: wire.GetRounds, Ranges: ranges}
		s.Call(p.ID, request, wire.GetRounds.MaxResponse(), attestMs, func(body []byte, err error) {
			if attempt == s.attempt && !b.over {
				b.open--
				s.attested(b, p, ranges, body, err)
				counted()
			}
		})
	}
}

// attested counts the answer of one peer, if it knows the rounds.
func (s *snapshot) attested(votes *ballot, p *peers.Peer, asked []wire.Range, body []byte, err error) {
	if err != nil {
		return
	}
	answers, err := wire.DecodeRounds(body, asked)
	if err != nil {
		s.Misbehaved(p.ID, err.Error())
		return
	}
	var b []byte
	for _, a := range answers {
		if a.Chain.IsZero() || a.State.IsZero() {
			return
		}
		b = append(append(b, a.Chain[:]...), a.State[:]...)
	}
	votes.add(wire.Sum(b))
}

// count decides once everybody has answered, or the time is up.
func (s *snapshot) count() {
	if s.ballot.open > 0 && s.Now < s.ballot.until {
		return
	}
	s.ballot.over = true
	yes, rival, known := s.ballot.result()
	switch {
	case 2*yes > known:
		s.Event(EventJoin, s.source, s.verdict(known))
		s.begin()
	case s.disputes >= maxDisputes && yes >= rival:
		s.Event(EventJoin, s.source, fmt.Sprintf("takes a snapshot that only %d of %d peers show: after %d tries no other snapshot has more support", yes, known, s.disputes))
		s.begin()
	default:
		s.dispute(known-yes, known)
	}
}

// verdict says on whose claim the snapshot is taken.
func (s *snapshot) verdict(known int) string {
	if known < minAttesters {
		return fmt.Sprintf("takes a snapshot of a peer that the link does not name, %v: fewer than %d peers know its rounds", s.ballot, minAttesters)
	}
	return "takes a snapshot " + s.ballot.String()
}

// dispute leaves a source for another one.
func (s *snapshot) dispute(others, known int) {
	s.disputes++
	if p := s.Find(s.source); p != nil {
		snapshotOf(p).badSnapshots++
	}
	s.resume = nil
	why := fmt.Sprintf("%d of %d peers that know these rounds show another chain or state", others, known)
	s.Event(EventJoin, s.source, "does not take this snapshot: "+why)
	s.another(why)
}
