package gossip

import (
	"slices"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// peer is what this node knows of another one, connected or only heard of.
//
// What a beat touches comes first: a large run is a beat of everybody, all the time.
type peer struct {
	id        wire.PeerID
	connected bool
	everHeard bool
	silent    bool       // heard nothing for silentBeats periods; set by watch
	heard     Time       // last sign of life
	beat      *wire.Beat // the newest
	beatAt    Time       // when beat arrived
	reached   uint64     // most folded tokens that a beat of any of its processes showed

	// beats: consecutive unequal ones, and whether a state mismatch was told.
	unequal      int
	stateDiffers bool
	same         bool     // its last beat showed the chain of this node
	asked        bool     // watchdog: for something but genesis, so it runs
	unheard      bool     // watchdog: connected and without a beat, see below
	apart        int      // consecutive beats that did not show the chain of this node
	equal        []uint32 // rounds, by fragment, of the last one that did
	refused      string   // why it was marked, "" if it was not
	faults       int      // breaches of the protocol since it was last dropped

	signed hello.Signed  // newest capability record
	record *hello.Record // signed, opened, never changed; noRecord if unknown

	// watchdog: connected, or first known to run, since, without a beat; not before,
	// and the last pause.
	started          int64 // of the process that shook hands, unix ms
	unheardFrom      Time
	reconnectAfter   Time
	reconnectPauseMs int64

	// roster: when it was last asked, and the dialling of its addresses.
	askedRoster bool
	askedAt     Time
	dial        dialling

	// pull, snapshot, serve: calls and bytes in flight, measured rate.
	pulls, chunks int
	pulling       int  // bytes of payloads that it was asked for
	chunkAt       Time // when its last chunk came, or the first was asked for
	chunkAfter    Time // no chunk before: it was busy
	badTips       int  // how often its tips were refused or spoken against
	turn          turn // at being given chunks
	serving       int
	parked        int
	asks          quota // costly requests
	tipAsks       quota // requests for tips
	rate          float64

	// audit: not before, and the pause before that.
	auditAfter   Time
	auditPauseMs int64

	// own: not before, asking it and telling it.
	ownAfter, toldOwn Time

	// repair: not before, and the pause after the next fruitless one.
	repairAfter   Time
	repairPauseMs int64
	spent         int // repairs in a row after which nothing more is to be had of it
}

// noRecord is that of a peer of whom none is known.
var noRecord = &hello.Record{}

// quota counts what a peer asks for, a span of time after the other.
type quota struct {
	from Time
	n    int
}

// spend counts once and reports whether that is within so many in spanMs.
func (q *quota) spend(now Time, spanMs Time, most int) bool {
	if now >= q.from+spanMs {
		q.from, q.n = now, 0
	}
	q.n++
	return q.n <= most
}

// peers is the table of peers: looked up by id, walked in order of id.
type peers struct {
	byID   map[wire.PeerID]*peer
	list   []*peer
	linked []*peer // those of list that are connected
	live   int     // heard of late, as of the last watch
	memo   turns
}

func (t *peers) find(id wire.PeerID) *peer { return t.byID[id] }

func byPeerID(p *peer, id wire.PeerID) int { return p.id.Compare(id) }

func (t *peers) add(id wire.PeerID) *peer {
	p := &peer{id: id, rate: firstRate, record: noRecord}
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
		t.memo.turned++
	}
}

// link notes that a peer is connected, or not any more.
func (t *peers) link(p *peer, connected bool) {
	if p.connected == connected {
		return
	}
	p.connected = connected
	i, _ := slices.BinarySearchFunc(t.linked, p.id, byPeerID)
	if connected {
		t.linked = slices.Insert(t.linked, i, p)
	} else {
		t.linked = slices.Delete(t.linked, i, i+1)
	}
}

// victim is the entry to give up for a new one: not connected, and the one
// that was never heard or was heard longest ago. nil if all are connected.
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
		if v == nil || !must && e.heardLately(v) {
			return nil
		}
		e.peers.remove(v)
	}
	return e.peers.add(id)
}

// sampled takes an answer's size in bytes and duration in ms into the rate.
func (p *peer) sampled(bytes int, ms int64) {
	if bytes < rateMinBytes {
		return
	}
	r := float64(bytes) / float64(max(ms, 1))
	if r < p.rate {
		r = p.rate + float64(rateDecay*(r-p.rate))
	}
	p.rate = r
}

// transferMs is the time that n bytes may take from p: rateSlack times what
// its rate says, within the deadlines' bounds.
func (p *peer) transferMs(n int) int64 {
	ms := int64(rateSlack * float64(n) / p.rate)
	return min(max(ms, deadlineMinMs), deadlineMaxMs)
}
