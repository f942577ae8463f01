package authors

import (
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
)

// However often rounds are folded again, the tokens are from the last folds.
func TestTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const window = 8
		p := outertest.Plain(1, 1<<40, 0)
		p.WindowUnion = window
		a := New(p)
		now := map[uint32][]outer.Delta{} // the model: what was put last
		closed := uint32(0)
		for range rapid.IntRange(1, 60).Draw(t, "folds") {
			start := closed - min(closed, uint32(rapid.IntRange(0, window).Draw(t, "back")))
			for round := start + 1; round <= closed+1; round++ {
				var set []outer.Delta
				for author := range rapid.IntRange(0, 3).Draw(t, "deltas") {
					set = append(set, outer.Delta{Author: outer.Author{byte(author)}, Round: round, Base: round - 1, Steps: 1, Tokens: rapid.Uint64Range(1, 1000).Draw(t, "tokens"), Guest: rapid.Bool().Draw(t, "guest")})
				}
				a.put(round, set)
				now[round] = set
			}
			closed++
		}
		count, made, deltas := map[wire.PeerID]uint64{}, map[wire.PeerID]uint64{}, 0
		for _, set := range now {
			for _, d := range set {
				made[wire.PeerID(d.Author)] += d.Tokens
				if !d.Guest {
					count[wire.PeerID(d.Author)] += d.Tokens
				}
				deltas++
			}
		}
		for author, tokens := range made {
			if a.total[author] != count[author] || a.Made(author) != tokens {
				t.Fatalf("author %v made %d tokens, and %d count, want %d and %d", author, a.Made(author), a.total[author], tokens, count[author])
			}
		}
		if a.deltas != uint64(deltas) {
			t.Fatalf("%d deltas, want %d", a.deltas, deltas)
		}
		if len(a.rounds) > 2*window+2 {
			t.Fatalf("%d rounds are kept apart, the window is %d", len(a.rounds), window)
		}
	})
}

func TestFoldedOf(t *testing.T) {
	set := []outer.Delta{{ID: outer.ID{1}}, {ID: outer.ID{2}}, {ID: outer.ID{3}}, {ID: outer.ID{4}, Revokes: [32]byte{1}, Tokens: 1 << 63}}
	got := foldedOf(set, []outer.ID{{3}, {1}, {4}})
	if len(got) != 2 || got[0].ID != set[0].ID || got[1].ID != set[2].ID || set[1].ID != (outer.ID{2}) {
		t.Errorf("got %v of %v", got, set)
	}
}
