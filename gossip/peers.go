package gossip

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// peer is what this node knows of another one, connected or only heard of. What all
// machines share comes first, then what those that keep the table know of it, then the
// notes of the others.
//
// A large run is a heartbeat of everybody, all the time, so what a heartbeat touches stands
// together.
type peer struct {
	id          wire.PeerID
	connected   bool
	everHeard   bool
	silent      bool            // heard nothing for silentHeartbeats of its periods; set by watch
	quiet       bool            // heard nothing for quietHeartbeats of its periods; set by watch
	heard       Time            // last sign of life
	heartbeat   *wire.Heartbeat // the newest
	heartbeatAt Time            // when heartbeat arrived
	refused     string          // why it was marked, "" if it was not
	faults      int             // breaches of the protocol since it was last dropped
	rate        rate
	way         way

	heartbeats heartbeatsPeer
	watch      watchPeer
	peerList   peerListPeer
	slot       slotPeer
	notes      []any // one of each machine: see note
}

// note is what a machine keeps of a peer, by its type: only the machine that has the type
// can name it.
func note[T any](p *peer) *T {
	for _, n := range p.notes {
		if n, ok := n.(*T); ok {
			return n
		}
	}
	panic("gossip: no machine keeps this of a peer")
}

// peersConfig is what the peers go by.
type peersConfig struct {
	Self           wire.PeerID
	Key            ed25519.PrivateKey // signs heartbeats
	Run            wire.RunID
	Incarnation    int64
	Trusted        []wire.PeerID // peers named in the join link
	Members        *member.Table // nil where everybody is admitted
	HeartbeatMinMs int64
	TargetPeers    int
	Common         []uint32
	OpenRecord     func(hello.Signed) (*hello.Record, error)
	Know           func(author wire.PeerID) // is told of those that are more than a key
	Notes          func() []any             // what other machines keep of a peer that is new, see note
}

// peersChain is what the peers ask about the rounds that this node holds, see Chain.
type peersChain interface {
	Fragments() int
	Closed(f int) uint32
	ChainDigest(f int, r uint32) (wire.Digest, bool)
	StateDigest(f int, r uint32) (wire.Digest, bool)
	Contributed(author wire.PeerID) bool
	FoldedTokens() uint64
	TokensAt(rounds []uint32) (tokens uint64, known bool)
}

// peers is the table of peers, looked up by id and walked in order of id, and who of them is
// there, known and live.
type peers struct {
	*effect.Queue
	cfg    peersConfig
	chain  peersChain
	common []uint32 // per fragment: the last round at which a peer showed this node's chain
	period int64    // own heartbeat period in ms, as of the last tick
	moves  bool     // addresses change while nodes run, as on the internet

	byID   map[wire.PeerID]*peer
	list   []*peer
	linked []*peer // the connected ones
	others int     // heard recently, as of the last watch; of newcomers no more than count
	usual  int64   // heartbeat period of half of those that contributed, as of then; 0 if there are none
	cache  lookCache
}

func newPeers(q *effect.Queue, cfg peersConfig, chain peersChain) *peers {
	t := &peers{Queue: q, cfg: cfg, chain: chain, byID: map[wire.PeerID]*peer{}, common: make([]uint32, chain.Fragments())}
	copy(t.common, cfg.Common)
	t.period = cfg.HeartbeatMinMs
	return t
}

func (t *peers) find(id wire.PeerID) *peer { return t.byID[id] }

func byPeerID(p *peer, id wire.PeerID) int { return p.id.Compare(id) }

func (t *peers) add(id wire.PeerID) *peer {
	p := &peer{id: id, rate: firstRate, peerList: peerListPeer{record: noRecord}, notes: t.cfg.Notes()}
	i, _ := slices.BinarySearchFunc(t.list, id, byPeerID)
	t.list = slices.Insert(t.list, i, p)
	t.byID[id] = p
	return p
}

func (t *peers) remove(p *peer) {
	i, ok := slices.BinarySearchFunc(t.list, p.id, byPeerID)
	if ok {
		t.list = slices.Delete(t.list, i, i+1)
		delete(t.byID, p.id)
		t.cache.changes++
	}
}

// link notes that a peer is connected, or not any more.
func (t *peers) link(p *peer, connected bool) {
	if p.connected == connected {
		return
	}
	p.connected = connected
	t.cache.changes++ // one that has sent no heartbeat yet is expected while it is connected
	i, _ := slices.BinarySearchFunc(t.linked, p.id, byPeerID)
	if connected {
		t.linked = slices.Insert(t.linked, i, p)
	} else {
		t.linked = slices.Delete(t.linked, i, i+1)
	}
}

// victim is the entry to give up for a new one. It is not connected, and was
// never heard or was heard longest ago. nil if all are connected.
func (t *peers) victim() *peer {
	var v *peer
	for _, p := range t.list {
		if !p.connected && (v == nil || olderThan(p, v)) {
			v = p
		}
	}
	return v
}

func olderThan(p, q *peer) bool {
	if p.everHeard != q.everHeard {
		return !p.everHeard
	}
	return p.heard < q.heard
}

// ensure returns the entry of id, making one if there is room. Only a peer
// that is connecting (must) displaces others that are still live.
func (t *peers) ensure(id wire.PeerID, must bool) *peer {
	if p := t.find(id); p != nil {
		return p
	}
	if len(t.list) >= maxPeers {
		v := t.victim()
		if v == nil || !must && t.keeps(v) {
			return nil
		}
		t.remove(v)
	}
	p := t.add(id)
	if p.peerList.founder = !t.begun(); p.peerList.founder {
		t.cfg.Know(id)
	}
	return p
}

// keeps reports whether an entry is worth more than a newcomer that is only heard of. Of
// a peer that never contributed the period that it names does not count: with one heartbeat
// in ten minutes, keys that cost nothing would fill the table.
func (t *peers) keeps(p *peer) bool {
	return t.heardLately(p) && (t.Now-p.heard <= silentHeartbeats*t.heartbeatPeriod() || t.contributed(p))
}

// misbehaved reports a peer that broke the protocol, remembers why, and has
// it dropped if that goes on.
func (t *peers) misbehaved(id wire.PeerID, reason string) {
	t.Emit(Misbehaved{Peer: id, Reason: reason})
	p := t.find(id)
	if p == nil {
		return
	}
	if p.refused != reason {
		p.refused = reason
		t.Event(EventMisbehaved, id, reason)
	}
	p.faults++
	if p.faults >= maxFaults && p.connected {
		p.faults = 0
		t.Emit(Drop{Peer: id, Reason: reason})
	}
}

// usable reports whether p can be asked now: connected and heard recently.
func (t *peers) usable(p *peer) bool {
	return p != nil && p.connected && t.heardLately(p)
}

// guest reports whether a peer is a guest of the run: keys are free to guests, so their claims count for nothing.
func (t *peers) guest(id wire.PeerID) bool { return t.cfg.Members.Guest(id) }

// trusts reports whether the link names a peer that is no guest.
func (t *peers) trusts(id wire.PeerID) bool {
	return slices.Contains(t.cfg.Trusted, id) && !t.guest(id)
}

// contributed reports whether p is more than a key that anybody can make: the link
// names it, or a delta of it was folded here. A guest never is.
func (t *peers) contributed(p *peer) bool { return t.trusts(p.id) || t.chain.Contributed(p.id) }

// poll counts the live peers that may vote, and how many of them say so.
func (t *peers) poll(votes, says func(*peer) bool) (peers, yes int) {
	for _, p := range t.list {
		if t.live(p) && votes(p) {
			peers++
			if says(p) {
				yes++
			}
		}
	}
	return peers, yes
}

// lot is a number above 0 and at most 1 that the hash of a delta and a peer draws.
func lot(id wire.Digest, peer wire.PeerID) float64 {
	h := wire.Sum(append(id[:], peer[:]...))
	return (float64(binary.BigEndian.Uint64(h[:])>>11) + 1) / (1 << 53)
}
