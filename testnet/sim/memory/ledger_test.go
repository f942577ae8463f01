package memory

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
)

func headerOf(round uint32) *wire.SignedHeader {
	return &wire.SignedHeader{Header: wire.Header{Round: round}}
}

// ownOf are the own deltas that a restart of this disk finds.
func ownOf(d *Ledger) []core.OwnRecord {
	own, _ := d.Own() // which has no errors
	return own
}

func lost(d *Ledger, id wire.Digest) bool {
	_, err := d.Payload(id)
	return errors.Is(err, replica.ErrGone)
}

// A kill undoes what was not committed, in all parts, and nothing else.
func TestCrash(t *testing.T) {
	d := New(1)
	_ = d.PutDelta(wire.Digest{1}, headerOf(1), []byte("a"))
	_ = d.PutBase(0, &outer.Tip{Round: 4})
	_ = d.PutRounds(0, []outer.Link{{Round: 4, Tokens: 1}})
	d.Commit()
	_ = d.PutDelta(wire.Digest{2}, headerOf(2), []byte("b"))
	_ = d.PutBase(0, &outer.Tip{Round: 8})
	_ = d.PutRounds(0, []outer.Link{{Round: 4, Tokens: 2}})
	_ = d.PutRounds(0, []outer.Link{{Round: 5}})
	_ = d.DropBase(0, 4)
	_ = d.PutEquivocation(wire.Equivocation{})
	d.Crash()
	if lost(d, wire.Digest{1}) || !lost(d, wire.Digest{2}) || len(d.deltas) != 1 || len(d.equivocation) != 0 {
		t.Errorf("deltas %v, equivocation proof %v", d.deltas, d.equivocation)
	}
	if len(d.bases[0]) != 1 || d.bases[0][4] == nil {
		t.Errorf("bases %v", d.bases[0])
	}
	if len(d.rounds[0]) != 1 || d.rounds[0][4].Tokens != 1 {
		t.Errorf("rounds %v", d.rounds[0])
	}
}

// An own delta is durable when the call returns, with all that was put before.
func TestOwnDeltaIsDurable(t *testing.T) {
	d := New(1)
	_ = d.PutDelta(wire.Digest{1}, headerOf(1), []byte("a"))
	if err := d.PutOwn(core.StoreOwn{ID: wire.Digest{2}, Header: *headerOf(3), Payload: []byte("b"), Seq: 7}); err != nil {
		t.Fatal(err)
	}
	d.Crash()
	if b, err := d.Payload(wire.Digest{2}); err != nil || string(b) != "b" || d.marks[0] != 3 || lost(d, wire.Digest{1}) {
		t.Errorf("own %q, %v, marks %v", b, err, d.marks)
	}
}

// Off the list an own delta is not found by a restart, but is still known to this
// process.
func TestForgottenOwnDelta(t *testing.T) {
	d := New(1)
	_ = d.PutOwn(core.StoreOwn{ID: wire.Digest{2}, Header: *headerOf(3), Payload: []byte("b"), Seq: 7})
	_ = d.ForgetOwn([]wire.Digest{{2}})
	if id, known := d.OwnID(7); !known || id != (wire.Digest{2}) || len(ownOf(d)) != 0 {
		t.Errorf("own %v, %v, %d records", id, known, len(ownOf(d)))
	}
	d.Commit()
	d.Crash()
	if id, known := d.OwnID(7); known {
		t.Errorf("a later process knows %v", id)
	}
}

// That an own delta is final is no news to lose anything for: a kill before the next
// commit finds the delta again, and one after it does not.
func TestFinalOwnDelta(t *testing.T) {
	d := New(1)
	for seq := range uint64(3) {
		_ = d.PutOwn(core.StoreOwn{ID: wire.Digest{byte(seq)}, Header: *headerOf(uint32(seq) + 1), Seq: seq})
	}
	_ = d.ForgetOwn([]wire.Digest{{0}, {1}})
	d.Crash()
	if n := len(ownOf(d)); n != 3 {
		t.Errorf("%d own deltas, not committed", n)
	}
	_ = d.ForgetOwn([]wire.Digest{{0}, {1}})
	d.Commit()
	d.Crash()
	if own := ownOf(d); len(own) != 1 || own[0].ID != (wire.Digest{2}) {
		t.Errorf("own deltas %v, committed", own)
	}
}

// The index has the headers of deltas that are not here, and the tips that the chunks
// are of. A header never takes the place of a delta that is here.
func TestHeadersAndFetch(t *testing.T) {
	d := New(1)
	_ = d.PutDelta(wire.Digest{1}, headerOf(1), []byte("a"))
	_ = d.PutHeader(wire.Digest{1}, wire.SignedHeader{Header: wire.Header{Round: 9}})
	_ = d.PutHeader(wire.Digest{2}, wire.SignedHeader{Header: wire.Header{Round: 2}})
	_ = d.PutFetching([]uint32{4})
	d.Commit()
	_ = d.PutHeader(wire.Digest{3}, wire.SignedHeader{Header: wire.Header{Round: 3}})
	_ = d.PutFetching(nil)
	d.Crash()
	for id, want := range map[wire.Digest]uint32{{1}: 1, {2}: 2, {3}: 0} {
		if h, known, _ := d.Header(id); h.Round != want || known != (want > 0) {
			t.Errorf("header %v: round %d, %v", id, h.Round, known)
		}
	}
	if len(d.Fetching) != 1 || d.Fetching[0] != 4 {
		t.Errorf("fetching %v", d.Fetching)
	}
}

// A power cut damages some files that were never synced, and no own delta.
func TestPowerCut(t *testing.T) {
	d := New(1)
	for i := range byte(200) {
		_ = d.PutDelta(wire.Digest{1, i}, headerOf(1), []byte{i})
		_ = d.PutOwn(core.StoreOwn{ID: wire.Digest{2, i}, Header: *headerOf(1), Payload: []byte{i}, Seq: uint64(i)})
	}
	damaged := d.PowerCut(rand.New(rand.NewPCG(1, 1)))
	gone := 0
	for i := range byte(200) {
		if lost(d, wire.Digest{1, i}) {
			gone++
		}
		if lost(d, wire.Digest{2, i}) {
			t.Errorf("own delta %d is damaged", i)
		}
	}
	if gone == 0 || gone != damaged || gone > 60 {
		t.Errorf("%d files lost, %d damaged", gone, damaged)
	}
}

// The newest own deltas may be damaged, each once, and are on the list of own ones still.
func TestDamageOwn(t *testing.T) {
	d := New(1)
	for i := range byte(3) {
		_ = d.PutOwn(core.StoreOwn{ID: wire.Digest{i}, Header: *headerOf(uint32(i)), Payload: []byte{i}, Seq: uint64(i)})
	}
	if named := d.DamageOwn(2); !slices.Equal(named, []wire.Digest{{1}, {2}}) || lost(d, wire.Digest{0}) || !lost(d, wire.Digest{1}) || !lost(d, wire.Digest{2}) {
		t.Errorf("damaged %v", named)
	}
	if named := d.DamageOwn(9); !slices.Equal(named, []wire.Digest{{0}}) || len(ownOf(d)) != 3 {
		t.Errorf("damaged %v, %d are listed", named, len(ownOf(d)))
	}
}

// A full disk takes nothing, and what is there stays.
func TestFull(t *testing.T) {
	d := New(1)
	_ = d.PutDelta(wire.Digest{1}, headerOf(1), []byte("a"))
	d.Full = true
	for what, err := range map[string]error{
		"a delta": d.PutDelta(wire.Digest{2}, headerOf(2), nil), "an own delta": d.PutOwn(core.StoreOwn{}),
		"a base": d.PutBase(0, &outer.Tip{Round: 4}), "tips": d.Install(nil), "a record": d.PutRounds(0, []outer.Link{{Round: 5}}),
	} {
		if !errors.Is(err, ErrFull) {
			t.Errorf("a full disk took %s: %v", what, err)
		}
	}
	d.Commit()
	d.Crash()
	if len(d.deltas) != 0 || len(d.rounds[0]) != 0 {
		t.Errorf("what was not committed stayed: %v %v", d.deltas, d.rounds[0])
	}
}

// Records after the last round go, also where rounds before them have none.
func TestTruncate(t *testing.T) {
	d := New(1)
	_ = d.PutRounds(0, []outer.Link{{Round: 1}, {Round: 2}, {Round: 5}})
	d.Commit()
	_ = d.TruncateRounds(0, 2)
	if last, _ := d.LastRound(0); last != 2 {
		t.Errorf("the last record is of round %d", last)
	}
	d.Crash()
	if last, _ := d.LastRound(0); last != 5 {
		t.Errorf("not committed, and the last record is of round %d", last)
	}
}
