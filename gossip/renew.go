package gossip

import (
	"fmt"
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// The run goes on while a joiner fetches a snapshot, and what it folds meanwhile has to be fetched
// on top. So on its way the joiner takes newer tips of the fragments that are not begun: their
// deltas are in there. It does so only if the snapshot source is still on the chains of the first
// snapshot, and if no fewer peers have the newer tip than the older one.

// renewal is when newer tips are asked for.
type renewal struct {
	asks  bool  // it is under way
	from  int64 // no sooner than that many bytes are stored
	after Time  // and not before
}

// next lets a part of the transfer, and a while, pass before newer tips are asked for.
func (r *renewal) next(now Time, t *transfer) {
	r.from, r.after = t.have+t.total/renewParts, now+renewMs
}

// offer is newer tips that the source has.
type offer struct {
	manifest wire.Manifest // of the transfer, with these in it
	rounds   []uint32      // of them, and NoTip for all others
	has      map[wire.PeerID]wire.Manifest
	votes    ballot
	open     int // answers of other sources still awaited
}

// renew asks the source for newer tips, if it is time and it has some.
func (s *snapshot) renew() {
	r := &s.transfer.renewal
	if r.asks || s.transfer.have < r.from || s.Now < r.after || s.awaitsRecruits() || s.crowd() {
		return
	}
	old := s.outdated()
	if slices.Contains(old, true) && s.askNewer(old) {
		r.next(s.Now, &s.transfer)
	}
}

// crowd reports whether others join as well. Who joins at the same time takes the same snapshot, and gives it to the others
// once it is in. Sources keep few snapshots that they cut for joiners.
func (s *snapshot) crowd() bool {
	return slices.ContainsFunc(s.List, func(p *peers.Peer) bool {
		return s.Usable(p) && p.Heartbeat != nil && p.Heartbeat.State == wire.Joining
	})
}

// awaitsRecruits reports whether a peer has yet to say whether it is a source: it would give the
// snapshot that it was asked for.
func (s *snapshot) awaitsRecruits() bool {
	return slices.ContainsFunc(s.List, func(p *peers.Peer) bool {
		_, answered := s.transfer.holds[holding{p.ID, 0}]
		return s.transfer.recruits[p.ID] && !answered && s.Usable(p)
	})
}

// begun reports whether some chunk of a fragment was stored or asked for.
func (s *snapshot) begun(f int) bool {
	return slices.ContainsFunc(s.manifest.Fragments[f].Chunks, func(d wire.Digest) bool {
		return s.transfer.chunks[s.transfer.at[d]].state != chunkMissing
	})
}

// brings reports whether a tip that a joiner has yet to begin may have folded a delta by then. If not, the payload is
// fetched with what else came since.
func (s *snapshot) brings(h wire.Header) bool {
	return s.stage == fetching && s.heartbeats.Joining() && !s.begun(int(h.Fragment))
}

// outdated reports of each fragment whether it is not begun, and the source has closed some rounds of it since.
func (s *snapshot) outdated() []bool {
	p := s.Find(s.source)
	if p == nil || p.Heartbeat == nil {
		return nil
	}
	out := make([]bool, len(s.manifest.Fragments))
	for f, fm := range s.manifest.Fragments {
		closed := p.Heartbeat.Closed[f]
		out[f] = closed > fm.Closed && closed-fm.Closed >= renewRounds && !s.begun(f)
	}
	return out
}

// askNewer asks the source for its newest tips of some fragments. It reports whether it can be asked.
func (s *snapshot) askNewer(fragments []bool) bool {
	p := s.Find(s.source)
	if s.only || !s.heartbeats.Joining() || p == nil || !s.transfer.recruits[s.source] || !s.isSource(p) {
		return false
	}
	at := s.noTips()
	for f, asked := range fragments {
		if asked {
			at[f] = wire.NewestTip
		}
	}
	s.transfer.renewal.asks = true
	s.askMore(p, at, func(m wire.Manifest, err error) {
		if err == nil {
			s.offered(p, fragments, m)
		} else {
			s.renewed()
		}
	})
	return true
}

// renewed ends a renewal, whatever came of it.
func (s *snapshot) renewed() {
	s.transfer.renewal.asks = false
	s.pump()
}

// noTips asks for no tip of any fragment.
func (s *snapshot) noTips() []uint32 {
	return slices.Repeat([]uint32{wire.NoTip}, len(s.manifest.Fragments))
}

// offered asks others whether they have the tips that the source offers, and what they and the source know of the chains.
func (s *snapshot) offered(p *peers.Peer, asked []bool, m wire.Manifest) {
	n := &offer{manifest: s.manifest, rounds: s.noTips(), has: map[wire.PeerID]wire.Manifest{p.ID: m}}
	n.manifest.Fragments = slices.Clone(s.manifest.Fragments)
	some := false
	for f, fm := range m.Fragments {
		if asked[f] && fm.Round > s.manifest.Fragments[f].Round {
			n.manifest.Fragments[f], n.rounds[f], some = fm, fm.Round, true
		}
	}
	if !some {
		s.renewed()
		return
	}
	n.votes = ballot{camps: []camp{{position: positionOf(n.manifest)}}}
	voters := []*peers.Peer{p}
	if !s.Trusts(p.ID) {
		voters = append(voters, s.attesters(p.ID)...)
	}
	decide := func() {
		if n.open == 0 && n.votes.open == 0 {
			s.decide(n)
		}
	}
	s.askAttesters(n.manifest, &n.votes, voters, decide)
	for _, q := range s.List {
		if q != p && s.transfer.recruits[q.ID] && s.Usable(q) {
			n.open++
			s.askMore(q, n.rounds, func(m wire.Manifest, err error) {
				n.open--
				if err == nil {
					n.has[q.ID] = m
				}
				decide()
			})
		}
	}
}

// decide puts the newer tips in the place of older ones that are still not begun, if most who know the chains show these.
func (s *snapshot) decide(n *offer) {
	if yes, _, known := n.votes.result(); 2*yes > known && s.transfer.recruits[s.source] {
		s.accept(n)
	}
	s.renewed()
}

func (s *snapshot) accept(n *offer) {
	taken := 0
	for f, fm := range n.manifest.Fragments {
		if n.rounds[f] == wire.NoTip || s.begun(f) || n.holders(s, f) < s.holders(f) {
			continue
		}
		taken++
		s.manifest.Fragments[f] = fm
		for _, p := range s.List {
			delete(s.transfer.holds, holding{p.ID, f})
			if m, told := n.has[p.ID]; told {
				s.transfer.holds[holding{p.ID, f}] = sameChunks(fm, m.Fragments[f])
			}
		}
	}
	if taken == 0 {
		return
	}
	s.list()
	s.resume = roundsOf(s.manifest)
	s.Event(EventSnapshot, s.source, fmt.Sprintf("takes newer tips of %d fragments", taken))
	s.Emit(Fetching{At: s.resume})
}

// holders counts the peers that have all chunks of a newer tip.
func (n *offer) holders(s *snapshot, f int) (count int) {
	fm := n.manifest.Fragments[f]
	for id, m := range n.has {
		count += peers.BoolRank(s.Usable(s.Find(id)) && sameChunks(fm, m.Fragments[f]) == len(fm.Chunks))
	}
	return count
}

// holders counts the peers that have all chunks of the tip that is fetched.
func (s *snapshot) holders(f int) (count int) {
	for _, p := range s.List {
		count += peers.BoolRank(s.Usable(p) && s.transfer.holds[holding{p.ID, f}] == len(s.manifest.Fragments[f].Chunks))
	}
	return count
}

// roundsOf are the rounds of a manifest's tips.
func roundsOf(m wire.Manifest) []uint32 {
	at := make([]uint32, len(m.Fragments))
	for f, fm := range m.Fragments {
		at[f] = fm.Round
	}
	return at
}
