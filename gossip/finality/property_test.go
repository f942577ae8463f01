package finality

import (
	"crypto/ed25519"
	"fmt"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// monitor holds one voter to clauses V-6 to V-6.4, by what it was told and what it signed, without a look at how it decides.
type monitor struct {
	told   map[wire.SignedVote]bool // and its own
	signed []wire.Vote              // in order
}

// prevoted reports whether three of four prevoted for a value in a view.
func (m *monitor) prevoted(height, view uint32, value wire.Digest) bool {
	by := map[wire.PeerID]bool{}
	for s := range m.told {
		if s.Phase == wire.Prevote && s.Height == height && s.View == view && s.Value == value {
			by[s.Author] = true
		}
	}
	return len(by) >= 3
}

// lock is the last precommit for a value before a vote.
func (m *monitor) lock(v wire.Vote) (l wire.Vote, any bool) {
	for _, s := range m.signed {
		if s.Phase == wire.Precommit && s.Round > 0 && s.Height == v.Height && s.View < v.View {
			l, any = s, true
		}
	}
	return l, any
}

// shown reports whether a proposal for a value came whose proof is not older than a lock, and the proof too.
func (m *monitor) shown(v wire.Vote, lock uint32) bool {
	for s := range m.told {
		if s.Phase == wire.Propose && s.Height == v.Height && s.View == v.View && s.Value == v.Value && s.Proof > lock &&
			m.prevoted(v.Height, s.Proof-1, v.Value) {
			return true
		}
	}
	return false
}

// check says which clause a new vote breaks.
func (m *monitor) check(v wire.Vote, own func(round uint32) wire.Digest) error {
	for _, s := range m.signed {
		if s.Phase == v.Phase && s.Height == v.Height && s.View == v.View && s != v {
			return fmt.Errorf("V-6: %+v and %+v", s, v)
		}
	}
	l, locked := m.lock(v)
	switch {
	case v.Round == 0:
	case own(v.Round) != v.Value && (!locked || l.Value != v.Value):
		return fmt.Errorf("V-6.2: %+v is not on its chain", v)
	case v.Phase == wire.Precommit && !m.prevoted(v.Height, v.View, v.Value):
		return fmt.Errorf("V-6.3: %+v", v)
	case v.Phase == wire.Prevote && locked && l.Value != v.Value && !m.shown(v, l.View):
		return fmt.Errorf("V-6.4: %+v after %+v", v, l)
	}
	return nil
}

// Whatever comes, in whatever order, and whenever it starts again, a voter keeps the clauses.
func TestKeepsTheRules(t *testing.T) {
	all := keys(4)
	rapid.Check(t, func(t *rapid.T) {
		chain := &ledger{closed: 3 * every, voters: idsOf(all)}
		first := sealedBy(all, 0, chain.value(every), 0, 1, 2)
		at := rapid.IntRange(0, 3).Draw(t, "voter")
		m := &monitor{told: map[wire.SignedVote]bool{}}
		var saved *State
		last := first
		now := int64(0)
		start := func() *Voter {
			v := New(Config{Run: testRun, Key: all[at], Every: every, StepMs: 10}, chain)
			v.Resume(&last, saved)
			return v
		}
		v := start()
		own := func(round uint32) wire.Digest { return chain.value(round).Digest(testRun) }
		collect := func() {
			for _, e := range v.Effects() {
				switch e := e.(type) {
				case Save:
					s, err := ParseState(e.State.Encode())
					if err != nil {
						t.Fatal(err)
					}
					saved = &s
				case Publish:
					if e.Vote.Author != v.self {
						continue
					}
					m.told[e.Vote] = true
					if err := m.check(e.Vote.Vote, own); err != nil {
						t.Fatal(err)
					}
					m.signed = append(m.signed, e.Vote.Vote)
				case Certified:
					if err := e.Certificate.Verify(testRun, &last); err != nil {
						t.Fatal(err)
					}
					last = e.Certificate
				}
			}
		}
		for range rapid.IntRange(1, 120).Draw(t, "inputs") {
			switch rapid.IntRange(0, 9).Draw(t, "kind") {
			case 0:
				now += rapid.Int64Range(0, 40).Draw(t, "ms")
				v.Tick(now)
			case 1:
				v = start()
				v.Tick(now)
			case 2, 3, 4: // all others agree
				s := drawVote(t, all, at, v, chain)
				for _, i := range others(at) {
					wave := s.Vote
					if wave.Phase != wire.Propose {
						wave.View = min(wave.View, v.View())
						s = wire.SignVote(all[i], testRun, wave)
					}
					m.told[s] = true
					v.Receive(now, s)
					collect()
				}
			default:
				s := drawVote(t, all, at, v, chain)
				m.told[s] = true
				v.Receive(now, s)
			}
			collect()
		}
	})
}

// drawVote is a vote of another, near the view that the voter is in. Proposals are the proposer's.
func drawVote(t *rapid.T, all []ed25519.PrivateKey, at int, v *Voter, chain *ledger) wire.SignedVote {
	phase := wire.Phase(rapid.IntRange(1, 3).Draw(t, "phase"))
	view := uint32(max(0, int(v.View())+rapid.IntRange(-2, 1).Draw(t, "view")))
	by := others(at)[rapid.IntRange(0, 2).Draw(t, "by")]
	value := Value{}
	if n := rapid.IntRange(0, 3).Draw(t, "value"); n > 1 || phase == wire.Propose {
		from := *chain
		if rapid.IntRange(0, 7).Draw(t, "fork") == 0 {
			from.fork, from.name = 2*every, 1
		}
		value = from.value(uint32(min(n, 3)) * every)
		if value.Round < 2*every {
			value = from.value(2 * every)
		}
	}
	proof := uint32(0)
	if phase == wire.Propose {
		proof = uint32(rapid.IntRange(0, int(view)).Draw(t, "proof"))
		if p, _ := v.Voters().Place(v.Voters().Proposer(testRun, v.Height(), view)); p != at {
			by = p
		}
	}
	return signed(all[by], phase, v.Height(), view, value, proof)
}

// BenchmarkHeight is one height of a hundred voters at one of them, signatures not verified.
func BenchmarkHeight(b *testing.B) {
	all := keys(100)
	chain := &ledger{closed: 3 * every, voters: idsOf(all)}
	places := make([]int, 67)
	for i := range places {
		places[i] = i
	}
	first := sealedBy(all, 0, chain.value(every), places...)
	value := chain.value(2 * every)
	var list []wire.SignedVote
	for _, phase := range []wire.Phase{wire.Prevote, wire.Precommit} {
		for _, k := range all {
			list = append(list, signed(k, phase, 1, 0, value, 0))
		}
	}
	for b.Loop() {
		v := New(Config{Run: testRun, Key: all[0], Every: every, StepMs: 10}, chain)
		v.Resume(&first, nil)
		proposer, _ := v.Voters().Place(v.Voters().Proposer(testRun, 1, 0))
		v.Receive(0, signed(all[proposer], wire.Propose, 1, 0, value, 0))
		for _, s := range list {
			v.Receive(0, s)
		}
		if v.Height() != 2 {
			b.Fatal("not certified")
		}
	}
	b.ReportMetric(float64(len(list[0].Encode())), "B/vote")
}

// BenchmarkVerify is a certificate of a hundred voters.
func BenchmarkVerify(b *testing.B) {
	all := keys(100)
	chain := &ledger{closed: 3 * every, voters: idsOf(all)}
	places := make([]int, 67)
	for i := range places {
		places[i] = i
	}
	c := sealedBy(all, 0, chain.value(every), places...)
	for b.Loop() {
		if err := c.Verify(testRun, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(c.Encode())), "B/certificate")
}
