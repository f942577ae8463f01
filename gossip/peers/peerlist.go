package peers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// peerList learns who is in the run and dials until there are enough
// connections. What it learns are signed capability records, so a peer can
// withhold others but not invent their addresses.
type peerList struct {
	*Table
	joining  func() bool // this node knows nobody of the run yet
	own      hello.Signed
	ownNear  hello.Signed // for peers of the own network; empty if it is own
	ownNamed hello.Signed // for members; empty if this node has no name
	nextAsk  effect.Time
	nextDial effect.Time
	turn     int // whom to ask next
}

// peerListPeer is what peerList knows of a peer.
type peerListPeer struct {
	signed  hello.Signed  // newest capability record for everybody
	near    hello.Signed  // newest for nodes of its own network, if it has such addresses and this node is there
	named   hello.Signed  // newest with a name, if this node may know it
	called  *hello.Record // that one, opened; noRecord if there is none
	record  *hello.Record // the newer of both, opened, never changed; noRecord if unknown
	addrs   []string      // of both, those of the own network first
	isNear  bool          // it is on this node's own network
	founder bool          // met before anything was folded here, when nobody could be more than a key
	met     bool          // it was connected
	chosen  bool          // it is connected, and was dialled by the peer list
	kept    bool          // it is connected, and the connection is to be kept
	asked   bool          // for its peer list, since its process is connected
	askedAt effect.Time
	failed  bool // it did not answer: its process may not have been as far
	dial    dialling
}

// noRecord stands for a record that is not known.
var noRecord = &hello.Record{}

// dialling is the state of the attempts to reach one peer.
type dialling struct {
	after   effect.Time // not before
	pauseMs int64       // pause after the last attempt
}

// up takes a connection to a peer of the own network, or of another.
func (r *peerList) up(id wire.PeerID, s hello.Signed, rec hello.Record, near bool) {
	if !r.admit(&rec) {
		return // the transport refuses it as well
	}
	p := r.Ensure(id, true)
	if p == nil {
		return // maxPeers connections: the transport has its own, lower limit
	}
	if !p.Connected {
		r.Event(effect.EventJoined, id, "connected")
	}
	p.peerList.chosen = p.peerList.chosen || !p.Connected && p.peerList.dial.pauseMs > 0
	r.Table.link(p, true)
	p.peerList.dial, p.peerList.isNear, p.peerList.met = dialling{}, near, true
	p.peerList.asked = p.peerList.asked && rec.StartedMs == p.peerList.record.StartedMs
	p.Keep(s, &rec)
	r.Hear(p)
	r.awaitHeartbeat(p, rec.StartedMs)
	r.ask(p)
}

func (r *peerList) down(id wire.PeerID) {
	if p := r.Table.Find(id); p != nil {
		r.Table.link(p, false)
		p.peerList.chosen, p.peerList.kept = false, false
		p.peerList.dial.after = r.Now
		if r.moves {
			r.nextDial = min(r.nextDial, r.Now+redialMs)
		}
	}
}

// changed takes a newer record of a connected peer.
func (r *peerList) changed(id wire.PeerID, s hello.Signed, rec hello.Record) {
	p := r.Table.Find(id)
	if p == nil || !r.admit(&rec) {
		return
	}
	if rec.StartedMs != p.peerList.record.StartedMs {
		r.awaitHeartbeat(p, rec.StartedMs) // it restarted before the old connection was seen to end
		p.peerList.asked = false
		r.ask(p)
	}
	p.Keep(s, &rec)
}

// Keep takes a record unless a newer one is known. Those for everybody, those for one
// network and those with a name come with the same numbers, so the newest of each kind is kept.
func (p *Peer) Keep(s hello.Signed, rec *hello.Record) {
	k := &p.peerList
	if rec.Name != "" {
		if rec.Seq >= k.called.Seq && hello.CheckName(rec.Name) == nil {
			k.named, k.called = s, rec
		}
		return
	}
	kept := &k.signed
	if rec.Near {
		kept = &k.near
	}
	if rec.Seq < k.record.Seq || rec.Seq == k.record.Seq && len(kept.Bytes) > 0 {
		return
	}
	switch {
	case rec.Seq > k.record.Seq || len(k.addrs) == 0:
		k.addrs = rec.Addrs
	case rec.Near:
		k.addrs = slices.Concat(rec.Addrs, k.addrs)
	default:
		k.addrs = slices.Concat(k.addrs, rec.Addrs)
	}
	*kept, k.record = s, rec
}

func (r *peerList) tick() {
	if r.Now >= r.nextAsk && r.connections() < r.Config.TargetPeers {
		r.nextAsk = r.Now + PeerListPeriodMs
		r.askNext()
	}
	if r.Now >= r.nextDial {
		r.nextDial = r.Now + DialPeriodMs
		r.dialSome()
		r.keepKnown()
	}
}

// keepKnown has the connections to those kept that are known.
func (r *peerList) keepKnown() {
	for _, p := range r.Table.Linked {
		if !p.peerList.kept && r.Known(p.ID) {
			p.peerList.kept = true
			r.Emit(effect.Keep{Peer: p.ID})
		}
	}
}

// connections is how many connections count for what the peer list dials for. Those that keys began
// of whom nothing is known, though the run has begun, leave some slots to peers of its own choice,
// or a dozen of them would be all that a newcomer ever meets.
func (r *peerList) connections() int {
	if !r.Begun() && !r.joining() {
		return len(r.Table.Linked)
	}
	strangers := 0
	for _, p := range r.Table.Linked {
		if !p.peerList.chosen && !r.Known(p.ID) {
			strangers++
		}
	}
	chosen := min(mostChosen, r.Config.TargetPeers/chosenShare)
	return len(r.Table.Linked) - strangers + min(strangers, r.Config.TargetPeers-chosen)
}

// askNext asks one connected peer, each in turn.
func (r *peerList) askNext() {
	n := len(r.Table.List)
	for i := range n {
		p := r.Table.List[(r.turn+i)%n]
		if r.Usable(p) {
			r.turn = (r.turn + i + 1) % n
			r.ask(p)
			return
		}
	}
}

// ask requests the peer list of p, unless it was asked a moment ago. Every process of a
// peer is asked once it is connected: from that it knows that this node runs.
func (r *peerList) ask(p *Peer) {
	if p.peerList.asked && r.Now < p.peerList.askedAt+PeerListAgainMs {
		return
	}
	p.peerList.asked, p.peerList.askedAt = true, r.Now
	id := p.ID
	r.Call(id, wire.Request{Kind: wire.GetPeerList}, wire.GetPeerList.MaxResponse(), effect.CallMs, func(b []byte, err error) {
		if p.peerList.failed = err != nil; err == nil {
			r.learnAll(id, b)
		}
	})
}

func (r *peerList) learnAll(from wire.PeerID, body []byte) {
	list, err := wire.DecodePeerList(body)
	for i := 0; i < len(list.Records) && err == nil; i++ {
		err = r.learn(list.Records[i])
	}
	if err == nil {
		err = r.heed(list.Words)
	}
	if err != nil {
		r.Misbehaved(from, err.Error())
		return
	}
	r.dialSome()
}

// heed takes owners' words. It returns an error for one that no owner signed.
func (r *peerList) heed(encoded [][]byte) error {
	words, err := member.ParseWords(encoded)
	if err != nil {
		return err
	}
	fresh, err := r.Config.Members.AddWords(words...)
	if len(fresh) > 0 {
		r.Emit(effect.Revoked{Words: fresh})
	}
	return err
}

// learn takes one record. It returns an error for a record that nobody should have
// passed on.
func (r *peerList) learn(b []byte) error {
	s, err := hello.Parse(b)
	if err != nil {
		return err
	}
	rec, err := r.Config.OpenRecord(s)
	if err != nil {
		return err
	}
	if rec.Run != r.Config.Run || rec.Author == r.Config.Self || !r.admit(rec) {
		return nil
	}
	if p := r.Ensure(rec.Author, false); p != nil {
		p.Keep(s, rec)
	}
	return nil
}

// dialSome tries up to maxDials peers that are known and not connected. It
// starts behind its own place in the order of ids, so that not everybody
// dials the same few. Those in networks where it has no neighbour yet come first: the failure
// of one provider, or somebody who runs many nodes at one, is to cut off nobody.
func (r *peerList) dialSome() {
	missing := min(MaxDials, r.Config.TargetPeers-r.connections())
	if missing <= 0 {
		return
	}
	met, relays := map[string]bool{}, 0
	for _, p := range r.Table.Linked {
		met[networkOf(p.peerList.addrs)] = true
		relays += BoolRank(p.peerList.record.Relays)
	}
	start, _ := slices.BinarySearchFunc(r.Table.List, r.Config.Self, byPeerID)
	n := len(r.Table.List)
	at := r.relayAddrs()
	for pass := range 3 {
		for i := 0; i < n && missing > 0; i++ {
			p := r.Table.List[(start+i)%n]
			if p.Connected || !r.reachable(p) || r.Now < p.peerList.dial.after {
				continue
			}
			network := networkOf(p.peerList.addrs)
			last := behindOthers(p.peerList.addrs, at) || r.moves && p.peerList.record.Relays && relays >= wantRelays
			if pass < 2 && last || pass < 1 && network != "" && met[network] {
				continue
			}
			met[network] = true
			relays += BoolRank(p.peerList.record.Relays)
			r.dialOne(p)
			missing--
		}
	}
}

// relayAddrs are the addresses of the relays that this node is connected to.
func (r *peerList) relayAddrs() map[string]bool {
	at := map[string]bool{}
	for _, p := range r.Table.Linked {
		if p.peerList.record.Relays {
			for _, addr := range p.peerList.addrs {
				at[addr] = true
			}
		}
	}
	return at
}

// behindOthers reports whether a peer is reached only through relays other than those at the given
// addresses. To dial it makes a connection to its relay as well: such peers come last, or in a
// large run every node would be connected to every relay.
func behindOthers(addrs []string, at map[string]bool) bool {
	for _, addr := range addrs {
		if relay, _, circuit := strings.Cut(addr, "/p2p-circuit"); !circuit || at[relay] {
			return false
		}
	}
	return len(addrs) > 0
}

// networkOf is the network that a peer is in, as far as its first address tells: what one
// provider's machines mostly have in common, the first two numbers of an IPv4 or IPv6 address.
// It is empty where the address is of a relay, or names no number.
func networkOf(addrs []string) string {
	if len(addrs) == 0 || strings.Contains(addrs[0], "/p2p-circuit") {
		return ""
	}
	parts := strings.SplitN(addrs[0], "/", 4)
	if len(parts) < 4 {
		return ""
	}
	separator := map[string]string{"ip4": ".", "ip6": ":"}[parts[1]]
	if numbers := strings.Split(parts[2], separator); separator != "" && len(numbers) > 2 {
		return numbers[0] + separator + numbers[1]
	}
	return ""
}

// reachable reports whether something is known of where p is. Where addresses change, one that
// was met recently may be where it was, though it tells no address any more: it had them of a
// relay that is gone.
func (r *peerList) reachable(p *Peer) bool {
	return len(p.peerList.addrs) > 0 || r.moves && p.peerList.met && r.lost(p)
}

// lost reports whether p was heard not long ago.
func (r *peerList) lost(p *Peer) bool { return p.EverHeard && r.Now-p.Heard < lostForMs }

// dialOne tries the addresses of p. With each attempt the pause doubles.
func (r *peerList) dialOne(p *Peer) {
	d := &p.peerList.dial
	r.Emit(effect.Dial{Peer: p.ID, Addrs: r.waysTo(p)})
	d.pauseMs = min(max(2*d.pauseMs, DialBackoffMinMs), r.longestPause(p))
	d.after = r.Now + d.pauseMs
}

// waysTo are the addresses to dial p at. At first those through relays that this node is not
// connected to are left out where there are others.
func (r *peerList) waysTo(p *Peer) []string {
	at := r.relayAddrs()
	if p.peerList.dial.pauseMs > 0 || behindOthers(p.peerList.addrs, at) {
		return p.peerList.addrs
	}
	return slices.DeleteFunc(slices.Clone(p.peerList.addrs), func(addr string) bool { return behindOthers([]string{addr}, at) })
}

// longestPause bounds the pause between two attempts to reach p.
func (r *peerList) longestPause(p *Peer) int64 {
	if r.lost(p) {
		return dialBackoffLostMs
	}
	return DialBackoffMaxMs
}

// said compares the record number in a heartbeat with the record held, and asks for the
// newer one: its author, or, where addresses change, the peer that brought the heartbeat and is
// nearer to it. A peer that did not answer before is asked anew: one that says something is up.
func (r *peerList) said(p *Peer, seq uint64, from wire.PeerID) {
	if p.Connected && p.peerList.failed {
		p.peerList.failed, p.peerList.asked = false, false
		r.ask(p)
		return
	}
	if seq <= p.peerList.record.Seq {
		return
	}
	if p.Connected {
		r.ask(p)
	} else if q := r.Table.Find(from); r.moves && q != nil && q.Connected && r.connections() < r.Config.TargetPeers {
		r.ask(q)
	}
}

// seesNames reports whether a peer is admitted as more than a guest: names are for members.
func (r *peerList) seesNames(p *Peer) bool {
	return p != nil && r.Config.Members.Member(p.ID) && !r.Guest(p.ID)
}

// body is this node's peer list for a peer, nil for one that is not known: its own record
// first, then its connected peers, then the others as they were last heard. Records for the
// own network are for peers there, those with names for members, and owners' words for all.
func (r *peerList) body(asker *Peer) []byte {
	isNear := asker != nil && asker.peerList.isNear
	known := make([]*Peer, 0, len(r.Table.List))
	for _, p := range r.Table.List {
		if len(p.peerList.signed.Bytes) > 0 || isNear && len(p.peerList.near.Bytes) > 0 {
			known = append(known, p)
		}
	}
	slices.SortStableFunc(known, func(p, q *Peer) int {
		if p.Connected != q.Connected {
			return cmp.Compare(BoolRank(q.Connected), BoolRank(p.Connected))
		}
		return cmp.Compare(q.Heard, p.Heard)
	})
	named := r.seesNames(asker)
	records := make([][]byte, 0, wire.MaxPeerList)
	add := func(s hello.Signed) {
		if len(s.Bytes) > 0 && len(records) < wire.MaxPeerList {
			records = append(records, s.Encode())
		}
	}
	add(r.own)
	if isNear {
		add(r.ownNear)
	}
	if named {
		add(r.ownNamed)
	}
	for _, p := range known {
		add(p.peerList.signed)
		if isNear {
			add(p.peerList.near)
		}
	}
	for i := 0; i < len(known) && named; i++ { // where there is no room for all, addresses matter more
		add(known[i].peerList.named)
	}
	return wire.PeerList{Records: records, Words: r.Config.Members.EncodedWords()}.Encode()
}

func BoolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// phase describes for people whom this node has found.
func (r *peerList) phase() string {
	return fmt.Sprintf("peer list: %d known, %d reached", len(r.Table.List), r.connections())
}
