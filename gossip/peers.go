package gossip

import (
	"encoding/binary"
	"slices"

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

// peers is the table of peers: looked up by id, walked in order of id.
type peers struct {
	fresh  func() []any // the notes of a new peer
	byID   map[wire.PeerID]*peer
	list   []*peer
	linked []*peer // the connected ones
	live   int     // heard recently, as of the last watch; of newcomers no more than count
	usual  int64   // heartbeat period of half of those that contributed, as of then; 0 if there are none
	cache  lookCache
}

func newPeers(fresh func() []any) peers {
	return peers{fresh: fresh, byID: map[wire.PeerID]*peer{}}
}

func (t *peers) find(id wire.PeerID) *peer { return t.byID[id] }

func byPeerID(p *peer, id wire.PeerID) int { return p.id.Compare(id) }

func (t *peers) add(id wire.PeerID) *peer {
	p := &peer{id: id, rate: firstRate, peerList: peerListPeer{record: noRecord}, notes: t.fresh()}
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
func (e *env) ensure(id wire.PeerID, must bool) *peer {
	if p := e.peers.find(id); p != nil {
		return p
	}
	if len(e.peers.list) >= maxPeers {
		v := e.peers.victim()
		if v == nil || !must && e.keeps(v) {
			return nil
		}
		e.peers.remove(v)
	}
	p := e.peers.add(id)
	if p.peerList.founder = !e.begun(); p.peerList.founder {
		e.knows(id)
	}
	return p
}

// keeps reports whether an entry is worth more than a newcomer that is only heard of. Of
// a peer that never contributed the period that it names does not count: with one heartbeat
// in ten minutes, keys that cost nothing would fill the table.
func (e *env) keeps(p *peer) bool {
	return e.heardLately(p) && (e.Now-p.heard <= silentHeartbeats*e.heartbeatPeriod() || e.contributed(p))
}

// lot is a number above 0 and at most 1 that the hash of a delta and a peer draws.
func lot(id wire.Digest, peer wire.PeerID) float64 {
	h := wire.Sum(append(id[:], peer[:]...))
	return (float64(binary.BigEndian.Uint64(h[:])>>11) + 1) / (1 << 53)
}
