package core

import (
	"testing"

	"atoll/gossip/finality"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
)

// finalDisk has records of one fragment, and perhaps votes.
type finalDisk struct {
	ledger
	state   []byte
	finals  [][]byte
	unknown map[uint32]bool // rounds whose deltas' headers are not here
}

func (d finalDisk) Votes() ([]byte, error) { return d.state, nil }

func (d finalDisk) Finals(from uint32, most int) ([][]byte, error) {
	list := d.finals[min(int(from), len(d.finals)):]
	return list[:min(most, len(list))], nil
}

func (d finalDisk) HeaderAt(fragment int, round uint32, id wire.Digest) (wire.Header, bool, error) {
	h, _, err := d.ledger.HeaderAt(fragment, round, id)
	return h, !d.unknown[h.Round], err
}

const finalUnion = 16 // a value every 4 rounds

// loaded reads a disk whose machine begins to call rounds final after first, and knows no deltas up to base.
func (d finalDisk) loaded(t *testing.T, first, base uint32) *Machine {
	t.Helper()
	p := outertest.Plain(1, 1<<40, 0)
	p.WindowUnion = finalUnion
	saved := []Saved{{Restored: rounds.Restored{Bases: []uint32{base}, History: chainOf(1, first, base, func(uint32) bool { return true })}}}
	k, err := LoadFinality(d, wire.RunID{1}, p, saved, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{final: newFinal(Config{Params: p, Finality: &Finality{StepMs: 1, Kept: k}})}
	for r := first + 1; r <= 20; r++ { // as the rounds do
		e := rounds.Final{Link: d.ledger[r]}
		if r > base {
			e.Deltas = []outer.Delta{{Author: outer.Author(leaver)}}
		}
		m.finalRound(e)
	}
	if len(m.out) > 0 {
		t.Errorf("first %d, base %d: %+v", first, base, m.out)
	}
	return m
}

func recordsTo(last uint32) ledger {
	l := ledger{}
	for _, link := range chainOf(1, 1, last, func(uint32) bool { return true }) {
		l[link.Round] = link
	}
	return l
}

// Wherever the machine begins after a restart, the values are those of a node that never ended.
func TestHistoryAfterARestart(t *testing.T) {
	want, known := finalDisk{ledger: recordsTo(20)}.loaded(t, 0, 0).final.history.At(20)
	if !known || len(want.Voters) != 1 || want.Voters[0] != leaver {
		t.Fatalf("%+v, %v", want, known)
	}
	for first := range uint32(16) {
		for base := first; base <= 20; base++ {
			d := finalDisk{ledger: recordsTo(20)}
			for _, at := range []uint32{4, 20} {
				if v, known := d.loaded(t, first, base).final.history.At(at); !known || at == 20 && v.Digest(wire.RunID{}) != want.Digest(wire.RunID{}) {
					t.Errorf("first %d, base %d: %+v of round %d, %v", first, base, v, at, known)
				}
			}
		}
	}
}

// What is missing before a value's rounds does not matter; what is missing among them leaves it unknown.
func TestHistoryWithGaps(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d finalDisk)
		known  map[uint32]bool
	}{
		"a record":        {func(d finalDisk) { delete(d.ledger, 6) }, map[uint32]bool{4: false, 8: false, 12: true}},
		"a header":        {func(d finalDisk) { d.unknown[6] = true }, map[uint32]bool{4: false, 8: false, 12: true}},
		"the last header": {func(d finalDisk) { d.unknown[8] = true }, map[uint32]bool{8: false, 12: true}},
		"all records": {func(d finalDisk) {
			for r := range uint32(11) {
				delete(d.ledger, r)
			}
		}, map[uint32]bool{8: false, 12: false, 16: true}},
		"nothing": {func(finalDisk) {}, map[uint32]bool{4: true, 8: true, 12: true}},
	} {
		d := finalDisk{ledger: recordsTo(20), unknown: map[uint32]bool{}}
		c.change(d)
		m := d.loaded(t, 10, 12)
		for at, want := range c.known {
			if _, known := m.final.history.At(at); known != want {
				t.Errorf("%s is missing: the value of round %d is known: %v", name, at, known)
			}
		}
	}
}

// A restart whose disk lacks the header of a round before its tips knows its values once the headers have come; so does a node
// that took tips whole.
func TestHistoryRecalled(t *testing.T) {
	const first, tip = 2, 12
	want, _ := finalDisk{ledger: recordsTo(20)}.loaded(t, 0, 0).final.history.At(8)
	restarted := finalDisk{ledger: recordsTo(20), unknown: map[uint32]bool{6: true}}.loaded(t, first, tip)
	links := chainOf(1, first, tip, func(uint32) bool { return true })
	took := finalDisk{ledger: recordsTo(1)}.loaded(t, 0, 0)
	took.replaced([]*outer.Tip{{Round: tip}}, [][]outer.Link{links})
	for name, m := range map[string]*Machine{"a restart": restarted, "tips": took} {
		m.headers = map[wire.Digest]*wire.SignedHeader{}
		for r := uint32(tip); r > first; r-- {
			if _, known := m.final.history.At(8); known != (r < 5) {
				t.Errorf("%s: without round %d the value of round 8 is known: %v", name, r, known)
			}
			m.headers[ownAt(r)] = &wire.SignedHeader{Header: wire.Header{Author: leaver, Round: r}}
			m.recall(0)
		}
		if got, known := m.final.history.At(8); !known || got.Digest(wire.RunID{1}) != want.Digest(wire.RunID{1}) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, known, want)
		}
		if len(m.final.before[0]) > 0 || m.final.history.First(0) != first+1 {
			t.Errorf("%s: %d rounds wait, %d is the first that is known", name, len(m.final.before[0]), m.final.history.First(0))
		}
	}
}

// A node that lacks the certificate of an author does not count the author as one whom nobody invited.
func TestHistoryAwaitsMembers(t *testing.T) {
	m := finalDisk{ledger: recordsTo(1)}.loaded(t, 0, 0)
	m.cfg.Gossip.Members = member.NewTable(wire.RunID{1}, []wire.PeerID{{9}})
	h := wire.Header{Author: leaver, Round: 12, Certificate: wire.Digest{5}}
	m.headers = map[wire.Digest]*wire.SignedHeader{ownAt(12): {Header: h}}
	m.replaced([]*outer.Tip{{Round: 12}}, [][]outer.Link{chainOf(1, 2, 12, func(uint32) bool { return true })})
	if first := m.final.history.First(0); first != 13 {
		t.Errorf("rounds from %d on are known", first)
	}
}

// A state that cannot be read is one that is forgotten, and a certificate that cannot ends those that are known.
func TestDamagedVotes(t *testing.T) {
	p := outertest.Plain(1, 1<<40, 0)
	value := finality.Value{Round: 4, Points: []finality.Point{{Round: 4}}, Voters: []wire.PeerID{leaver}}
	one := func(height uint32) []byte {
		value.Round = 4 * (height + 1)
		return finality.Certificate{Height: height, Value: value, Seals: []finality.Seal{{}}}.Encode()
	}
	d := finalDisk{ledger: recordsTo(20), state: finality.State{Height: 3}.Encode(), finals: [][]byte{one(0), one(1), one(3)}}
	k, err := LoadFinality(d, wire.RunID{1}, p, nil, nil)
	if err != nil || len(k.Shorts) != 2 || k.Last.Height != 1 || k.State.Height != 3 || k.Damaged {
		t.Errorf("%+v, %v", k, err)
	}
	d.state = d.state[1:]
	k, err = LoadFinality(d, wire.RunID{1}, p, nil, nil)
	if err != nil || k.State != nil || !k.Damaged {
		t.Errorf("a damaged state: %+v, %v", k, err)
	}
	if f := newFinal(Config{Params: p, Finality: &Finality{Kept: k}}); !f.abstain {
		t.Error("a node that forgot what it signed votes on")
	}
}

// Deltas of guests elect nobody (V-8), and those of others do.
func TestGuestsAreNoVoters(t *testing.T) {
	for _, guest := range []bool{false, true} {
		if got := appendAuthor(nil, outer.Delta{Author: outer.Author(leaver), Guest: guest}); (len(got) == 0) != guest {
			t.Errorf("of a guest %v: %+v", guest, got)
		}
	}
}

// An owner's word elects nobody.
func TestOwnersAreNoVoters(t *testing.T) {
	if got := appendAuthor(nil, outer.Delta{Author: outer.Author(leaver), Revokes: [32]byte{1}}); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}
