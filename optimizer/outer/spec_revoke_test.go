package outer_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"

	"github.com/zeebo/blake3"
)

// revocation is one of round 1, in the run of the text's example.
func revocation(e example, id byte, name [32]byte) outer.Contribution {
	d := outer.Delta{ID: outer.ID{id}, Author: outer.Author{99}, Round: 1, Steps: 1, Size: 4, Revokes: name}
	return outer.Contribution{Delta: d, Payload: []byte("gone")}
}

// revoking is the text's example in a run that has revocations.
func revoking(t *testing.T, s *spectest.Spec) example {
	e := exampleOf(t, s)
	return e
}

func (e example) fold(t *testing.T, set ...outer.Contribution) (*outer.Tip, outer.Result) {
	t.Helper()
	tip, result, err := outer.Fold(e.p, e.f, e.tip(t, 0), 1, set)
	if err != nil {
		t.Fatal(err)
	}
	return tip, result
}

func specRevocationValid(t *testing.T, s *spectest.Spec) {
	p := outer.Plain(4, 1000, 0)
	good := outer.Delta{Author: outer.Author{1}, Fragment: 3, Round: 17, Base: 16, Steps: 1, Size: 1, Revokes: [32]byte{1}}
	for name, c := range map[string]struct {
		change func(d *outer.Delta)
		ok     bool
	}{
		"valid":        {func(*outer.Delta) {}, true},
		"long reason":  {func(d *outer.Delta) { d.Size = 256 }, true},
		"too long":     {func(d *outer.Delta) { d.Size = 257 }, false},
		"no reason":    {func(d *outer.Delta) { d.Size = 0 }, false},
		"older base":   {func(d *outer.Delta) { d.Base = 15 }, false},
		"keeps one":    {func(d *outer.Delta) { d.Steps = 2 }, true},
		"three steps":  {func(d *outer.Delta) { d.Steps = 3 }, false},
		"most kept":    {func(d *outer.Delta) { d.Tokens = 1024 }, true},
		"too many":     {func(d *outer.Delta) { d.Tokens = 1025 }, false},
		"whose invite": {func(d *outer.Delta) { d.Steps, d.Tokens = 2, 1<<64-1 }, true},
		"no fragment":  {func(d *outer.Delta) { d.Fragment = 4 }, false},
		"of other use": {func(d *outer.Delta) { d.Codec = 9 }, true},
	} {
		d := good
		c.change(&d)
		if err := p.Check(d); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	e := revoking(t, s)
	r := revocation(e, 1, [32]byte{7})
	if _, result := e.fold(t, r); len(result.Folded) != 1 {
		t.Errorf("refused: %v", result.Refused)
	}
	r.Delta.Steps = 3
	if _, result := e.fold(t, r); len(result.Refused) != 1 {
		t.Error("one of three steps is folded")
	}
}

func specRevocationFolded(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	plain, others := e.fold(t, e.set...)
	r := revocation(e, 1, [32]byte{7})
	tip, result := e.fold(t, append(slices.Clone(e.set), r)...)
	ids := append(slices.Clone(others.Folded), r.Delta.ID)
	slices.SortFunc(ids, outer.CompareIDs)
	if tip.Chain != outer.ChainDigest(outer.Digest{}, ids) || !slices.Equal(result.Weights, others.Weights) {
		t.Errorf("chain %x, weights %v", tip.Chain, result.Weights)
	}
	if !slices.Equal(tip.Global, plain.Global) || !slices.Equal(tip.Momentum, plain.Momentum) || !slices.Equal(tip.Ref, plain.Ref) || tip.Tokens != plain.Tokens {
		t.Error("it changes what the others come to")
	}
}

func specRevokedNames(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	name := e.set[0].Delta.Author
	one, _ := e.fold(t, append(slices.Clone(e.set), revocation(e, 1, name))...)
	want := []outer.Revoked{{Name: name, Round: 1}}
	if !slices.Equal(one.Revoked, want) {
		t.Fatalf("names %v", one.Revoked)
	}
	again := revocation(e, 2, name)
	again.Delta.Round, again.Delta.Base = 2, 1
	other := revocation(e, 3, [32]byte{3})
	other.Delta.Round, other.Delta.Base = 2, 1
	two, _, err := outer.Fold(e.p, e.f, one, 2, []outer.Contribution{again, other})
	if want := []outer.Revoked{{Name: [32]byte{3}, Round: 2}, want[0]}; err != nil || !slices.Equal(two.Revoked, sortedNames(want)) {
		t.Errorf("names %v, %v", two.Revoked, err)
	}
}

// An author stays where the same round or an earlier one keeps it, and the invite is not revoked before all that it keeps are known:
// those that other invites keep are none of them, and one that was signed twice is one.
func specKept(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	invite := [32]byte{50}
	set := slices.DeleteFunc(slices.Clone(e.set), func(c outer.Contribution) bool { return c.Delta.Round != 1 })
	for i := range set {
		set[i].Delta.Invite = invite
	}
	end := revocation(e, 1, invite)
	end.Delta.Tokens = 1
	friend := set[0].Delta.Author
	keep := revocation(e, 2, blake3.Sum256(slices.Concat([]byte("atoll kept 1"), invite[:], friend[:])))
	keep.Delta.Steps, keep.Delta.Tokens = 2, binary.BigEndian.Uint64(invite[:])
	other := revocation(e, 3, [32]byte{51})
	other.Delta.Steps, other.Delta.Tokens = 2, keep.Delta.Tokens+1
	for _, of := range [][]outer.Contribution{{end}, {end, other}} {
		if tip, result := e.fold(t, append(slices.Clone(set), of...)...); len(result.Refused) != 0 || len(tip.Revoked) != len(of)-1 {
			t.Errorf("revoked before the one that it keeps is known: %v, names %v", result.Refused, tip.Revoked)
		}
	}
	more, again := end, keep
	more.Delta.Tokens, again.Delta.ID = 2, outer.ID{4}
	if _, result := e.fold(t, append(slices.Clone(set), more, keep, again)...); len(result.Refused) != 0 {
		t.Errorf("one that is kept twice counts as two: %v", result.Refused)
	}
	tip, result := e.fold(t, append(slices.Clone(set), end, keep)...)
	if len(result.Refused) != len(set)-1 || !slices.Contains(result.Folded, set[0].Delta.ID) || len(tip.Revoked) != 2 {
		t.Errorf("refused %v, names %v", result.Refused, tip.Revoked)
	}
	table := []outer.Revoked{{Name: invite, Round: 3}, {Name: keep.Delta.Revokes, Round: 4}}
	slices.SortFunc(table, func(a, b outer.Revoked) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	if at := outer.RevokedAt(table, outer.Delta{Author: friend, Invite: invite}); at != 3 {
		t.Errorf("kept a round too late it is revoked at %d", at)
	}
}

func sortedNames(names []outer.Revoked) []outer.Revoked {
	slices.SortFunc(names, func(a, b outer.Revoked) int { return bytes.Compare(a.Name[:], b.Name[:]) })
	return names
}

func specMostRevoked(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	var set []outer.Contribution
	for i := range 1025 {
		r := revocation(e, 0, [32]byte{1})
		binary.BigEndian.PutUint16(r.Delta.ID[:], uint16(2000-i)) // the last one comes first
		binary.BigEndian.PutUint16(r.Delta.Revokes[:], uint16(i+1))
		set = append(set, r)
	}
	tip, _ := e.fold(t, set...)
	if len(tip.Revoked) != 1024 || tip.Revoked[0].Name != set[1].Delta.Revokes {
		t.Errorf("%d names, the first is %x", len(tip.Revoked), tip.Revoked[0].Name[:4])
	}
}

func specTipOfRevoked(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	tip, _ := e.fold(t, revocation(e, 1, [32]byte{9}), revocation(e, 2, [32]byte{7}))
	plain, _ := e.fold(t)
	plain.Chain = tip.Chain
	want := encodeByText(plain)
	for _, first := range []byte{7, 9} {
		want = binary.LittleEndian.AppendUint32(append(want, append([]byte{first}, make([]byte, 31)...)...), 1)
	}
	if got := tip.Encode(); !bytes.Equal(got, want) {
		t.Errorf("encoded %x, by the text %x", got, want)
	}
	if again, err := outer.DecodeTip(want, e.f, e.p); err != nil || again.State != tip.State || !slices.Equal(again.Revoked, tip.Revoked) {
		t.Errorf("decoded %+v, %v", again, err)
	}
}

func specRevokedRefused(t *testing.T, s *spectest.Spec) {
	e := revoking(t, s)
	tip, _ := e.fold(t, revocation(e, 1, [32]byte{9}), revocation(e, 2, [32]byte{7}))
	b := tip.Encode()
	if _, err := outer.DecodeTip(b, e.f, e.p); err != nil {
		t.Fatal(err)
	}
	at := len(b) - 72
	many := bytes.Clone(b[:at])
	for i := range 1025 {
		many = append(binary.BigEndian.AppendUint32(many, uint32(i)), make([]byte, 28)...)
		many = binary.LittleEndian.AppendUint32(many, 1)
	}
	for name, b := range map[string][]byte{
		"the other order": slices.Concat(b[:at], b[at+36:], b[at:at+36]),
		"a name twice":    slices.Concat(b[:at+36], b[at:at+36]),
		"round 0":         slices.Concat(b[:len(b)-4], []byte{0, 0, 0, 0}),
		"a later round":   slices.Concat(b[:len(b)-4], []byte{2, 0, 0, 0}),
		"half a name":     b[:len(b)-18],
		"too many":        many,
	} {
		if _, err := outer.DecodeTip(b, e.f, e.p); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := outer.DecodeTip(many[:len(many)-36], e.f, e.p); err != nil {
		t.Errorf("1024 names: %v", err)
	}
}
