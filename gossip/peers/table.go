package peers

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Peer is what this node knows of another one, connected or only heard of. What all
// machines share comes first, then what those that keep the table know of it, then the
// notes of the others.
//
// A large run is a heartbeat of everybody, all the time, so what a heartbeat touches stands
// together.
type Peer struct {
	ID          wire.PeerID
	Connected   bool
	EverHeard   bool
	Silent      bool            // heard nothing for SilentHeartbeats of its periods; set by watch
	Quiet       bool            // heard nothing for QuietHeartbeats of its periods; set by watch
	Heard       effect.Time     // last sign of life
	Heartbeat   *wire.Heartbeat // the newest
	HeartbeatAt effect.Time     // when heartbeat arrived
	Refused     string          // why it was marked, "" if it was not
	faults      int             // breaches of the protocol since it was last dropped
	Rate        Rate
	way         way

	compared comparison
	watch    watchPeer
	peerList peerListPeer
	slot     slotPeer
	notes    []any // one of each machine: see Note
}

// Record is the newest capability record of a peer, zero if none is known. It must not be changed.
func (p *Peer) Record() *hello.Record { return p.peerList.record }

// Name is what its owner calls a peer, by the newest record of it with a name that came here; "" if none did.
func (p *Peer) Name() string { return p.peerList.called.Name }

// Addrs are the addresses that its records name, those of the own network first.
func (p *Peer) Addrs() []string { return p.peerList.addrs }

// Chosen reports whether a peer is connected because this node dialled it.
func (p *Peer) Chosen() bool { return p.peerList.chosen }

// Way is how long a message takes to a peer, in ms, 0 if that is unknown.
func (p *Peer) Way() int64 { return p.way.ms }

// Claims reports whether a peer says what its uplink carries.
func (p *Peer) Claims() bool { return p.Heartbeat != nil && p.Heartbeat.Upload > 0 }

// Closed is the last round of f that a peer says it closed, Folded how many tokens it says it folded.
func (p *Peer) Closed(f int) uint32 {
	if p.Heartbeat == nil {
		return 0
	}
	return p.Heartbeat.Closed[f]
}

func (p *Peer) Folded() uint64 {
	if p.Heartbeat == nil {
		return 0
	}
	return p.Heartbeat.Folded
}

// Note is what a machine keeps of a peer, by its type: only the machine that has the type
// can name it.
func Note[T any](p *Peer) *T {
	for _, n := range p.notes {
		if n, ok := n.(*T); ok {
			return n
		}
	}
	panic("peers: no machine keeps this of a peer")
}

// Config is what the peers go by.
type Config struct {
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
	Notes          func() []any             // what other machines keep of a peer that is new, see Note
	Bulk           func(*Peer) bool         // bulk of a peer is on its way, or for it
}

// Chain is what the peers ask about the rounds that this node holds, see Chain of package gossip.
type Chain interface {
	Fragments() int
	Closed(f int) uint32
	ChainDigest(f int, r uint32) (wire.Digest, bool)
	StateDigest(f int, r uint32) (wire.Digest, bool)
	Contributed(author wire.PeerID) bool
	FoldedTokens() uint64
	TokensAt(rounds []uint32) (tokens uint64, known bool)
}

// Table is the table of peers, looked up by id and walked in order of id, and who of them is
// there, known and live.
type Table struct {
	*effect.Queue
	Config Config
	chain  Chain
	common []uint32 // per fragment: the last round at which a peer showed this node's chain
	Period int64    // own heartbeat period in ms, as of the last tick
	moves  bool     // addresses change while nodes run, as on the internet

	byID   map[wire.PeerID]*Peer
	List   []*Peer // all, in order of id
	Linked []*Peer // the connected ones
	Others int     // heard recently, as of the last watch; of newcomers no more than count
	usual  int64   // heartbeat period of half of those that contributed, as of then; 0 if there are none
	cache  lookCache
}

func newTable(q *effect.Queue, cfg Config, chain Chain) *Table {
	t := &Table{Queue: q, Config: cfg, chain: chain, byID: map[wire.PeerID]*Peer{}, common: make([]uint32, chain.Fragments())}
	copy(t.common, cfg.Common)
	t.Period = cfg.HeartbeatMinMs
	return t
}

// Common are the rounds, by fragment, up to which some peer showed the chain that this node had then.
func (t *Table) Common() []uint32 { return slices.Clone(t.common) }

// Version is another number whenever who is live or idle, or what the peers say that they are doing, has changed.
func (t *Table) Version() uint64 { return t.cache.changes }

func (t *Table) Find(id wire.PeerID) *Peer { return t.byID[id] }

func byPeerID(p *Peer, id wire.PeerID) int { return p.ID.Compare(id) }

func (t *Table) add(id wire.PeerID) *Peer {
	p := &Peer{ID: id, Rate: FirstRate, peerList: peerListPeer{record: noRecord, called: noRecord}, notes: t.Config.Notes()}
	i, _ := slices.BinarySearchFunc(t.List, id, byPeerID)
	t.List = slices.Insert(t.List, i, p)
	t.byID[id] = p
	return p
}

func (t *Table) remove(p *Peer) {
	i, ok := slices.BinarySearchFunc(t.List, p.ID, byPeerID)
	if ok {
		t.List = slices.Delete(t.List, i, i+1)
		delete(t.byID, p.ID)
		t.cache.changes++
	}
}

// link notes that a peer is connected, or not any more.
func (t *Table) link(p *Peer, connected bool) {
	if p.Connected == connected {
		return
	}
	p.Connected = connected
	t.cache.changes++ // one that has sent no heartbeat yet is expected while it is connected
	i, _ := slices.BinarySearchFunc(t.Linked, p.ID, byPeerID)
	if connected {
		t.Linked = slices.Insert(t.Linked, i, p)
	} else {
		t.Linked = slices.Delete(t.Linked, i, i+1)
	}
}

// victim is the entry to give up for a new one. It is not connected, and was
// never heard or was heard longest ago. nil if all are connected.
func (t *Table) victim() *Peer {
	var v *Peer
	for _, p := range t.List {
		if !p.Connected && (v == nil || olderThan(p, v)) {
			v = p
		}
	}
	return v
}

func olderThan(p, q *Peer) bool {
	if p.EverHeard != q.EverHeard {
		return !p.EverHeard
	}
	return p.Heard < q.Heard
}

// Ensure returns the entry of id, making one if there is room. Only a peer
// that is connecting (must) displaces others that are still live.
func (t *Table) Ensure(id wire.PeerID, must bool) *Peer {
	if p := t.Find(id); p != nil {
		return p
	}
	if len(t.List) >= MaxPeers {
		v := t.victim()
		if v == nil || !must && t.Keeps(v) {
			return nil
		}
		t.remove(v)
	}
	p := t.add(id)
	if p.peerList.founder = !t.Begun(); p.peerList.founder {
		t.Config.Know(id)
	}
	return p
}

// Keeps reports whether an entry is worth more than a newcomer that is only heard of. Of
// a peer that never contributed the period that it names does not count: with one heartbeat
// in ten minutes, keys that cost nothing would fill the table.
func (t *Table) Keeps(p *Peer) bool {
	return t.heardLately(p) && (t.Now-p.Heard <= SilentHeartbeats*t.HeartbeatPeriod() || t.Contributed(p))
}

// Misbehaved reports a peer that broke the protocol, remembers why, and has
// it dropped if that goes on.
func (t *Table) Misbehaved(id wire.PeerID, reason string) {
	t.Emit(effect.Misbehaved{Peer: id, Reason: reason})
	p := t.Find(id)
	if p == nil {
		return
	}
	if p.Refused != reason {
		p.Refused = reason
		t.Event(effect.EventMisbehaved, id, reason)
	}
	p.faults++
	if p.faults >= MaxFaults && p.Connected {
		p.faults = 0
		t.Emit(effect.Drop{Peer: id, Reason: reason})
	}
}

// Usable reports whether p can be asked now: connected and heard recently.
func (t *Table) Usable(p *Peer) bool {
	return p != nil && p.Connected && t.heardLately(p)
}

// Guest reports whether a peer is a guest of the run: keys are free to guests, so their claims count for nothing.
func (t *Table) Guest(id wire.PeerID) bool { return t.Config.Members.Guest(id) }

// Trusts reports whether the link names a peer that is no guest.
func (t *Table) Trusts(id wire.PeerID) bool {
	return slices.Contains(t.Config.Trusted, id) && !t.Guest(id)
}

// Contributed reports whether p is more than a key that anybody can make: the link
// names it, or a delta of it was folded here. A guest never is.
func (t *Table) Contributed(p *Peer) bool { return t.Trusts(p.ID) || t.chain.Contributed(p.ID) }

// Poll counts the live peers that may vote, and how many of them say so.
func (t *Table) Poll(votes, says func(*Peer) bool) (peers, yes int) {
	for _, p := range t.List {
		if t.Live(p) && votes(p) {
			peers++
			if says(p) {
				yes++
			}
		}
	}
	return peers, yes
}

// Lot is a number above 0 and at most 1 that the hash of a delta and a peer draws.
func Lot(id wire.Digest, peer wire.PeerID) float64 {
	h := wire.Sum(append(id[:], peer[:]...))
	return (float64(binary.BigEndian.Uint64(h[:])>>11) + 1) / (1 << 53)
}
