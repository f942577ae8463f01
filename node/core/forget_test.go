package core

import (
	"encoding/binary"
	"testing"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// What a full round has no room for leaves the disk at once: of what many keys sign no more is kept
// than a round takes and what overflows it. A restart drops as much of a disk that has more.
func TestFullRoundForgets(t *testing.T) {
	const most, keys, now = 4, 400, Time(1_000_000)
	begin := func() *Machine {
		m := lone(4, 4, 8)
		m.cfg.MostDeltas = most
		return New(m.cfg, []*outer.Tip{outer.Genesis(m.cfg.Plan[0], make([]float32, 4), m.cfg.Params)})
	}
	m, kept := begin(), map[wire.Digest]wire.SignedHeader{}
	forgets := func(effects []Effect) (all int) {
		for _, e := range find[ForgetDelta](effects) {
			if _, known := kept[e.ID]; known {
				all++
			}
			delete(kept, e.ID)
		}
		return all
	}
	all := map[wire.Digest]wire.SignedHeader{}
	for i := range keys {
		var author wire.PeerID
		binary.BigEndian.PutUint32(author[:], uint32(i)+1)
		sh := wire.SignedHeader{Header: wire.Header{Author: author, Round: 1, Steps: 1, Tokens: 1, Codec: uint8(m.cfg.Params.Codec), Size: 17}}
		id := sh.Header.ID(m.cfg.Run)
		all[id] = sh
		if m.offer(now, id, &sh, false); !m.knows(id) {
			continue
		}
		kept[id] = sh
		m.StoredDelta(now, id, nil)
		forgets(m.Effects())
	}
	bound := func(what string) {
		t.Helper()
		if n := len(kept); n < most || n > most+256 {
			t.Errorf("%s: %d deltas are kept", what, n)
		}
		for id := range kept {
			if !m.knows(id) {
				t.Fatalf("%s: one is kept that nobody knows", what)
			}
		}
	}
	bound("at work")
	// A disk of a time when nothing was dropped.
	m, kept = begin(), all
	s := rounds.Restored{Tip: outer.Genesis(m.cfg.Plan[0], make([]float32, 4), m.cfg.Params), Bases: []uint32{0}}
	s.History = []outer.Link{LinkOf(s.Tip, nil)}
	headers := map[wire.Digest]wire.SignedHeader{}
	for id, h := range all {
		s.Held, headers[id] = append(s.Held, m.deltaOf(id, h.Header)), h
	}
	if _, err := m.Restore(now, 0, s, headers); err != nil {
		t.Fatal(err)
	}
	if n := forgets(m.Effects()); n == 0 {
		t.Error("a restart drops nothing")
	}
	bound("after a restart")
}
