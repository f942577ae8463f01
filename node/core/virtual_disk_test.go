package core_test

import (
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// disk is what survives a crash, and what core.Load then reads. Nothing on it is ever
// damaged, and all that was written is there.
type disk struct {
	payloads map[wire.Digest][]byte
	headers  map[wire.Digest]wire.SignedHeader // of those payloads
	history  map[wire.Digest]wire.Header       // of rounds before the tips taken
	own      []ownRecord
	marks    []uint32
	bases    []map[uint32]*outer.Tip // as in memory, see crash
	rounds   []map[uint32]outer.Link
	common   []uint32 // rounds up to which others are known to have folded the same
	chunks   map[wire.Digest][]byte
	fetching []uint32 // rounds of the tips of which there are chunks
	evidence []wire.Evidence
	dropped  int // payloads, see dropPayloads
}

type ownRecord struct {
	seq       uint64
	id        wire.Digest
	forgotten bool // off the list that a restart reads; an adoption on its way may need it
}

var _ core.Disk = (*disk)(nil)

// diskSpacing: the bases of rounds divisible by it are on disk, memory holds the others.
const diskSpacing = 4

func newDisk(fragments int) *disk {
	d := &disk{
		payloads: map[wire.Digest][]byte{}, headers: map[wire.Digest]wire.SignedHeader{}, history: map[wire.Digest]wire.Header{},
		chunks: map[wire.Digest][]byte{}, marks: make([]uint32, fragments), common: make([]uint32, fragments),
	}
	for range fragments {
		d.bases = append(d.bases, map[uint32]*outer.Tip{})
		d.rounds = append(d.rounds, map[uint32]outer.Link{})
	}
	return d
}

func (d *disk) put(id wire.Digest, h wire.SignedHeader, payload []byte) {
	d.headers[id], d.payloads[id] = h, payload
}

func (d *disk) putOwn(e core.StoreOwn) {
	d.put(e.ID, e.Header, e.Payload)
	d.own = append(d.own, ownRecord{seq: e.Seq, id: e.ID})
	d.raiseMark(int(e.Header.Header.Fragment), e.Header.Header.Round)
}

func (d *disk) raiseMark(p int, round uint32) { d.marks[p] = max(d.marks[p], round) }

// dropPayloads keeps nothing but the headers of rounds up to last.
func (d *disk) dropPayloads(p int, last uint32) {
	for id, h := range d.headers {
		if int(h.Header.Fragment) == p && h.Header.Round <= last {
			d.history[id] = h.Header
			delete(d.headers, id)
			delete(d.payloads, id)
			d.dropped++
		}
	}
}

// ownPayload reads an own delta back for the learner: the newest of that seq.
func (d *disk) ownPayload(seq uint64) ([]byte, error) {
	for _, o := range slices.Backward(d.own) {
		if payload, held := d.payloads[o.id]; o.seq == seq && held {
			return payload, nil
		}
	}
	return nil, fmt.Errorf("own delta %d is not on disk", seq)
}

// forgetOwn takes own deltas off the list that a restart reads.
func (d *disk) forgetOwn(which func(o ownRecord) bool) {
	for i, o := range d.own {
		d.own[i].forgotten = o.forgotten || which(o)
	}
}

func (d *disk) keepRound(p int, tip *outer.Tip, folded []outer.ID) {
	d.rounds[p][tip.Round] = core.LinkOf(tip, folded)
}

// truncate forgets rounds that a late delta put past the end of the fragment.
func (d *disk) truncate(p int, last uint32) {
	maps.DeleteFunc(d.rounds[p], func(r uint32, _ outer.Link) bool { return r > last })
}

// install replaces every fragment. Older records stay where the links continue them.
func (d *disk) install(tips []*outer.Tip, history [][]outer.Link, left core.Left) {
	for p, tip := range tips {
		first := history[p][0]
		keep, _ := core.Continues(d, p, history[p]) // which has no errors
		maps.DeleteFunc(d.rounds[p], func(r uint32, _ outer.Link) bool { return !keep || r > first.Round })
		for _, l := range history[p] {
			if l.Round > 0 && !(keep && l.Round == first.Round) {
				d.rounds[p][l.Round] = l
			}
		}
		d.bases[p] = map[uint32]*outer.Tip{tip.Round: tip}
		d.forgetOwn(func(o ownRecord) bool { return slices.Contains(left.Forget[p], o.id) })
	}
}

// crash leaves of the bases those that are on disk, of a fragment without any the
// newest, which an installation has put there.
func (d *disk) crash() {
	for _, bases := range d.bases {
		newest := slices.Max(slices.Collect(maps.Keys(bases)))
		tip := bases[newest]
		maps.DeleteFunc(bases, func(r uint32, _ *outer.Tip) bool { return r%diskSpacing != 0 })
		if len(bases) == 0 {
			bases[newest] = tip
		}
	}
}

// chunk reads one of the chunks of others' tips.
func (d *disk) chunk(id wire.Digest) ([]byte, error) {
	if b, ok := d.chunks[id]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("chunk %v is not on disk", id)
}

// LastRound, Rounds and Header make a disk a core.Ledger, what follows a core.Disk.
func (d *disk) LastRound(p int) (last uint32, err error) {
	for r := range d.rounds[p] {
		last = max(last, r)
	}
	return last, nil
}

func (d *disk) Rounds(p int, from, to uint32, f func(outer.Link) error) error {
	for _, r := range slices.Sorted(maps.Keys(d.rounds[p])) {
		if r < from || r > to {
			continue
		}
		if err := f(d.rounds[p][r]); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) Header(id wire.Digest) (h wire.Header, known bool, err error) {
	if signed, held := d.headers[id]; held {
		return signed.Header, true, nil
	}
	h, known = d.history[id]
	return h, known, nil
}

func (d *disk) Own() (records []core.OwnRecord, err error) {
	for _, o := range d.own {
		if !o.forgotten {
			h, _, _ := d.Header(o.id)
			records = append(records, core.OwnRecord{Seq: o.seq, ID: o.id, Header: h})
		}
	}
	return records, nil
}

func (d *disk) LostOwn(core.OwnRecord) (bool, error) { return false, nil }

func (d *disk) Mark(p int) (uint32, error) { return d.marks[p], nil }

func (d *disk) Bases(p int) ([]uint32, error) { return slices.Sorted(maps.Keys(d.bases[p])), nil }

func (d *disk) BaseState(p int, r uint32) (outer.Digest, error) { return d.bases[p][r].State, nil }

func (d *disk) Base(p int, r uint32) *outer.Tip { return d.bases[p][r] }

func (d *disk) DropBase(p int, r uint32) error {
	delete(d.bases[p], r)
	return nil
}

func (d *disk) Held(p int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	for id, h := range d.headers {
		if int(h.Header.Fragment) == p && h.Header.Round >= from {
			f(id, h)
		}
	}
	return nil
}

// crash kills a node: all but its disk is gone.
func (n *node) crash() {
	copy(n.disk.common, n.machine.Gossip().Chains().Common())
	n.stop()
	n.life++
	n.hung, n.backlog = false, nil
	n.disk.crash()
}

// restartNode boots a crashed node from its disk.
func (n *node) restartNode() {
	for p := range n.w.plan {
		n.lost += n.learner.Account(p).Total().Tokens
	}
	n.boot(n.load())
	for p := range n.w.plan {
		n.lost -= n.learner.Account(p).Total().Tokens
	}
	n.w.connectAll()
}

// load is what a restart finds: nil if that is nothing.
func (n *node) load() []core.Saved {
	genesis := n.w.genesis()
	saved, err := core.Load(n.disk, n.id, n.w.cfg.params, genesis)
	if err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
	for p, s := range saved {
		if s.Bases[0] == 0 {
			n.disk.bases[p][0] = genesis[p]
		}
	}
	return saved
}

// restore gives machine and learner what the disk had.
func (n *node) restore(saved []core.Saved) {
	for _, e := range n.disk.evidence {
		n.machine.Evidence(n.w.now, e)
	}
	for p, s := range saved {
		folded, err := n.machine.Restore(n.w.now, p, s.Restored, s.Headers)
		if err != nil {
			n.w.fatalf("node %d: %v", n.index, err)
		}
		own := core.OwnWork(s.Own, folded)
		for i, o := range s.Own {
			n.shadow[p].Restored(o.Seq, n.decode(p, n.disk.payloads[wire.Digest(o.Delta.ID)]), own[i].Folded)
		}
		if err := n.learner.Restore(p, own); err != nil {
			n.w.fatalf("node %d: %v", n.index, err)
		}
	}
}
