package outer

import (
	"math"
	"slices"
	"testing"

	"atoll/tensor/codec"
)

// sparseLearner has 12 values ahead of the global parameters. A delta of its fragment has room for six.
func sparseLearner() (l *Learner, local []float32) {
	p := toyParams()
	p.Codec = codec.Sparse
	l, local, _, _ = oneFragment(p)
	for i := range 6 {
		local[10*i], local[10*i+1] = 8, -1
	}
	l.Stepped(512, []uint32{0})
	return l, local
}

// sent drafts, and returns the draft and what its payload holds.
func sent(t *testing.T, l *Learner, n int) (Draft, []float32) {
	t.Helper()
	d, err := l.Draft(0)
	if err != nil {
		t.Fatal(err)
	}
	q := make([]float32, n)
	if err := codec.Decode(d.Payload, n, q); err != nil {
		t.Fatal(err)
	}
	return d, q
}

// Half of what a sparse delta leaves behind leaves the local parameters with it, and all of it travels with the next one.
func TestWhatIsNotSentIsHeld(t *testing.T) {
	l, local := sparseLearner()
	_, q := sent(t, l, len(local))
	if q[0] != 8 || q[1] != 0 || local[0] != 8 || local[1] != -0.5 {
		t.Fatalf("sent %v, local is %v", q, local)
	}
	local[1] -= 0.5 // the next step makes half of the progress again in one place
	l.Stepped(512, []uint32{0})
	_, q = sent(t, l, len(local))
	if math.Abs(float64(q[1]+1.5)) > 0.01 || math.Abs(float64(q[11]+1)) > 0.01 || q[0] != 0 {
		t.Errorf("sent %v", q)
	}
	if local[0] != 8 || local[1] != -1.5 || local[11] != -1 {
		t.Errorf("the local value is %v", local)
	}
}

// A draft that cannot be published is part of U again, beside what is held.
func TestTakenBackWhileMoreIsHeld(t *testing.T) {
	l, local := sparseLearner()
	d, _ := sent(t, l, len(local))
	if err := l.Return(0, changed(Returned, d)[0].Own); err != nil {
		t.Fatal(err)
	}
	again, q := sent(t, l, len(local))
	if q[0] != 8 || q[1] != 0 || again.Tokens != 512 {
		t.Errorf("sent %v for %d tokens", q, again.Tokens)
	}
	l.Stepped(1, []uint32{0})
	if _, q = sent(t, l, len(local)); math.Abs(float64(q[1]+1)) > 0.01 {
		t.Errorf("what was held twice came as %v", q[1])
	}
}

// A learner that cannot encode its progress has not moved.
func TestFailedSparseDraftChangesNothing(t *testing.T) {
	l, local := sparseLearner()
	sent(t, l, len(local))
	local[3] = float32(math.Inf(1))
	l.Stepped(512, []uint32{0})
	before := slices.Clone(local)
	held := slices.Clone(l.frags[0].held)
	if _, err := l.Draft(0); err == nil {
		t.Fatal("infinite progress was encoded")
	}
	if !slices.Equal(before, local) || !slices.Equal(held, l.frags[0].held) {
		t.Error("the local parameters or what is held have moved")
	}
}
