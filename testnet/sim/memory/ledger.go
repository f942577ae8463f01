// Package memory is a replica's ledger without a disk: what a node finds again
// after a crash, a power cut, or damage.
package memory

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
)

// Ledger follows the durability table of package node/store. An own delta, a mark
// and an install are durable when the call returns, and so is all that was put
// before. The rest of the index is durable after a Commit, in order. The file of
// another's payload, or of a base, is not synced and may be damaged after a power
// cut.
type Ledger struct {
	Common   []uint32 // rounds up to which others are known to have folded the same
	Fetching []uint32 // rounds of the snapshot that there are chunks of
	Full     bool     // every write fails
	Synced   bool     // every write is durable at once

	deltas       map[wire.Digest]*file
	headers      map[wire.Digest]wire.Header // of deltas without payload
	own          []ownRecord
	unlisted     []ownRecord // off that list since the start: adoptions on their way may need them
	marks        []uint32
	bases        []map[uint32]*outer.Tip
	rounds       []map[uint32]outer.Link
	chunks       map[wire.Digest][]byte
	equivocation []wire.Equivocation
	members      []member.Certificate
	revoked      []member.Word
	undo         []func() // undoes what was not committed, newest last
	cache        struct {
		newest []uint32 // no record of a fragment is of a later round
	}
	unsynced []*file // payloads written since the last power cut that could hurt
}

var _ replica.Ledger = (*Ledger)(nil)

// file is the payload of a delta, with its header.
type file struct {
	header  *wire.SignedHeader // shared by all nodes
	bytes   []byte
	damaged bool
	signed  bool // the bytes were held against a header, see Signed
}

type ownRecord struct {
	seq uint64
	id  wire.Digest
}

// ErrFull is what a full disk says to each write.
var ErrFull = errors.New("no room on the disk")

var errDamaged = fmt.Errorf("payload: %w", replica.ErrGone)

// New returns the empty ledger of a run with so many fragments.
func New(fragments int) *Ledger {
	l := &Ledger{
		Common: make([]uint32, fragments),
		deltas: map[wire.Digest]*file{}, headers: map[wire.Digest]wire.Header{},
		chunks: map[wire.Digest][]byte{}, marks: make([]uint32, fragments),
	}
	for range fragments {
		l.bases = append(l.bases, map[uint32]*outer.Tip{})
		l.rounds = append(l.rounds, map[uint32]outer.Link{})
	}
	l.cache.newest = make([]uint32, fragments)
	return l
}

// Commit makes durable what was put so far.
func (l *Ledger) Commit() {
	if !l.Full {
		clear(l.undo)
		l.undo = l.undo[:0]
	}
}

// undone keeps how to undo what was just put.
func (l *Ledger) undone(undo func()) {
	if !l.Synced {
		l.undo = append(l.undo, undo)
	}
}

// room is the error of a write.
func (l *Ledger) room() error {
	if l.Full {
		return ErrFull
	}
	return nil
}

// PutDelta implements replica.Ledger.
func (l *Ledger) PutDelta(id wire.Digest, h *wire.SignedHeader, payload []byte) error {
	if l.Full {
		return ErrFull
	}
	f := &file{header: h, bytes: payload}
	l.deltas[id] = f
	if !l.Synced {
		l.unsynced = append(l.unsynced, f)
	}
	l.undone(func() { delete(l.deltas, id) })
	return nil
}

// PutHeader implements replica.Ledger.
func (l *Ledger) PutHeader(id wire.Digest, h wire.SignedHeader) error {
	if _, known, _ := l.Header(id); known || l.Full {
		return l.room()
	}
	l.headers[id] = h.Header
	l.undone(func() { delete(l.headers, id) })
	return nil
}

// PutFetching implements replica.Ledger.
func (l *Ledger) PutFetching(at []uint32) error {
	if !l.Full {
		old := l.Fetching
		l.Fetching = at
		l.undone(func() { l.Fetching = old })
	}
	return l.room()
}

// PutOwn implements replica.Ledger.
func (l *Ledger) PutOwn(e core.StoreOwn) error {
	if l.Full {
		return ErrFull
	}
	l.deltas[e.ID] = &file{header: &e.Header, bytes: e.Payload}
	l.own = append(l.own, ownRecord{e.Seq, e.ID})
	p := e.Header.Header.Fragment
	l.marks[p] = max(l.marks[p], e.Header.Header.Round)
	l.Commit()
	return nil
}

// RaiseMark implements replica.Ledger.
func (l *Ledger) RaiseMark(p int, round uint32) error {
	if !l.Full {
		l.marks[p] = max(l.marks[p], round)
		l.Commit()
	}
	return l.room()
}

// PutMarksKnown implements replica.Ledger: which keys have a ledger is the world's
// to know.
func (l *Ledger) PutMarksKnown() error { return nil }

// PutChunk implements replica.Ledger.
func (l *Ledger) PutChunk(id wire.Digest, b []byte) error {
	if !l.Full {
		l.chunks[id] = b
	}
	return l.room()
}

// HasChunk says whether a chunk is here.
func (l *Ledger) HasChunk(id wire.Digest) bool { return l.chunks[id] != nil }

// Chunk implements replica.Ledger. The disk was full when those came that are not
// there.
func (l *Ledger) Chunk(id wire.Digest) ([]byte, error) {
	if b, ok := l.chunks[id]; ok {
		return b, nil
	}
	return nil, fmt.Errorf("chunk %v: %w", id, replica.ErrGone)
}

// DropChunks implements replica.Ledger. It is durable when it returns, as the chunks
// are files.
func (l *Ledger) DropChunks() error {
	if !l.Full {
		clear(l.chunks)
	}
	return l.room()
}

// keep adds to a list, where the disk has room.
func keep[T any](l *Ledger, list *[]T, v T) error {
	if !l.Full {
		n := len(*list)
		*list = append(*list, v)
		l.undone(func() { *list = (*list)[:n] })
	}
	return l.room()
}

// PutEquivocation implements replica.Ledger.
func (l *Ledger) PutEquivocation(e wire.Equivocation) error {
	return keep(l, &l.equivocation, e)
}

// Equivocation implements replica.Ledger.
func (l *Ledger) Equivocation() ([]wire.Equivocation, error) { return l.equivocation, nil }

// PutMember implements replica.Ledger.
func (l *Ledger) PutMember(c member.Certificate) error {
	return keep(l, &l.members, c)
}

// Members implements replica.Ledger.
func (l *Ledger) Members() ([]member.Certificate, error) { return l.members, nil }

// PutRevocation implements replica.Ledger.
func (l *Ledger) PutRevocation(word member.Word) error {
	return keep(l, &l.revoked, word)
}

// Revocations implements replica.Ledger.
func (l *Ledger) Revocations() ([]member.Word, error) { return l.revoked, nil }

// Payload implements replica.Ledger.
func (l *Ledger) Payload(id wire.Digest) ([]byte, error) {
	f := l.deltas[id]
	if f == nil || f.damaged {
		return nil, errDamaged
	}
	return f.bytes, nil
}

// Holds says whether a delta is here, damaged or not.
func (l *Ledger) Holds(id wire.Digest) bool { return l.deltas[id] != nil }

// Signed says whether the payload of a header is what it signed. Bytes on disk do
// not change unless they are damaged, so one look is enough.
func (l *Ledger) Signed(id wire.Digest, h *wire.Header) bool {
	f := l.deltas[id]
	if f == nil || f.damaged {
		return false
	}
	f.signed = f.signed || h.CheckPayload(f.bytes) == nil
	return f.signed
}

// DropPayload implements replica.Ledger.
func (l *Ledger) DropPayload(id wire.Digest) error {
	delete(l.deltas, id)
	return nil
}

// ForgetDelta implements replica.Ledger.
func (l *Ledger) ForgetDelta(id wire.Digest) error {
	if l.Full {
		return ErrFull
	}
	f, held := l.deltas[id]
	h, known := l.headers[id]
	delete(l.deltas, id)
	delete(l.headers, id)
	l.undone(func() {
		if held {
			l.deltas[id] = f
		}
		if known {
			l.headers[id] = h
		}
	})
	return nil
}

// Retain implements replica.Ledger.
func (l *Ledger) Retain(budget int64, limit []uint32, own map[wire.Digest]bool) (kept replica.Kept, err error) {
	type old struct {
		round uint32
		id    wire.Digest
	}
	var may []old
	for id, f := range l.deltas {
		kept.Bytes += int64(len(f.bytes))
		if h := f.header.Header; h.Round <= limit[h.Fragment] && !own[id] {
			may = append(may, old{h.Round, id})
		}
	}
	slices.SortFunc(may, func(a, b old) int {
		if a.round != b.round {
			return int(a.round) - int(b.round)
		}
		return a.id.Compare(b.id)
	})
	for _, d := range may {
		if kept.Bytes <= budget {
			break
		}
		f := l.deltas[d.id]
		l.headers[d.id] = f.header.Header
		delete(l.deltas, d.id)
		kept.Bytes -= int64(len(f.bytes))
		kept.Dropped++
	}
	return kept, nil
}

// Archive implements replica.Ledger. Memory has no start to keep short.
func (l *Ledger) Archive([]uint32) error { return nil }

// PutBase implements replica.Ledger.
func (l *Ledger) PutBase(p int, tip *outer.Tip) error {
	if l.Full {
		return ErrFull
	}
	r := tip.Round
	old, was := l.bases[p][r]
	l.bases[p][r] = tip
	l.undone(func() {
		if was {
			l.bases[p][r] = old
		} else {
			delete(l.bases[p], r)
		}
	})
	return nil
}

// DropBase implements replica.Ledger.
func (l *Ledger) DropBase(p int, r uint32) error {
	if old, was := l.bases[p][r]; was {
		delete(l.bases[p], r)
		l.undone(func() { l.bases[p][r] = old })
	}
	return nil
}

// Bases implements replica.Ledger.
func (l *Ledger) Bases(p int) ([]uint32, error) { return slices.Sorted(maps.Keys(l.bases[p])), nil }

// BaseState implements replica.Ledger.
func (l *Ledger) BaseState(p int, r uint32) (outer.Digest, error) { return l.bases[p][r].State, nil }

// Base implements replica.Ledger.
func (l *Ledger) Base(p int, r uint32) (*outer.Tip, error) {
	if tip := l.bases[p][r]; tip != nil {
		return tip, nil
	}
	return nil, replica.ErrGone
}

// PutRounds implements replica.Ledger.
func (l *Ledger) PutRounds(p int, rounds []outer.Link) error {
	if l.Full {
		return ErrFull
	}
	for _, link := range rounds {
		old, had := l.rounds[p][link.Round]
		l.putRound(p, link.Round, link)
		l.undone(func() { l.putBack(p, link.Round, old, had) })
	}
	return nil
}

func (l *Ledger) putRound(p int, r uint32, link outer.Link) {
	l.rounds[p][r] = link
	l.cache.newest[p] = max(l.cache.newest[p], r)
}

func (l *Ledger) putBack(p int, r uint32, old outer.Link, had bool) {
	if had {
		l.putRound(p, r, old)
	} else {
		delete(l.rounds[p], r)
	}
}

// TruncateRounds implements replica.Ledger.
func (l *Ledger) TruncateRounds(p int, last uint32) error {
	if l.Full {
		return ErrFull
	}
	if l.cache.newest[p] <= last { // as nearly always
		return nil
	}
	l.cache.newest[p] = last
	for r, old := range l.rounds[p] { // there may be gaps
		if r > last {
			delete(l.rounds[p], r)
			l.undone(func() { l.putRound(p, r, old) })
		}
	}
	return nil
}

// Record is the record of one round, if there is one.
func (l *Ledger) Record(p int, r uint32) (outer.Link, bool) {
	link, ok := l.rounds[p][r]
	return link, ok
}

// Records are all rounds of a fragment, in no order.
func (l *Ledger) Records(p int) map[uint32]outer.Link { return l.rounds[p] }

// Install implements replica.Ledger.
func (l *Ledger) Install(fragments []replica.InstalledFragment) error {
	if l.Full {
		return ErrFull
	}
	for p, f := range fragments {
		first := f.Links[0]
		maps.DeleteFunc(l.rounds[p], func(r uint32, _ outer.Link) bool { return !f.Keep || r > first.Round })
		for _, link := range f.Links {
			if link.Round > 0 && !(f.Keep && link.Round == first.Round) {
				l.putRound(p, link.Round, link)
			}
		}
		l.bases[p] = map[uint32]*outer.Tip{f.Tip.Round: f.Tip}
		l.forget(f.Forget)
	}
	l.Commit()
	return nil
}

// forget takes own deltas off the list that a restart reads.
func (l *Ledger) forget(ids []wire.Digest) {
	l.own = slices.DeleteFunc(l.own, func(o ownRecord) bool {
		forget := slices.Contains(ids, o.id)
		if forget {
			l.unlisted = append(l.unlisted, o)
		}
		return forget
	})
}

// ForgetOwn implements replica.Ledger.
func (l *Ledger) ForgetOwn(ids []wire.Digest) error {
	if l.Full || !slices.ContainsFunc(l.own, func(o ownRecord) bool { return slices.Contains(ids, o.id) }) {
		return nil // one that is read again is forgotten again
	}
	old := slices.Clone(l.own)
	l.undone(func() { l.own = old })
	l.forget(ids)
	return nil
}

// LoseOwn implements replica.Ledger.
func (l *Ledger) LoseOwn(id wire.Digest) error {
	l.forget([]wire.Digest{id})
	return l.DropPayload(id)
}

// OwnID is the newest own delta of a number.
func (l *Ledger) OwnID(seq uint64) (id wire.Digest, known bool) {
	for _, list := range [][]ownRecord{l.own, l.unlisted} {
		for _, o := range slices.Backward(list) {
			if o.seq == seq {
				return o.id, true
			}
		}
	}
	return id, false
}

// OwnIDs are the ids of some numbers, as far as they are known.
func (l *Ledger) OwnIDs(seqs []uint64) (ids []wire.Digest) {
	for _, seq := range seqs {
		if id, known := l.OwnID(seq); known {
			ids = append(ids, id)
		}
	}
	return ids
}

// Own implements replica.Ledger.
func (l *Ledger) Own() ([]core.OwnRecord, error) {
	records := make([]core.OwnRecord, len(l.own))
	for i, o := range l.own {
		h, _, _ := l.Header(o.id) // which has no errors
		records[i] = core.OwnRecord{Seq: o.seq, ID: o.id, Header: h}
	}
	return records, nil
}

// NextSeq is above the numbers of all own deltas.
func (l *Ledger) NextSeq() (next uint64) {
	for _, o := range l.own {
		next = max(next, o.seq+1)
	}
	return next
}

// LastRound implements replica.Ledger.
func (l *Ledger) LastRound(p int) (last uint32, err error) {
	for r := range l.rounds[p] {
		last = max(last, r)
	}
	return last, nil
}

// Rounds implements replica.Ledger.
func (l *Ledger) Rounds(p int, from, to uint32, f func(outer.Link) error) error {
	if from == to { // the most common question
		if link, ok := l.rounds[p][from]; ok {
			return f(link)
		}
		return nil
	}
	for _, r := range slices.Sorted(maps.Keys(l.rounds[p])) {
		if r < from || r > to {
			continue
		}
		if err := f(l.rounds[p][r]); err != nil {
			return err
		}
	}
	return nil
}

// Header implements replica.Ledger.
func (l *Ledger) Header(id wire.Digest) (h wire.Header, known bool, err error) {
	if f, held := l.deltas[id]; held {
		return f.header.Header, true, nil
	}
	h, known = l.headers[id]
	return h, known, nil
}

// HeaderAt implements replica.Ledger.
func (l *Ledger) HeaderAt(_ int, _ uint32, id wire.Digest) (h wire.Header, known bool, err error) {
	return l.Header(id)
}

// Authors implements replica.Ledger.
func (l *Ledger) Authors(f func(wire.PeerID)) error {
	var rounds []uint32
	for p := range l.rounds {
		rounds = slices.AppendSeq(rounds, maps.Keys(l.rounds[p]))
	}
	slices.Sort(rounds)
	told := map[wire.PeerID]bool{}
	for _, r := range slices.Compact(rounds) {
		for p := range l.rounds {
			for _, id := range l.rounds[p][r].Folded {
				if h, known, _ := l.Header(wire.Digest(id)); known && !told[h.Author] {
					told[h.Author] = true
					f(h.Author)
				}
			}
		}
	}
	return nil
}

// Mark implements replica.Ledger.
func (l *Ledger) Mark(p int) (uint32, error) { return l.marks[p], nil }

// Held implements replica.Ledger.
func (l *Ledger) Held(p int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	for id, file := range l.deltas {
		if h := file.header.Header; int(h.Fragment) == p && h.Round >= from {
			f(id, *file.header)
		}
	}
	return nil
}

// Crash leaves what a kill leaves: the index up to its last commit.
func (l *Ledger) Crash() {
	for _, undo := range slices.Backward(l.undo) {
		undo()
	}
	l.undo, l.unlisted = nil, nil
}

// damagedShare is the part of the files written since the last power cut that this
// one damages.
const damagedShare = 0.1

// PowerCut is a Crash that may also damage files that were never synced.
func (l *Ledger) PowerCut(rng *rand.Rand) (damaged int) {
	l.Crash()
	for _, f := range l.unsynced {
		if rng.Float64() < damagedShare {
			f.damaged = true
			damaged++
		}
	}
	l.unsynced = nil
	for p := range l.bases {
		for _, r := range slices.Sorted(maps.Keys(l.bases[p])) {
			if rng.Float64() < damagedShare { // its digest does not fit: a restart drops it
				delete(l.bases[p], r)
				damaged++
			}
		}
	}
	return damaged
}

// DamageOwn damages the payloads of the newest own deltas, which a sound disk never loses, and names them.
func (l *Ledger) DamageOwn(newest int) (lost []wire.Digest) {
	for _, o := range l.own[max(len(l.own)-newest, 0):] {
		if f := l.deltas[o.id]; f != nil && !f.damaged {
			f.damaged = true
			lost = append(lost, o.id)
		}
	}
	return lost
}

// Sizes are how many deltas with payload, chunks of snapshots, and proofs there are.
func (l *Ledger) Sizes() (deltas, chunks, proofs int) {
	return len(l.deltas), len(l.chunks), len(l.equivocation)
}

// Deltas calls f with each delta and its payload, in no order. A damaged payload
// is nil.
func (l *Ledger) Deltas(f func(id wire.Digest, h *wire.SignedHeader, payload []byte)) {
	for id, d := range l.deltas {
		if d.damaged {
			f(id, d.header, nil)
		} else {
			f(id, d.header, d.bytes)
		}
	}
}

// Damaged says whether some payload is.
func (l *Ledger) Damaged() bool {
	for _, f := range l.deltas {
		if f.damaged {
			return true
		}
	}
	return false
}

// Empty says that nothing of the run is here.
func (l *Ledger) Empty() bool {
	for p := range l.rounds {
		if len(l.rounds[p]) > 0 || l.marks[p] > 0 {
			return false
		}
	}
	return len(l.deltas) == 0
}
