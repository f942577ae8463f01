package outer_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
)

// longFragment has tensors that begin and end anywhere in the segments which a fold reads, and
// anywhere in the blocks which share a scale; one holds a segment whole.
func longFragment() outer.Fragment {
	sizes := []int{3, codec.SegmentLen - 7, 11, 17, 2*codec.SegmentLen + 301, 1, 40_003}
	specs := make([]tensor.Spec, len(sizes))
	for i, n := range sizes {
		specs[i] = tensor.Spec{Name: fmt.Sprintf("t%d", i), Shape: []int{n}}
	}
	specs[3].Name = "model.embed_tokens.weight"
	return outer.NewPlan(tensor.Layout(specs), 1)[0]
}

// longSet is deltas of one round, of unequal length and work. Where opposed, two
// of them send the opposite of one another.
func longSet(t *testing.T, p outer.Params, f outer.Fragment, round uint32, deltas int, opposed bool) []outer.Contribution {
	var set []outer.Contribution
	for i := range deltas {
		seed, sign := uint64(i), 1.0
		if opposed {
			seed, sign = uint64(i/2), 1-2*float64(i%2)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(round)))
		v := make([]float32, f.Len)
		for j := range v {
			v[j] = float32(sign * 0.01 * float64(1+seed) * rng.NormFloat64())
		}
		payload, err := codec.Encode(p.Codec, v)
		if err != nil {
			t.Fatal(err)
		}
		steps := uint32(p.H) + uint32(i%2)
		if opposed {
			steps = uint32(p.H)
		}
		d := outer.Delta{
			Author: outer.Author{byte(i)}, Round: round, Base: round - 1, Steps: steps, Tokens: uint64(steps) * 512,
			Codec: p.Codec, Size: len(payload),
		}
		d.ID = blake3.Sum256(binary.LittleEndian.AppendUint32([]byte{byte(i)}, round))
		set = append(set, outer.Contribution{Delta: d, Payload: payload})
	}
	return set
}

// A fold reads its deltas in segments and, beyond a budget of memory, decodes them again. The
// bits are the bits of the text all the same, in every codec.
func TestLongFold(t *testing.T) {
	f := longFragment()
	global := make([]float32, f.Len)
	for i := range global {
		global[i] = float32(i%19) - 9
	}
	for _, c := range []struct {
		codec   codec.Kind
		mu      float64
		deltas  int
		opposed bool
	}{
		{codec.Int4, 0, 5, false},
		{codec.Int4, 0.9, 2, true},
		{codec.F32, 0, 5, false}, // two are kept without entropy coding, three are not
		{codec.F32, 0.9, 3, false},
		{codec.Int4, 0, 6, true},
	} {
		t.Run(fmt.Sprintf("%v/%v/%d", c.codec, c.mu, c.deltas), func(t *testing.T) {
			p := outer.Plain(1, 1<<40, 0)
			p.Codec, p.Mu, p.Eta = c.codec, c.mu, 0.7
			tip := outer.Genesis(f, slices.Clone(global), p)
			for round := uint32(1); round <= 2; round++ {
				set := longSet(t, p, f, round, c.deltas, c.opposed)
				want, _ := foldByText(t, p, f, tip, set)
				got, r, err := outer.Fold(p, f, tip, round, set)
				if err != nil || len(r.Refused) > 0 {
					t.Fatal(err, r.Refused)
				}
				if got.State != want.State {
					t.Fatalf("round %d: the tip differs from the tip of the text, first at value %d", round, firstUnequal(got.Global, want.Global))
				}
				tip = got
			}
		})
	}
}

func firstUnequal(a, b []float32) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// A payload that is damaged in a late segment is refused, and leaves no trace in what
// the others come to.
func TestLongFoldRefusesDamage(t *testing.T) {
	f := longFragment()
	p := outer.Plain(1, 1<<40, 0)
	set := longSet(t, p, f, 1, 3, false)
	start := outer.Genesis(f, make([]float32, f.Len), p)
	want, _, err := outer.Fold(p, f, start, 1, []outer.Contribution{set[0], set[2]})
	if err != nil {
		t.Fatal(err)
	}
	set[1].Payload[len(set[1].Payload)-1] ^= 0xff
	got, r, err := outer.Fold(p, f, start, 1, set)
	if err != nil || len(r.Refused) != 1 || r.Refused[0].ID != set[1].Delta.ID {
		t.Fatalf("%v, refused %v", err, r.Refused)
	}
	if got.State != want.State {
		t.Error("a damaged delta changes what the others come to")
	}
}

// exactSet is longSet of values that are the same on any machine.
func exactSet(t *testing.T, p outer.Params, f outer.Fragment, round uint32, deltas int) []outer.Contribution {
	set := longSet(t, p, f, round, deltas, round == 2)
	for i := range set {
		state, v := uint32(i)/2*2654435761+round, make([]float32, f.Len)
		for j := range v {
			state = state*1664525 + 1013904223
			v[j] = float32(int32(state>>8)-1<<23) / (1 << 23) * float32(1-2*(i&1)*int(round&1))
		}
		payload, err := codec.Encode(p.Codec, v)
		if err != nil {
			t.Fatal(err)
		}
		set[i].Payload, set[i].Delta.Size = payload, len(payload)
	}
	return set
}

// Pinned digests of folds over several parts and segments: how many cores fold, in which pieces, and what is kept in memory decides no bit.
// They are of the build that kept the sums of whole fragments.
func TestLongGoldenDigests(t *testing.T) {
	for _, threads := range []int{1, 2, 5} {
		t.Run(fmt.Sprint(threads), func(t *testing.T) {
			defer tensor.SetThreads(0)
			tensor.SetThreads(threads)
			checkLongGoldens(t)
		})
	}
}

func checkLongGoldens(t *testing.T) {
	f := longFragment()
	for _, g := range []struct {
		kind       codec.Kind
		deltas     int
		similarity bool
		want       string
	}{
		{codec.Int4, 5, true, "5daff9d0ac5ace52"},
		{codec.Int4, 17, true, "08b656e678818ccd"},
		{codec.F32, 3, false, "11fecb7a5ac23836"},
		{codec.Int4, 4, false, "23a9ced0505dbd59"},
		{codec.Sparse, 5, true, "d2361a16f36cd0a5"},
		{codec.F32, 4, false, "2673ee1a3a2807be"},
	} {
		p := outer.Plain(4, 1<<40, 0)
		p.Codec, p.Mu, p.Eta, p.OwnText = g.kind, 0.5, 0.9, !g.similarity
		tip := outer.Genesis(f, make([]float32, f.Len), p)
		for round := uint32(1); round <= 2; round++ {
			next, _, err := outer.Fold(p, f, tip, round, exactSet(t, p, f, round, g.deltas))
			if err != nil {
				t.Fatal(err)
			}
			tip = next
		}
		if got := fmt.Sprintf("%x", tip.State[:8]); got != g.want {
			t.Errorf("%v of %d: got %s, want %s", g.kind, g.deltas, got, g.want)
		}
	}
}
