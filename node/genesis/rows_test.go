package genesis

import (
	"math"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
)

// billion has the shapes of Llama 3.2 1B.
var billion = llama.Config{Vocab: 128_256, Hidden: 2048, Layers: 16, Heads: 32, KVHeads: 8, Intermediate: 8192, Context: 1024, RopeTheta: 500_000, NormEps: 1e-5, Tied: true}

// ofSizes is a new run of a model of these sizes, by file as users give it, with the vocabulary that it has.
func ofSizes(t *testing.T, c llama.Config, k codec.Kind) Genesis {
	t.Helper()
	g, _, err := Spec{Model: c, Tokens: 1_000_000, Codec: k, Seed: 1}.Make()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// A model of a billion values and a large vocabulary has even fragments that travel, with momentum.
func TestABillionParameters(t *testing.T) {
	g := ofSizes(t, billion, 0)
	if n := g.Params(); n < 1_200_000_000 || n > 1_300_000_000 {
		t.Fatalf("%d parameters", n)
	}
	if err := g.Validate(); err != nil || !g.cutsRows(g.Views()) || g.OuterParams().Mu == 0 || g.Outer.Fragments != usualFragments {
		t.Fatalf("momentum %v, %d fragments: %v", g.OuterParams().Mu, g.Outer.Fragments, err)
	}
	share := g.Params() / usualFragments
	for p, f := range g.Plan() {
		if math.Abs(float64(f.Len-share)) > 0.2*float64(share) {
			t.Errorf("fragment %d has %d values, evenly %d", p, f.Len, share)
		}
	}
	again, err := Decode(g.Encode())
	if err != nil || again.RunID() != g.RunID() {
		t.Errorf("read back: %+v, %v", again, err)
	}
}

// The manifest of a snapshot of a billion values is within what such a node reads. One of a small run reads a twentieth of it.
func TestManifestsFollowTheRun(t *testing.T) {
	g := ofSizes(t, billion, 0)
	m := wire.Manifest{}
	for _, f := range g.Plan() {
		size := outer.TipSize(f, g.OuterParams())
		m.Fragments = append(m.Fragments, wire.FragmentManifest{Round: math.MaxUint32, Closed: math.MaxUint32, Size: uint64(size), Chunks: make([]wire.Digest, (size+wire.ChunkSize-1)/wire.ChunkSize)})
	}
	b := wire.EncodeManifest(make([]byte, 64), wire.RunID{}, m)
	most := wire.ManifestSize(len(m.Fragments), g.LargestTip())
	if len(b) > most || most > 2*len(b) || len(b) < 1<<20 {
		t.Errorf("%d bytes, and %d are read", len(b), most)
	}
	small := fixedGenesis()
	if n := wire.ManifestSize(small.Outer.Fragments, small.LargestTip()); n > most/20 {
		t.Errorf("a node of a small run reads %d bytes", n)
	}
}

// Only large models whose tensors are uneven are cut.
func TestRowsAreCutWhereTensorsAreUneven(t *testing.T) {
	words := llama.Tiny
	words.Vocab = 8192
	for _, c := range []struct {
		model llama.Config
		cut   bool
	}{{llama.Tiny, false}, {llama.Base, false}, {words, false}, {billion, true}} {
		if g := ofSizes(t, c.model, 0); g.cutsRows(g.Views()) != c.cut {
			t.Errorf("%d parameters: cut %v", g.Params(), !c.cut)
		}
	}
	if thin := ofSizes(t, billion, codec.Sparse); !thin.cutsRows(thin.Views()) { // the embedding alone would travel
		t.Error("a fragment has a fifth of the model")
	}
}

// specRows: pieces are those that the text says of a layout with the same tensors.
func specRows(t *testing.T, _ *spectest.Spec) {
	g := ofSizes(t, billion, 0)
	same := g
	same.Layout = nil
	for _, v := range g.Views() {
		same.Layout = append(same.Layout, Tensor{Name: v.Name, Shape: v.Shape})
	}
	for p, f := range g.Plan() {
		for i, piece := range f.Tensors {
			if want := same.Plan()[p].Tensors; i >= len(want) || piece != want[i] {
				t.Fatalf("fragment %d has %+v, as a layout %+v", p, f.Tensors, want)
			}
		}
	}
	few := ofSizes(t, llama.Base, 0)
	if few.cutsRows(few.Views()) {
		t.Error("even fragments are cut")
	}
	if few.Outer.Fragments = len(llama.Base.Specs()) + 1; !few.cutsRows(few.Views()) {
		t.Error("more fragments than tensors are whole tensors")
	}
}
