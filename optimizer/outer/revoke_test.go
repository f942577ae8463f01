package outer

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawRevocations draws revocations of a round, of authors of drawSet and of invites.
func drawRevocations(t *rapid.T, round uint32) (revocations []Contribution) {
	for i := range rapid.IntRange(0, 3).Draw(t, "revocations") {
		name := [32]byte{rapid.ByteRange(0, 6).Draw(t, "name")}
		if rapid.Bool().Draw(t, "an invite") {
			name[1] = 1
		}
		name[2] = 1 // no name is zero
		d := Delta{ID: ID{200, byte(i), byte(round)}, Author: Author{100}, Round: round, Base: round - 1, Steps: 1, Size: 1, Revokes: name}
		revocations = append(revocations, Contribution{Delta: d, Payload: []byte("x")})
	}
	return revocations
}

// named gives the deltas of a set authors and invites that drawRevocations names.
func named(set []Contribution) []Contribution {
	for i := range set {
		d := &set[i].Delta
		d.Author[2] = 1
		d.Invite = [32]byte{byte(i % 3), 1, 1}
	}
	return set
}

// A fold with revocations comes to what it comes to without the deltas that they keep out, on the chain
// that NextLink computes from headers alone, whatever the order of the set.
func TestFoldKeepsOutRevoked(t *testing.T) {
	f := toyFragment()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt)
		p.Budget = 1 << 40
		tip := Genesis(f, vector(1, f.Len), p)
		plain, link := tip, Link{}
		out := map[[32]byte]bool{}
		for round := uint32(1); round <= 3; round++ {
			revocations, set := drawRevocations(rt, round), named(drawSet(rt, t, p, f, round))
			for _, w := range revocations {
				out[w.Delta.Revokes] = true
			}
			kept := slices.DeleteFunc(slices.Clone(set), func(c Contribution) bool { return out[c.Delta.Author] || out[c.Delta.Invite] })
			all := rapid.Permutation(slices.Concat(revocations, set)).Draw(rt, "order")
			deltas := make([]Delta, len(all))
			for i, c := range all {
				deltas[i] = c.Delta
			}
			link = NextLink(p, link, deltas)
			next, result, err := Fold(p, f, tip, round, all)
			if err != nil {
				rt.Fatal(err)
			}
			if plain, _, err = Fold(p, f, plain, round, kept); err != nil {
				rt.Fatal(err)
			}
			if !slices.Equal(next.Global, plain.Global) || !slices.Equal(next.Momentum, plain.Momentum) || !slices.Equal(next.Ref, plain.Ref) || next.Tokens != plain.Tokens {
				rt.Fatalf("round %d differs from a fold without who is revoked", round)
			}
			if link.Chain != next.Chain || link.Tokens != next.Tokens || !slices.Equal(link.Revoked, next.Revoked) || len(next.Revoked) != len(out) {
				rt.Fatalf("the link says %+v, the tip has chain %x, %d tokens, names %v", link, next.Chain, next.Tokens, next.Revoked)
			}
			if refused := len(set) - len(kept); len(result.Refused) != refused || len(result.Folded) != len(kept)+len(revocations) {
				rt.Fatalf("%d refused of %d, %d folded", len(result.Refused), refused, len(result.Folded))
			}
			for _, r := range result.Refused {
				if !errors.Is(r.Err, ErrRevoked) {
					rt.Fatal(r.Err)
				}
			}
			again, err := DecodeTip(next.Encode(), f, p)
			if err != nil || again.State != next.State || !again.Sound() || !slices.Equal(again.Revoked, next.Revoked) {
				rt.Fatalf("encoded and decoded: %v", err)
			}
			if up := RevokedUpTo(next.Revoked, round-1); !slices.Equal(up, tip.Revoked) {
				rt.Fatalf("up to round %d the names are %v, not %v", round-1, up, tip.Revoked)
			}
			tip = next
		}
	})
}
