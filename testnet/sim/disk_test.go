package sim

import (
	"math/rand/v2"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

func headerOf(round uint32) *wire.SignedHeader {
	return &wire.SignedHeader{Header: wire.Header{Round: round}}
}

// ownOf are the own deltas that a restart of this disk finds.
func ownOf(d *disk) []core.OwnRecord {
	own, _ := d.Own() // which has no errors
	return own
}

// A kill takes back what was not committed, in all parts, and nothing else.
func TestDiskCrash(t *testing.T) {
	d := newDisk(1)
	d.put(wire.Digest{1}, headerOf(1), []byte("a"))
	d.keepBase(0, &outer.Tip{Round: 4})
	d.keepRound(0, &outer.Tip{Round: 4, Tokens: 1}, nil)
	d.commit()
	d.put(wire.Digest{2}, headerOf(2), []byte("b"))
	d.keepBase(0, &outer.Tip{Round: 5})
	d.keepBase(0, &outer.Tip{Round: 8})
	d.keepRound(0, &outer.Tip{Round: 4, Tokens: 2}, nil)
	d.keepRound(0, &outer.Tip{Round: 5}, nil)
	d.dropBase(0, 4)
	d.putEvidence(wire.Evidence{})
	d.crash()
	if d.payload(wire.Digest{1}) == nil || d.payload(wire.Digest{2}) != nil || len(d.deltas) != 1 || len(d.evidence) != 0 {
		t.Errorf("deltas %v, evidence %v", d.deltas, d.evidence)
	}
	if len(d.bases[0]) != 1 || d.bases[0][4] == nil || !d.written[0][4] {
		t.Errorf("bases %v", d.bases[0])
	}
	if len(d.rounds[0]) != 1 || d.rounds[0][4].Tokens != 1 {
		t.Errorf("rounds %v", d.rounds[0])
	}
}

// An own delta is durable when the call returns, with all that was put before.
func TestDiskOwnDeltaIsDurable(t *testing.T) {
	d := newDisk(1)
	d.put(wire.Digest{1}, headerOf(1), []byte("a"))
	if !d.putOwn(core.StoreOwn{ID: wire.Digest{2}, Header: *headerOf(3), Payload: []byte("b"), Seq: 7}) {
		t.Fatal("not stored")
	}
	d.crash()
	if b, err := d.ownPayload(7); err != nil || string(b) != "b" || d.marks[0] != 3 || d.payload(wire.Digest{1}) == nil {
		t.Errorf("own %q, %v, marks %v", b, err, d.marks)
	}
}

// Off the list an own delta is not found by a restart, but is still read by adoptions
// that are on their way to the learner.
func TestDiskForgottenOwnDelta(t *testing.T) {
	d := newDisk(1)
	d.putOwn(core.StoreOwn{ID: wire.Digest{2}, Header: *headerOf(3), Payload: []byte("b"), Seq: 7})
	d.forgetOwn([]wire.Digest{{2}})
	if b, err := d.ownPayload(7); err != nil || string(b) != "b" || len(ownOf(d)) != 0 {
		t.Errorf("own %q, %v, %d records", b, err, len(ownOf(d)))
	}
	d.crash()
	if b, err := d.ownPayload(7); err == nil {
		t.Errorf("a later process reads %q", b)
	}
}

// That an own delta is final is no news to lose anything for: a kill before the next
// commit finds the delta again, and one after it does not.
func TestDiskFinalOwnDelta(t *testing.T) {
	d := newDisk(1)
	for seq := range uint64(3) {
		d.putOwn(core.StoreOwn{ID: wire.Digest{byte(seq)}, Header: *headerOf(uint32(seq) + 1), Seq: seq})
	}
	d.forgetFinal([]uint64{0, 1})
	d.crash()
	if n := len(ownOf(d)); n != 3 {
		t.Errorf("%d own deltas, not committed", n)
	}
	d.forgetFinal([]uint64{0, 1})
	d.commit()
	d.crash()
	if own := ownOf(d); len(own) != 1 || own[0].ID != (wire.Digest{2}) {
		t.Errorf("own deltas %v, committed", own)
	}
}

// The header of a delta that is not here, and which tips the chunks are of, are in the
// index; a header never takes the place of a delta that is here.
func TestDiskHeadersAndFetch(t *testing.T) {
	d := newDisk(1)
	d.put(wire.Digest{1}, headerOf(1), []byte("a"))
	d.putHeader(wire.Digest{1}, wire.Header{Round: 9})
	d.putHeader(wire.Digest{2}, wire.Header{Round: 2})
	d.putFetching([]uint32{4})
	d.commit()
	d.putHeader(wire.Digest{3}, wire.Header{Round: 3})
	d.putFetching(nil)
	d.crash()
	for id, want := range map[wire.Digest]uint32{{1}: 1, {2}: 2, {3}: 0} {
		if h, known, _ := d.Header(id); h.Round != want || known != (want > 0) {
			t.Errorf("header %v: round %d, %v", id, h.Round, known)
		}
	}
	if len(d.fetching) != 1 || d.fetching[0] != 4 {
		t.Errorf("fetching %v", d.fetching)
	}
}

// A power cut damages some files that were never synced, and no own delta.
func TestDiskPowerCut(t *testing.T) {
	d := newDisk(1)
	for i := range byte(200) {
		d.put(wire.Digest{1, i}, headerOf(1), []byte{i})
		d.putOwn(core.StoreOwn{ID: wire.Digest{2, i}, Header: *headerOf(1), Payload: []byte{i}, Seq: uint64(i)})
	}
	damaged := d.powerCut(rand.New(rand.NewPCG(1, 1)))
	lost := 0
	for i := range byte(200) {
		if d.payload(wire.Digest{1, i}) == nil {
			lost++
		}
		if d.payload(wire.Digest{2, i}) == nil {
			t.Errorf("own delta %d is damaged", i)
		}
	}
	if lost == 0 || lost != damaged || lost > 60 {
		t.Errorf("%d files lost, %d damaged", lost, damaged)
	}
}

// A full disk takes nothing, and what is there stays.
func TestDiskFull(t *testing.T) {
	d := newDisk(1)
	d.put(wire.Digest{1}, headerOf(1), []byte("a"))
	d.full = true
	if d.put(wire.Digest{2}, headerOf(2), nil) || d.putOwn(core.StoreOwn{}) || d.keepBase(0, &outer.Tip{Round: 4}) || d.install(nil, nil, nil) {
		t.Error("a full disk took something")
	}
	if !d.keepBase(0, &outer.Tip{Round: 5}) {
		t.Error("a base of memory needs the disk")
	}
	d.keepRound(0, &outer.Tip{Round: 5}, nil)
	d.commit()
	d.crash()
	if len(d.deltas) != 0 || len(d.rounds[0]) != 0 {
		t.Errorf("what was not committed stayed: %v %v", d.deltas, d.rounds[0])
	}
}
