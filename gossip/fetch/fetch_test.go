package fetch

import (
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// chain is an outer side of which nothing is known but who contributed to it.
type chain struct {
	contributed map[wire.PeerID]bool
	tokens      uint64
}

func (*chain) Fragments() int                                { return 2 }
func (*chain) Closed(int) uint32                             { return 0 }
func (*chain) ChainDigest(int, uint32) (wire.Digest, bool)   { return wire.Digest{1}, true }
func (*chain) StateDigest(int, uint32) (wire.Digest, bool)   { return wire.Digest{2}, true }
func (c *chain) Contributed(author wire.PeerID) bool         { return c.contributed[author] }
func (c *chain) FoldedTokens() uint64                        { return c.tokens }
func (*chain) TokensAt([]uint32) (tokens uint64, known bool) { return 0, true }

// alone is the fetching of one node: the test plays its peers and its disk.
type alone struct {
	*Fetch
	peers  *peers.Peers
	chain  *chain
	final  uint32 // the newest round that is
	seq    uint64
	wanted map[wire.Digest]bool // ever, as a test has seen
	ended  map[wire.Digest]Outcome
}

// newAlone is a node with peers that have all sent a heartbeat, of a run that has not begun.
func newAlone(ids ...byte) *alone {
	a := &alone{chain: &chain{contributed: map[wire.PeerID]bool{}}, wanted: map[wire.Digest]bool{}, ended: map[wire.Digest]Outcome{}}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	a.peers = peers.New(&effect.Queue{}, peers.Config{
		Self: wire.PeerIDOf(key), Key: key, HeartbeatMinMs: 1000, TargetPeers: peers.DefaultTarget,
		Know: func(wire.PeerID) {}, Notes: func() []any { return []any{&Peer{}} }, Bulk: func(*peers.Peer) bool { return false },
	}, a.chain)
	a.peers.Heartbeats.Set(peers.SelfState{State: wire.Training})
	a.Fetch = New(a.peers.Table, &a.peers.Heartbeats, Config{
		Final: func(h wire.Header) bool { return h.Round <= a.final },
		Ended: func(id wire.Digest, how Outcome) { a.ended[id] = how },
	})
	for _, id := range ids {
		a.up(id)
		a.told(id, func(*wire.Heartbeat) {})
	}
	return a
}

// begunWith is a node of a run in which the peers of these numbers were folded.
func begunWith(known ...byte) *alone {
	a := newAlone()
	a.chain.tokens = 1
	for _, id := range known {
		a.chain.contributed[wire.PeerID{id}] = true
	}
	return a
}

func (a *alone) peer(id byte) *peers.Peer { return a.Find(wire.PeerID{id}) }

// up begins a session with a peer.
func (a *alone) up(id byte) {
	a.peers.Up(wire.PeerID{id}, hello.Signed{}, hello.Record{Author: wire.PeerID{id}}, false)
	a.Pump()
}

// told has a peer's heartbeat arrive.
func (a *alone) told(id byte, change func(b *wire.Heartbeat)) {
	a.seq++
	b := wire.Heartbeat{Author: wire.PeerID{id}, Seq: a.seq, State: wire.Training, Closed: make([]uint32, 2), Unpublished: make([]uint64, 2)}
	change(&b)
	a.peers.Heartbeat(&b, wire.PeerID{id})
}

// wait lets time pass, in which some peers give signs of life, and returns what is asked for.
func (a *alone) wait(ms effect.Time, alive ...byte) (all []question) {
	for end := a.Now + ms; a.Now < end; {
		a.At(a.Now + min(100, end-a.Now))
		for _, id := range alive {
			a.Hear(a.peer(id))
		}
		a.ExpireCalls()
		a.peers.Tick()
		a.Tick()
		all = append(all, a.asks()...)
	}
	return all
}

// question is a request for a payload that the node sent.
type question struct {
	wire.Request
	call effect.Call
	to   byte
}

// find are the effects of one kind.
func find[E effect.Effect](effects []effect.Effect) (all []E) {
	for _, e := range effects {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// asks are the requests for payloads since it was last asked.
func (a *alone) asks() []question { return questions(a.Take()) }

func questions(effects []effect.Effect) (all []question) {
	for _, c := range find[effect.Call](effects) {
		if r, err := wire.DecodeRequest(c.Request); err == nil && r.Kind == wire.GetPayload {
			all = append(all, question{r, c, c.To[0]})
		}
	}
	return all
}

// answer gives a question an answer.
func (a *alone) answer(q question, body []byte) []effect.Effect {
	a.Answered(q.call.ID, wire.Response{Status: wire.OK, Body: body}.Encode(), nil)
	return a.Take()
}

// fails gives a question none, and returns what is asked for then.
func (a *alone) fails(q question, s wire.Status) []question {
	a.Answered(q.call.ID, wire.Response{Status: s}.Encode(), nil)
	return a.asks()
}

// brought has a peer bring a header, and returns what is asked for then.
func (a *alone) brought(from byte, s wire.SignedHeader) []question {
	if p := a.peer(from); p != nil {
		a.Hear(p)
	}
	a.Announced(idOf(s), &s, wire.PeerID{from})
	return a.asks()
}

// header is one of an author; salt makes headers of one round differ.
func header(author byte, round uint32, salt uint32) wire.SignedHeader {
	h := wire.Header{Author: wire.PeerID{author}, Round: round, Steps: 1, Size: 3000}
	binary.BigEndian.PutUint32(h.Payload[:], salt)
	return wire.SignedHeader{Header: h}
}

func idOf(s wire.SignedHeader) wire.Digest { return s.Header.ID(wire.RunID{}) }

// keyOf is one of many keys that nobody has seen.
func keyOf(i uint32) (id wire.PeerID) {
	id[0] = 250
	binary.BigEndian.PutUint32(id[1:], i)
	return id
}

// sessions are the peers with a session.
func (a *alone) sessions() (ids []byte) {
	for _, p := range a.Linked {
		ids = append(ids, p.ID[0])
	}
	return ids
}

// inTurn fails each request for a payload and returns who was asked, in order, until
// nobody is asked any more.
func (a *alone) inTurn(t testing.TB, q []question) (asked []byte) {
	t.Helper()
	for {
		if len(q) == 0 {
			q = a.wait(BusyRetryMs, a.sessions()...)
		}
		if len(q) == 0 {
			return asked
		}
		if len(q) > 1 {
			t.Fatalf("asks %d at a time", len(q))
		}
		asked = append(asked, q[0].to)
		q = a.fails(q[0], wire.NotFound)
	}
}

// largeBytes is the size of a payload so large that eight together are not small.
const largeBytes = 3000

// floods has a peer bring headers of as many authors, and returns the requests.
func (a *alone) floods(from byte, round uint32, headers int) []question {
	return a.floodsOf(from, round, headers, largeBytes)
}

// floodsOf has payloads of so many bytes.
func (a *alone) floodsOf(from byte, round uint32, headers int, size uint32) (all []question) {
	for i := range headers {
		h := header(200, round, 0)
		h.Header.Size = size
		h.Header.Author[1], h.Header.Author[2] = byte(i), from
		all = append(all, a.brought(from, h)...)
	}
	return all
}

// announces has a peer forward a header of an author.
func (a *alone) announces(from byte, author wire.PeerID, round uint32) wire.Digest {
	h := header(0, round, 0)
	h.Header.Author = author
	a.brought(from, h)
	return idOf(h)
}

// failsWith ends a question without an answer, after some time.
func (a *alone) failsWith(q question, after effect.Time, err error) {
	a.At(a.Now + after)
	a.Answered(q.call.ID, nil, err)
	a.Take()
}

// gives answers a question after some time, which its bytes took to come for tookMs.
func (a *alone) gives(q question, after effect.Time, payload []byte, tookMs int64) {
	a.At(a.Now + after)
	a.Took = tookMs
	a.answer(q, payload)
}
