package gossip

import (
	"crypto/ed25519"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// homes is a run in virtual time of which most nodes are behind routers, and of which this
// looks at one thing: who is connected to whom. Cores decide that. Gossip reaches all that
// are connected to its author by any way, once each.
type homes struct {
	*world
	people []*person
	rng    *rand.Rand

	split   bool             // half of them do not reach the others
	parted  map[*person]Time // since when each is apart from most, though it reaches them
	longest Time             // that anybody was
	relayed int64            // bytes of calls
	records map[string]*hello.Record
}

// router is what is in front of a node.
type router int

const (
	none      router = iota // a public address
	keeping                 // two of them can be punched
	scrambles               // no hole can be punched
)

// person is a node of homes.
type person struct {
	h      *homes
	index  int
	key    ed25519.PrivateKey
	id     wire.PeerID
	core   *Core
	router router
	up     bool
	seq    uint64
	links  map[*person]*person // peers, and the relay that each is reached through, nil if directly
	slots  map[*person]bool    // relays that keep a slot
	known  []Dial              // those that its join link names, where they were then
	most   int                 // connections at once
	came   Time
	far    bool // on one side of a split
	trims  bool // some of its connections are about to be closed
	dials  int
	served map[uint64]func([]byte)
	handle uint64
}

const (
	homesTick      = 500
	homesHeartbeat = wire.MaxPeriodMs / 2 // heartbeats say who lives; many more would only take time
	punchMs        = 4000
)

func newHomes(t *testing.T, seed uint64) *homes {
	return &homes{
		world: newWorld(t, seed, 0, options{}), rng: rand.New(rand.NewPCG(seed, 2)), parted: map[*person]Time{}, records: map[string]*hello.Record{},
	}
}

// openRecord verifies each record once: it is the same for everybody.
func (h *homes) openRecord(s hello.Signed) (*hello.Record, error) {
	if r := h.records[string(s.Bytes)]; r != nil {
		return r, nil
	}
	r, err := openRecord(s)
	if err == nil {
		h.records[string(s.Bytes)] = r
	}
	return r, err
}

// join has a newcomer come in, whose link names two who are there, one of them public.
func (h *homes) join(r router) *person {
	p := &person{
		h: h, index: len(h.people), key: testKey(len(h.people)), router: r, up: true,
		links: map[*person]*person{}, slots: map[*person]bool{}, served: map[uint64]func([]byte){},
	}
	p.id = wire.PeerIDOf(p.key)
	p.known = h.link()
	h.people = append(h.people, p)
	p.core = New(Config{
		Self: p.id, Key: p.key, Run: h.run, Incarnation: h.now + 1, HeartbeatMinMs: homesHeartbeat, OpenRecord: h.openRecord,
	}, newFakeChain(h.run, 1))
	p.came = h.now
	p.tell()
	p.step(Reached{Public: r == none})
	p.core.SetSelf(h.now, peers.SelfState{State: wire.Training})
	p.tick()
	p.dialKnown()
	return p
}

// link names two who are there, one of them public where anybody is. Who is at home is named by its
// slots at relays.
func (h *homes) link() (named []Dial) {
	here := h.alive()
	public := slices.DeleteFunc(slices.Clone(here), func(q *person) bool { return q.router != none })
	for _, from := range [][]*person{public, here} {
		if len(from) > 0 {
			q := from[h.rng.IntN(len(from))]
			_, r := q.record()
			named = append(named, Dial{Peer: q.id, Addrs: r.Addrs})
		}
	}
	return named
}

func (h *homes) alive() (alive []*person) {
	for _, p := range h.people {
		if p.up {
			alive = append(alive, p)
		}
	}
	return alive
}

func (p *person) tick() {
	if !p.up {
		return
	}
	p.core.Tick(p.h.now)
	p.act()
	p.h.after(homesTick, p.tick)
}

// dialKnown tries those that the link names, for as long as the node runs.
func (p *person) dialKnown() {
	if !p.up {
		return
	}
	for _, d := range p.known {
		p.tries(d)
	}
	p.h.after(5000, p.dialKnown)
}

// peers are those that p is connected to, always in the same order.
func (p *person) peers() []*person {
	return slices.SortedFunc(maps.Keys(p.links), func(a, b *person) int { return a.index - b.index })
}

func (p *person) step(in Input) {
	if p.up {
		p.core.Step(p.h.now, in)
		p.act()
	}
}

// record is what the node says of itself: where it is, or through whom.
func (p *person) record() (hello.Signed, hello.Record) {
	r := hello.Record{
		Protocol: hello.Protocol, Run: p.h.run, Author: p.id, Seq: p.seq, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Agent: "test", Relays: p.router == none,
	}
	if p.router == none {
		r.Addrs = []string{p.address()}
	}
	for relay := range p.slots {
		r.Addrs = append(r.Addrs, relay.address()+"/p2p-circuit")
	}
	slices.Sort(r.Addrs)
	s, err := hello.Sign(p.key, r)
	if err != nil {
		p.h.t.Fatal(err)
	}
	return s, r
}

func (p *person) address() string {
	return fmt.Sprintf("/ip4/5.%d.0.1/tcp/%d", p.index%200, 1000+p.index)
}

// at is who is at an address.
func (h *homes) at(addr string) *person {
	var net, port int
	if _, err := fmt.Sscanf(addr, "/ip4/5.%d.0.1/tcp/%d", &net, &port); err != nil {
		h.t.Fatalf("dials %q: %v", addr, err)
	}
	return h.people[port-1000]
}

// tell signs a new record and sends it to all that are connected.
func (p *person) tell() {
	p.seq++
	s, r := p.record()
	p.step(OwnRecord{Signed: s})
	for _, q := range p.peers() {
		p.h.after(p.h.delay(), func() {
			if _, still := p.links[q]; still {
				q.step(RecordChanged{Peer: p.id, Signed: s, Record: r})
			}
		})
	}
}

func (p *person) act() {
	for _, e := range p.core.Effects() {
		switch e := e.(type) {
		case Publish:
			p.h.spread(p, e.Bytes)
		case Dial:
			p.dials++
			p.tries(e)
		case Reserve:
			p.reserves(p.h.person(e.Peer))
		case Release:
			delete(p.slots, p.h.person(e.Peer))
			p.tell()
		case Call:
			p.calls(e)
		case Reply:
			if answer := p.served[e.Handle]; answer != nil {
				delete(p.served, e.Handle)
				answer(e.Response)
			}
		}
	}
}

func (h *homes) person(id wire.PeerID) *person {
	i := slices.IndexFunc(h.people, func(p *person) bool { return p.id == id })
	return h.people[i]
}

// tries dials a peer at each of its addresses.
func (p *person) tries(e Dial) {
	q := p.h.person(e.Peer)
	for _, addr := range e.Addrs {
		relay, circuit := strings.CutSuffix(addr, "/p2p-circuit")
		if !circuit {
			p.dial(q)
			continue
		}
		r := p.h.at(relay)
		p.h.after(p.h.delay()*3, func() { p.through(r, q) })
	}
}

// dial connects to a public node.
func (p *person) dial(q *person) {
	p.h.after(p.h.delay()*3, func() {
		if q.router == none {
			p.h.join2(p, q, nil)
		}
	})
}

// through connects to a node that has a slot at a relay. Where both routers keep ports a
// direct connection takes over.
func (p *person) through(relay, q *person) {
	h := p.h
	if !relay.up || p == relay {
		return
	}
	h.join2(p, relay, nil)
	if !q.slots[relay] || q.links[relay] != nil {
		return
	}
	h.join2(p, q, relay)
	if p.router != scrambles && q.router != scrambles {
		h.after(punchMs, func() {
			if r, linked := p.links[q]; linked && r != nil && p.up && q.up {
				p.links[q], q.links[p] = nil, nil
			}
		})
	}
}

// join2 connects two nodes, through a relay if it is not nil.
func (h *homes) join2(p, q, relay *person) {
	if _, linked := p.links[q]; linked || p == q || !p.up || !q.up || h.split && p.far != q.far {
		return
	}
	p.links[q], q.links[p] = relay, relay
	for _, pair := range [][2]*person{{p, q}, {q, p}} {
		s, r := pair[1].record()
		if pair[0].most = max(pair[0].most, len(pair[0].links)); len(pair[0].links) > homesConns && !pair[0].trims {
			pair[0].trims = true
			h.after(10_000, func() { h.trim(pair[0]) })
		}
		pair[0].step(PeerUp{Peer: pair[1].id, Signed: s, Record: r})
	}
}

// trim closes connections of a node that has too many, as the transport does: not those of peers
// that have a slot there, nor those through which others are relayed.
func (h *homes) trim(p *person) {
	p.trims = false
	needed := map[*person]bool{}
	for _, q := range h.alive() {
		for _, other := range q.peers() {
			if q.links[other] == p {
				needed[q], needed[other] = true, true
			}
		}
	}
	for _, q := range p.peers() {
		if len(p.links) <= homesConns*3/4 {
			return
		}
		if !q.slots[p] && !needed[q] {
			h.part(p, q)
		}
	}
}

func (h *homes) part(p, q *person) {
	if _, linked := p.links[q]; !linked {
		return
	}
	delete(p.links, q)
	delete(q.links, p)
	for _, pair := range [][2]*person{{p, q}, {q, p}} {
		if pair[0].slots[pair[1]] {
			delete(pair[0].slots, pair[1])
			pair[0].tell()
		}
		pair[0].step(PeerDown{Peer: pair[1].id})
	}
}

// breaks parts a random half of the nodes from the others, for a while.
func (h *homes) breaks(d Time) {
	h.split = true
	for _, p := range h.people {
		p.far = h.rng.IntN(2) == 0
	}
	for _, p := range h.alive() {
		for _, q := range p.peers() {
			if relay := p.links[q]; p.far != q.far || relay != nil && relay.far != p.far {
				h.part(p, q)
			}
		}
	}
	h.after(d, func() { h.split = false })
}

// die ends a node without a word, and what goes through it.
func (h *homes) die(p *person) {
	p.up = false
	delete(h.parted, p)
	for _, q := range h.people {
		for _, other := range q.peers() {
			if q.links[other] == p || q == p {
				h.part(q, other)
			}
		}
	}
}

func (p *person) reserves(relay *person) {
	p.h.after(p.h.delay()*2, func() {
		via, linked := p.links[relay]
		ok := linked && via == nil && relay.router == none
		if ok {
			p.slots[relay] = true
			p.tell()
		}
		p.step(Reserved{Peer: relay.id, OK: ok})
	})
}

func (p *person) calls(e Call) {
	h, q := p.h, p.h.person(e.To)
	relay, linked := p.links[q]
	answer := func(b []byte, err error) {
		h.after(h.delay(), func() { p.step(Answered{Call: e.ID, Response: b, Err: err, TookMs: 1}) })
	}
	if !linked || !q.up {
		answer(nil, errDown)
		return
	}
	q.handle++
	handle := q.handle
	q.served[handle] = func(b []byte) {
		if relay != nil {
			h.relayed += int64(len(b) + len(e.Request))
		}
		answer(b, nil)
	}
	h.after(h.delay(), func() { q.step(Requested{Handle: handle, From: p.id, Request: e.Request}) })
}

// spread brings a message to all that are connected to its author by any way.
func (h *homes) spread(from *person, b []byte) {
	m := h.open(b)
	seen, next := map[*person]bool{from: true}, []*person{from}
	for len(next) > 0 {
		p := next[0]
		next = next[1:]
		for _, q := range p.peers() {
			if !seen[q] {
				seen[q] = true
				next = append(next, q)
				h.after(h.delay(), func() { q.step(Received{From: p.id, Message: m}) })
			}
		}
	}
	delete(h.opened, wire.Sum(b))
}

// look notes who is apart from most, and for how long.
func (h *homes) look() {
	largest := map[*person]bool{}
	seen := map[*person]bool{}
	for _, p := range h.alive() {
		if seen[p] {
			continue
		}
		part, next := map[*person]bool{p: true}, []*person{p}
		for len(next) > 0 {
			q := next[0]
			next, seen[q] = next[1:], true
			for r := range q.links {
				if !part[r] {
					part[r] = true
					next = append(next, r)
				}
			}
		}
		if len(part) > len(largest) {
			largest = part
		}
	}
	for _, p := range h.alive() {
		if largest[p] || h.split {
			delete(h.parted, p)
			continue
		}
		if h.parted[p] == 0 {
			h.parted[p] = h.now
		}
		h.longest = max(h.longest, h.now-h.parted[p])
	}
	h.after(1000, h.look)
}

// long is whether tests play all that they can, and not what shows the most in little time.
var long = os.Getenv("ATOLL_LONG") != ""

// An hour of two hundred nodes, most of them at home. One comes and one goes every 18 seconds,
// and a public one every five minutes. Every three minutes half of them are cut off for
// one. Nobody is apart for half a minute, and what it costs a
// node is bounded: connections, dials, and what relays pass on.
func TestHomesInAnHour(t *testing.T) {
	t.Parallel()
	span, size := Time(360_000), 60
	if long {
		span, size = 3_600_000, 200
	}
	h := newHomes(t, 1)
	kind := func() router {
		switch x := h.rng.Float64(); {
		case x < 0.05:
			return none
		case x < 0.7:
			return keeping
		}
		return scrambles
	}
	for i := range size {
		r := kind()
		if i%20 == 0 {
			r = none
		}
		h.join(r)
		h.runUntil(h.now + 200)
	}
	h.look()
	began := h.now
	for gone := began; h.now < began+span; {
		if h.now > began && (h.now-began)%180_000 == 0 {
			h.breaks(60_000)
		}
		h.runUntil(h.now + 18_000)
		h.join(kind())
		here := h.alive()
		public := slices.DeleteFunc(slices.Clone(here), func(p *person) bool { return p.router != none })
		if h.now-gone > 300_000 && len(public) > 2 {
			gone = h.now
			h.die(public[h.rng.IntN(len(public))])
			h.join(none)
		} else {
			h.die(here[h.rng.IntN(len(here))])
		}
	}
	h.report(span)
}

// Bounds on what a node has and does.
const (
	homesConns   = 128      // connections: the transport looks every ten seconds whether there are more, and closes a quarter
	homesDials   = 1500     // attempts in an hour: half of what maxDials and dialPeriodMs let pass
	homesRelayed = 12 << 20 // bytes of small calls through relays in an hour
	homesFewest  = 4        // neighbours, once a node is in for half a minute
)

func (h *homes) report(span Time) {
	hours := float64(span) / 3_600_000
	most, fewest, dials, relayed, alive := 0, homesConns, 0.0, 0, h.alive()
	for _, p := range alive {
		most = max(most, p.most)
		if in := h.now - p.came; in > 30_000 {
			fewest = min(fewest, len(p.links))
			dials = max(dials, float64(p.dials)/max(float64(in)/3_600_000, hours))
		}
		for _, relay := range p.links {
			relayed += one(relay != nil)
		}
	}
	perNode := float64(h.relayed) / float64(len(alive)) / hours
	h.t.Logf("%d nodes, %.2f h: apart for %d ms at most; %d to %d connections, %d relayed in all; %.0f dials of a node in an hour at most; %.0f bytes of small calls relayed a node and hour",
		len(alive), hours, h.longest, fewest, most, relayed/2, dials, perNode)
	if h.longest > 30_000 {
		h.t.Errorf("somebody was apart for %d ms", h.longest)
	}
	if fewest < homesFewest || most > homesConns*5/4 || dials > homesDials || perNode > homesRelayed {
		h.t.Error("that is out of bounds")
	}
}

func one(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
