package hardware

import (
	"strings"
	"testing"

	"atoll/node/genesis"
	"atoll/tensor"
	"atoll/tensor/codec"
)

func TestModelFitsMemory(t *testing.T) {
	g, err := genesis.Default("tiny", 3_000_000, 42, 1_700_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	learner, observer := Role{}, Role{Observe: true}
	l, o := learner.Need(g), observer.Need(g)
	if l <= o+16*uint64(g.Model.Params()) || o <= processBytes {
		t.Fatalf("a learner needs %d bytes, an observer %d", l, o)
	}
	for _, c := range []struct {
		role Role
		have uint64
		want string
	}{
		{learner, 0, ""}, // the system does not say
		{learner, l, ""},
		{learner, l - 1, "--observe"},
		{observer, o, ""},
		{observer, 1 << 20, "may take 1 MiB here; use a machine"},
	} {
		if err := c.role.Fits(g, c.have); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("observer %v with %d bytes: %v", c.role.Observe, c.have, err)
		}
	}
	for _, k := range []codec.Kind{codec.Sparse, codec.Sparse8} {
		plain := g
		plain.Outer.H = 4 // without momentum, as with the codec sparse
		sparse := plain
		sparse.Outer.Codec = k
		if more := learner.Need(sparse) - learner.Need(plain); more != uint64(4*g.Model.Params()+4*g.Model.Params()/garbageShare) {
			t.Errorf("the codec %v needs %d bytes more, some of it for garbage", k, more)
		}
	}
	saved := g.TrainerConfig(g.Batch).StateBytes() / 2
	if less := l - (Role{Precision: tensor.BF16}).Need(g); less != uint64(saved+saved/garbageShare) {
		t.Errorf("moments need %d bytes less in bfloat16, want %d, and garbage", less, saved)
	}
	if (Role{Batch: 64}).Need(g) <= l {
		t.Error("a larger batch needs no more")
	}
}

// Beside a learner in a process of its own a large model takes the newest tips, one older copy of the global parameters and
// the shared values; outer momentum is part of the tips alone.
func TestNeedBesideALearner(t *testing.T) {
	g, err := genesis.Default("base", 3_000_000, 42, 1_700_000_000_000)
	if err != nil {
		t.Fatal(err)
	}
	params, role := uint64(g.Params()), Role{External: true}
	largest := uint64(0)
	for _, f := range g.Plan() {
		largest = max(largest, uint64(f.Len))
	}
	with := role.Need(g)
	g.Outer.H = 4
	without := role.Need(g)
	for _, c := range []struct {
		what               string
		need, tips, folded uint64
	}{
		{"with momentum", with, 8, 28 + 16},
		{"without", without, 4, 28 + 8},
	} {
		least := processBytes + (c.tips+4+4)*params + c.folded*largest
		if most := least + least/10; c.need < least || c.need > most {
			t.Errorf("%s: %d bytes of %d parameters, want %d to %d", c.what, c.need, params, least, most)
		}
	}
}
