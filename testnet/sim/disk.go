package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// disk is what a node finds again after a restart. It follows the durability
// table of package node/store: an own delta, a mark and an install are durable
// when the call returns, and so is all that was put before; the rest of the index
// is durable after a commit, in order; the file of another's payload, or of a
// base, may be found damaged after a power cut, as it is not synced.
type disk struct {
	deltas   map[wire.Digest]*file
	headers  map[wire.Digest]wire.Header // of deltas without payload
	own      []ownRecord
	left     []ownRecord // off that list since the start: adoptions on their way may need them
	marks    []uint32
	bases    []map[uint32]*outer.Tip // as in memory
	written  []map[uint32]bool       // which of them are on disk
	rounds   []map[uint32]outer.Link
	missed   []map[uint32]outer.Link // in memory: what rounds should hold, and did not take
	common   []uint32                // rounds up to which others are known to have folded the same
	chunks   map[wire.Digest][]byte
	fetching []uint32 // rounds of the tips of which there are chunks
	evidence []wire.Evidence
	undo     []func() // takes back what was not committed, newest last
	unsynced []*file  // payloads written since the last power cut that could hurt
	full     bool     // every write fails
}

// file is the payload of a delta, with its header.
type file struct {
	header  *wire.SignedHeader // shared by all nodes
	bytes   []byte
	damaged bool
	signed  bool // the bytes were held against a header, see disk.signed
}

type ownRecord struct {
	seq uint64
	id  wire.Digest
}

// diskSpacing: the tips of rounds divisible by it go to disk, as in package node.
const diskSpacing = 4

func newDisk(fragments int) *disk {
	d := &disk{
		deltas: map[wire.Digest]*file{}, headers: map[wire.Digest]wire.Header{},
		chunks: map[wire.Digest][]byte{}, marks: make([]uint32, fragments), common: make([]uint32, fragments),
	}
	for range fragments {
		d.bases = append(d.bases, map[uint32]*outer.Tip{})
		d.written = append(d.written, map[uint32]bool{})
		d.rounds = append(d.rounds, map[uint32]outer.Link{})
		d.missed = append(d.missed, map[uint32]outer.Link{})
	}
	return d
}

// commit makes durable what was put so far.
func (d *disk) commit() {
	if !d.full {
		clear(d.undo)
		d.undo = d.undo[:0]
	}
}

func (d *disk) put(id wire.Digest, h *wire.SignedHeader, payload []byte) bool {
	if d.full {
		return false
	}
	f := &file{header: h, bytes: payload}
	d.deltas[id] = f
	d.unsynced = append(d.unsynced, f)
	d.undo = append(d.undo, func() { delete(d.deltas, id) })
	return true
}

// putHeader keeps the header of a delta that was folded before this node came.
func (d *disk) putHeader(id wire.Digest, h wire.Header) {
	if _, known, _ := d.Header(id); !known && !d.full {
		d.headers[id] = h
		d.undo = append(d.undo, func() { delete(d.headers, id) })
	}
}

// putFetching keeps which tips the chunks are of.
func (d *disk) putFetching(at []uint32) {
	if !d.full {
		old := d.fetching
		d.fetching = at
		d.undo = append(d.undo, func() { d.fetching = old })
	}
}

// putOwn is durable when it returns, with all that was put before.
func (d *disk) putOwn(e core.StoreOwn) bool {
	if d.full {
		return false
	}
	d.deltas[e.ID] = &file{header: &e.Header, bytes: e.Payload}
	d.own = append(d.own, ownRecord{e.Seq, e.ID})
	p := e.Header.Header.Fragment
	d.marks[p] = max(d.marks[p], e.Header.Header.Round)
	d.commit()
	return true
}

// raiseMark is durable when it returns, as own deltas are.
func (d *disk) raiseMark(p int, round uint32) {
	if !d.full {
		d.marks[p] = max(d.marks[p], round)
		d.commit()
	}
}

// putChunk reports whether there was room.
func (d *disk) putChunk(id wire.Digest, b []byte) bool {
	if !d.full {
		d.chunks[id] = b
	}
	return !d.full
}

// chunk reads one. The disk was full when those came that are not there.
func (d *disk) chunk(id wire.Digest) ([]byte, error) {
	if b, ok := d.chunks[id]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("chunk %v is not on disk", id)
}

// dropChunks is durable when it returns, as the chunks are files.
func (d *disk) dropChunks() {
	if !d.full {
		clear(d.chunks)
	}
}

func (d *disk) putEvidence(e wire.Evidence) {
	if !d.full {
		n := len(d.evidence)
		d.evidence = append(d.evidence, e)
		d.undo = append(d.undo, func() { d.evidence = d.evidence[:n] })
	}
}

// payload reads a payload; nil if it is damaged or not there.
func (d *disk) payload(id wire.Digest) []byte {
	f := d.deltas[id]
	if f == nil || f.damaged {
		return nil
	}
	return f.bytes
}

// signed says whether the payload of a header is what it signed. Bytes on disk do
// not change but by damage, so one look is enough.
func (d *disk) signed(id wire.Digest, h *wire.Header) bool {
	f := d.deltas[id]
	if f == nil || f.damaged {
		return false
	}
	f.signed = f.signed || h.CheckPayload(f.bytes) == nil
	return f.signed
}

// drop forgets a delta whose payload is damaged.
func (d *disk) drop(id wire.Digest) {
	delete(d.deltas, id)
}

// ownID is the newest own delta of a seq.
func (d *disk) ownID(seq uint64) (id wire.Digest, known bool) {
	for _, list := range [][]ownRecord{d.own, d.left} {
		for _, o := range slices.Backward(list) {
			if o.seq == seq {
				return o.id, true
			}
		}
	}
	return id, false
}

func (d *disk) ownIDs(seqs []uint64) (ids []wire.Digest) {
	for _, seq := range seqs {
		if id, known := d.ownID(seq); known {
			ids = append(ids, id)
		}
	}
	return ids
}

// ownPayload reads an own delta back for the learner.
func (d *disk) ownPayload(seq uint64) ([]byte, error) {
	if id, known := d.ownID(seq); known && d.deltas[id] != nil {
		return d.deltas[id].bytes, nil
	}
	return nil, fmt.Errorf("own delta %d is not on disk", seq)
}

// keepBase keeps a tip in memory and, if its round is due or a base of that round
// is there already, on disk. It reports whether the disk took it.
func (d *disk) keepBase(p int, tip *outer.Tip) bool {
	r := tip.Round
	if r%diskSpacing == 0 || d.written[p][r] {
		if d.full {
			return false
		}
		old, was := d.bases[p][r], d.written[p][r]
		d.written[p][r] = true
		d.undo = append(d.undo, func() {
			if was {
				d.bases[p][r] = old
			} else {
				delete(d.bases[p], r)
				delete(d.written[p], r)
			}
		})
	}
	d.bases[p][r] = tip
	return true
}

func (d *disk) dropBase(p int, r uint32) {
	old, was := d.bases[p][r], d.written[p][r]
	delete(d.bases[p], r)
	delete(d.written[p], r)
	if was {
		d.undo = append(d.undo, func() { d.bases[p][r], d.written[p][r] = old, true })
	}
}

func (d *disk) keepRound(p int, tip *outer.Tip, folded []outer.ID) {
	d.setRound(p, core.LinkOf(tip, folded))
}

func (d *disk) setRound(p int, l outer.Link) {
	if d.full {
		d.missed[p][l.Round] = l // until there is room, or a restart folds it again
		return
	}
	for _, r := range slices.Sorted(maps.Keys(d.missed[p])) {
		d.putRound(p, d.missed[p][r])
	}
	clear(d.missed[p])
	d.putRound(p, l)
}

func (d *disk) putRound(p int, l outer.Link) {
	old, had := d.rounds[p][l.Round]
	d.rounds[p][l.Round] = l
	d.undo = append(d.undo, func() { d.putBack(p, l.Round, old, had) })
}

func (d *disk) putBack(p int, r uint32, old outer.Link, had bool) {
	if had {
		d.rounds[p][r] = old
	} else {
		delete(d.rounds[p], r)
	}
}

// truncate forgets rounds that a late delta put past the end of the fragment.
func (d *disk) truncate(p int, last uint32) {
	for r := last + 1; !d.full; r++ {
		old, ok := d.rounds[p][r]
		if !ok {
			return
		}
		delete(d.rounds[p], r)
		d.undo = append(d.undo, func() { d.rounds[p][old.Round] = old })
	}
}

// install replaces every fragment in one commit. Older records stay where the
// links continue them.
func (d *disk) install(tips []*outer.Tip, history [][]outer.Link, forget [][]wire.Digest) bool {
	if d.full {
		return false
	}
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
		d.written[p] = map[uint32]bool{tip.Round: true}
		clear(d.missed[p])
		d.forgetOwn(forget[p])
	}
	d.commit()
	return true
}

// forgetOwn takes own deltas off the list that a restart reads.
func (d *disk) forgetOwn(ids []wire.Digest) {
	d.own = slices.DeleteFunc(d.own, func(o ownRecord) bool {
		forget := slices.Contains(ids, o.id)
		if forget {
			d.left = append(d.left, o)
		}
		return forget
	})
}

// forgetFinal takes own deltas that are final off that list, once it is committed.
func (d *disk) forgetFinal(seqs []uint64) {
	var ids []wire.Digest
	for _, o := range d.own {
		if slices.Contains(seqs, o.seq) {
			ids = append(ids, o.id)
		}
	}
	if d.full || len(ids) == 0 {
		return
	}
	old := slices.Clone(d.own)
	d.undo = append(d.undo, func() { d.own = old })
	d.forgetOwn(ids)
}

// LastRound, Rounds and Header make a disk a core.Ledger; with Mark and the others
// it is a core.Disk.
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
	if f, held := d.deltas[id]; held {
		return f.header.Header, true, nil
	}
	h, known = d.headers[id]
	return h, known, nil
}

// nextSeq is above the numbers of all own deltas.
func (d *disk) nextSeq() (next uint64) {
	for _, o := range d.own {
		next = max(next, o.seq+1)
	}
	return next
}

// Own are the own deltas that a restart would find.
func (d *disk) Own() ([]core.OwnRecord, error) {
	records := make([]core.OwnRecord, len(d.own))
	for i, o := range d.own {
		records[i] = core.OwnRecord{Seq: o.seq, ID: o.id, Header: d.deltas[o.id].header.Header}
	}
	return records, nil
}

// LostOwn says whether a payload is damaged.
func (d *disk) LostOwn(o core.OwnRecord) (bool, error) {
	if d.payload(o.ID) != nil {
		return false, nil
	}
	d.forgetOwn([]wire.Digest{o.ID})
	d.drop(o.ID)
	return true, nil
}

func (d *disk) Mark(p int) (uint32, error) { return d.marks[p], nil }

func (d *disk) Bases(p int) ([]uint32, error) { return slices.Sorted(maps.Keys(d.bases[p])), nil }

func (d *disk) BaseState(p int, r uint32) (outer.Digest, error) { return d.bases[p][r].State, nil }

func (d *disk) Base(p int, r uint32) *outer.Tip { return d.bases[p][r] }

func (d *disk) DropBase(p int, r uint32) error {
	delete(d.bases[p], r)
	delete(d.written[p], r)
	return nil
}

func (d *disk) Held(p int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	for id, file := range d.deltas {
		if h := file.header.Header; int(h.Fragment) == p && h.Round >= from {
			f(id, *file.header)
		}
	}
	return nil
}

// crash leaves what a kill leaves: the index up to its last commit, and bases in
// files only.
func (d *disk) crash() {
	for _, undo := range slices.Backward(d.undo) {
		undo()
	}
	d.undo, d.left = nil, nil
	for p := range d.bases {
		maps.DeleteFunc(d.bases[p], func(r uint32, _ *outer.Tip) bool { return !d.written[p][r] })
		clear(d.missed[p])
	}
}

// Shares of the files written since the last power cut that this one damages.
const damagedShare = 0.1

// powerCut is a crash that may also damage files that were never synced.
func (d *disk) powerCut(rng *rand.Rand) (damaged int) {
	d.crash()
	for _, f := range d.unsynced {
		if rng.Float64() < damagedShare {
			f.damaged = true
			damaged++
		}
	}
	d.unsynced = nil
	for p := range d.bases {
		for _, r := range slices.Sorted(maps.Keys(d.bases[p])) {
			if rng.Float64() < damagedShare { // its digest does not fit: a restart drops it
				delete(d.bases[p], r)
				delete(d.written[p], r)
				damaged++
			}
		}
	}
	return damaged
}
