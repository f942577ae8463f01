package trainer

import (
	"bytes"
	"context"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
)

// sentence is a text whose next letter needs more than the last one.
func sentence() *corpus.Corpus {
	return corpus.New("sentence", []byte(strings.Repeat("the quick brown fox jumps over the lazy dog. ", 60)))
}

// bitsAfter is the mean over some seeds of the bits per byte held out, after so
// many steps.
func bitsAfter(t *testing.T, cfg Config, steps int, lr float64) float64 {
	t.Helper()
	const seeds = 3
	sum := 0.0
	for cfg.Seed = 1; cfg.Seed <= seeds; cfg.Seed++ {
		b, err := New(cfg, sentence())
		for range steps {
			if err == nil {
				_, err = b.Step(context.Background(), lr)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		bits, err := BitsPerByte(context.Background(), mini, b.Slab(), corpus.Windows(sentence().HeldOut(), mini.Context))
		if err != nil {
			t.Fatal(err)
		}
		sum += bits
	}
	return sum / seeds
}

// TestMuonLearnsNoWorse compares the optimizers after as many steps at the same
// learning rate. The first steps of AdamW are larger than its later ones, steps
// of Muon are not. Muon comes from behind, and is ahead when both know the
// text.
func TestMuonLearnsNoWorse(t *testing.T) {
	const steps, lr = 400, 0.01
	adamw, muon := bitsAfter(t, miniConfig(), steps, lr), bitsAfter(t, muonConfig(), steps, lr)
	if muon > adamw || math.IsNaN(muon) {
		t.Errorf("%v bits per byte with adamw, %v with muon", adamw, muon)
	}
}

func TestWeightDecayOnMatricesOnly(t *testing.T) {
	slab := tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{2, 3}}, {Name: "b", Shape: []int{1, 2}}, {Name: "norm", Shape: []int{4}}, {Name: "c", Shape: []int{2, 2}}})
	want := []optimizer.Span{{Offset: 0, Len: 8}, {Offset: 12, Len: 4}}
	if got := matrices(slab.Views); !slices.Equal(got, want) {
		t.Errorf("decay on %v, want %v", got, want)
	}
}

// TestMuonTakesHiddenMatrices: embedding, gains and head stay with AdamW.
func TestMuonTakesHiddenMatrices(t *testing.T) {
	untied := mini
	untied.Tied = false
	views := tensor.Layout(untied.Specs())
	var taken []string
	for i, b := range blocks(views) {
		v := views[i]
		if b.Offset != v.Offset || b.Len != v.Len || b.Decay != (len(v.Shape) == 2) {
			t.Errorf("%s: block %+v", v.Name, b)
		}
		if b.Rows > 0 {
			taken = append(taken, strings.Split(v.Name, ".")[4])
			if b.Rows != v.Shape[0] {
				t.Errorf("%s: %d rows, want %d", v.Name, b.Rows, v.Shape[0])
			}
		}
	}
	want := []string{"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}
	if !slices.Equal(taken, want) {
		t.Errorf("Muon takes %v, want %v", taken, want)
	}
}

// stateOf is all that SaveState gives.
func stateOf(t *testing.T, b *Builtin) []byte {
	t.Helper()
	r, err := b.SaveState()
	var encoded []byte
	if err == nil {
		encoded, err = io.ReadAll(r)
	}
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestLoadStateErrors(t *testing.T) {
	a, m := newTrainer(t, miniConfig()), newTrainer(t, muonConfig())
	steps(t, a, 2)
	steps(t, m, 2)
	ofAdamW, ofMuon := bytes.NewReader(stateOf(t, a)), bytes.NewReader(stateOf(t, m))
	smallAdamW := optimizer.NewAdamState(7, tensor.F32).Reader()
	smallMuon := optimizer.NewMuonState([]optimizer.Block{{Span: optimizer.Span{Len: 7}}}, tensor.F32).Reader()
	for _, c := range []struct {
		b       *Builtin
		encoded io.Reader
		want    string
	}{
		{a, smallAdamW, "it has 7 moments where the model has"},
		{a, strings.NewReader(""), "0 bytes"},
		{a, ofMuon, "it is of muon and this run trains with adamw"},
		{m, smallMuon, "it has 7 moments where the model has"},
		{m, strings.NewReader(""), "0 bytes"},
		{m, ofAdamW, "it is of adamw and this run trains with muon"},
	} {
		if err := c.b.LoadState(c.encoded); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
	if a.Steps() != 2 || m.Steps() != 2 {
		t.Errorf("%d and %d steps after refused states, want 2", a.Steps(), m.Steps())
	}
}

// TestStateBytes: the estimate counts what is encoded, a few bytes apart.
func TestStateBytes(t *testing.T) {
	eachOptimizer(t, func(t *testing.T, cfg Config) {
		encoded := stateOf(t, newTrainer(t, cfg))
		if extra := int64(len(encoded)) - cfg.StateBytes(); extra < 0 || extra > 64 {
			t.Errorf("%d bytes encoded, %d estimated", len(encoded), cfg.StateBytes())
		}
	})
	if m, a := muonConfig().StateBytes(), miniConfig().StateBytes(); m >= a {
		t.Errorf("Muon keeps %d bytes, AdamW %d: it has one moment less for matrices", m, a)
	}
}
