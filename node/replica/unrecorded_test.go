package replica_test

import (
	"testing"

	"pgregory.net/rapid"

	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// recordsModel is what the ledger of a fragment should have.
type recordsModel struct {
	rounds  []uint64        // by round - 1, what the newest fold of it made
	wait    map[uint32]bool // for a disk that takes them
	givenUp map[uint32]bool
}

// fold makes rounds anew from one on. Only the newest of those that wait may be kept.
func (m *recordsModel) fold(start int, made []uint64, full bool, most int) {
	for r := start + 1; r <= len(m.rounds); r++ {
		delete(m.wait, uint32(r))
		delete(m.givenUp, uint32(r))
	}
	m.rounds = append(m.rounds[:start:start], made...)
	for r := start + 1; r <= len(m.rounds); r++ {
		m.wait[uint32(r)] = true
	}
	if !full {
		clear(m.wait)
	}
	for r := uint32(1); most > 0 && len(m.wait) > most; r++ {
		if m.wait[r] {
			delete(m.wait, r)
			m.givenUp[r] = true
		}
	}
}

// check fails unless the ledger has the rounds that were not given up.
func (m *recordsModel) check(t *rapid.T, g *rig) {
	for r := uint32(1); r <= uint32(len(m.rounds))+1; r++ {
		has := int(r) <= len(m.rounds) && !m.givenUp[r]
		if l, is := g.disk.Record(0, r); is != has || has && l.Tokens != m.rounds[r-1] {
			t.Fatalf("round %d of %v, given up %v: on disk %v, %d tokens", r, m.rounds, m.givenUp, is, l.Tokens)
		}
	}
}

// Whatever a disk takes and whatever it refuses, once it takes something again the
// ledger has what the newest folds made, or a gap where too many rounds waited.
func TestRoundsOfAFullDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newRig(t)
		most := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "rounds that may wait")
		g.policy = replica.Policy{BaseEvery: 1000, BaseAt: 999, TrustMemory: true, MaxUnrecorded: most}
		tokens := uint64(0)
		g.folds = func(prev *outer.Tip) *outer.Tip {
			tokens++
			return &outer.Tip{Round: prev.Round + 1, Tokens: tokens}
		}
		g.start()
		m := recordsModel{wait: map[uint32]bool{}, givenUp: map[uint32]bool{}}
		for range rapid.IntRange(1, 12).Draw(t, "folds") {
			start := rapid.IntRange(max(0, len(m.rounds)-4), len(m.rounds)).Draw(t, "start")
			w := rounds.WantFold{Job: job, Start: uint32(start)}
			var made []uint64
			for i := range rapid.IntRange(1, 4).Draw(t, "rounds") {
				w.Sets, w.Keep = append(w.Sets, nil), append(w.Keep, uint32(start+i+1))
				made = append(made, tokens+uint64(i)+1)
			}
			g.disk.Full = rapid.Bool().Draw(t, "full")
			m.fold(start, made, g.disk.Full, most)
			if g.do(w); !g.disk.Full {
				m.check(t, g)
			}
		}
	})
}

// The first rounds that are given up are told of, once.
func TestGivenUpIsToldOnce(t *testing.T) {
	g := newRig(t)
	g.policy.MaxUnrecorded = 2
	g.start().disk.Full = true
	g.closes(0, 5)
	if told := saw[replica.GivenUp](g); len(told) != 1 || told[0] != (replica.GivenUp{Round: 1}) {
		t.Errorf("told %+v", told)
	}
	g.disk.Full = false
	wantRounds(t, "once there is room", g.closes(0, 1).records(0), 4, 5, 6)
}
