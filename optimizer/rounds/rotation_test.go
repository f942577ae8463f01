package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"pgregory.net/rapid"
)

// With more live learners than C exactly C of them are sampled for each round, each
// every N/C rounds on average, and none has to wait for much longer, also where the
// learners change meanwhile.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, c := rapid.IntRange(5, 80).Draw(t, "live"), rapid.IntRange(2, 5).Draw(t, "C")
		churn := rapid.SampledFrom([]uint32{0, 7, 1}).Draw(t, "rounds to a change of the peer list")
		f := &fragment{index: rapid.IntRange(0, 40).Draw(t, "fragment")}
		m := &Machine{p: outer.Params{LearnersPerRound: min(c, n-1), H: 8}, self: outer.Author{1}}
		var live []outer.Author
		for i := range n {
			live = append(live, outer.Author{byte(i + 1)})
		}
		m.SetLive(live)
		// Gaps between visits of the golden ratio to an arc are at most 2.62 times their
		// mean, and change by Fibonacci numbers; one more comer shifts the rotation by less than one.
		longest := uint32(4*n/m.p.LearnersPerRound + 2)
		last := map[outer.Author]uint32{}
		for round := uint32(1); round <= 400; round++ {
			if churn > 0 && round%churn == 0 { // one comes or goes
				m.SetLive(live[:n-int(round/churn)%2])
			}
			sampled := m.sampled(f, round)
			if len(sampled) != m.p.LearnersPerRound || !slices.IsSortedFunc(sampled, outer.CompareAuthors) {
				t.Fatalf("round %d samples %v", round, sampled)
			}
			for _, a := range sampled {
				if !m.mayPublish(f, a, round) {
					t.Fatalf("author %d is sampled for round %d and may not publish", a[0], round)
				}
				last[a] = round
			}
			for _, a := range m.peerList.live[:min(n-1, len(m.peerList.live))] {
				if round-last[a] > longest {
					t.Fatalf("author %d was not sampled for %d rounds, of %d learners %d are", a[0], round-last[a], n, m.p.LearnersPerRound)
				}
			}
		}
	})
}

// Who is sampled follows from who trains, whichever node draws: also one that has
// stopped itself.
func TestTurnsOfThoseThatTrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, c := rapid.IntRange(6, 40).Draw(t, "live"), rapid.IntRange(1, 5).Draw(t, "C")
		var live, idle []outer.Author
		for i := range n {
			live = append(live, outer.Author{byte(i + 1)})
			if rapid.Bool().Draw(t, "stopped") {
				idle = append(idle, live[i])
			}
		}
		trains := slices.DeleteFunc(slices.Clone(live), func(a outer.Author) bool { return slices.Contains(idle, a) })
		f := &fragment{}
		for round := uint32(1); round <= 20; round++ {
			var first []outer.Author
			for i, self := range live {
				m := &Machine{p: outer.Params{LearnersPerRound: c, H: 8}, self: self}
				m.SetLive(live)
				m.SetIdle(idle)
				f.sample = sample{}
				got := slices.Clone(m.sampled(f, round))
				if i == 0 {
					first = got
				}
				if !slices.Equal(got, first) {
					t.Fatalf("round %d: author %d samples %v, author %d %v", round, self[0], got, live[0][0], first)
				}
			}
			if len(first) != min(c, len(trains)) || slices.ContainsFunc(first, func(a outer.Author) bool { return !slices.Contains(trains, a) }) {
				t.Fatalf("round %d samples %v, and %v train", round, first, trains)
			}
		}
	})
}

// A learner of a run that was made for so many is sampled before its delta is full, as
// rounds of H steps follow each other.
func TestTurnsComeBeforeDeltasAreFull(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4096).Draw(t, "live")
		p := outer.Spec{
			Fragments: 1, LearnersPerRound: rapid.IntRange(1, 64).Draw(t, "C"), H: rapid.SampledFrom([]int{1, 4, 24, 100}).Draw(t, "H"), Learners: n, StepTokens: 1, Budget: 1,
		}.Params()
		m := New(Config{Params: p, Self: outer.Author{}, Learner: true}, []*outer.Tip{{}})
		live := make([]outer.Author, n)
		for i := range live {
			live[i] = outer.Author{byte(i >> 8), byte(i)}
		}
		m.SetLive(live)
		self, last := live[rapid.IntRange(0, n-1).Draw(t, "author")], uint32(0)
		first := rapid.Uint32Range(0, 1<<20).Draw(t, "round")
		for round := uint32(1); round <= 2*uint32(4*n/p.LearnersPerRound+2); round++ {
			if steps := (round - last) * uint32(p.H); steps > p.MaxSteps {
				t.Fatalf("a delta of author %d would have %d steps, and %d have room", self[:2], steps, p.MaxSteps)
			}
			if m.mayPublish(m.frags[0], self, first+round) {
				last = round
			}
		}
	})
}
