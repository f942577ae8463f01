package optimizer

import (
	"bytes"
	"encoding/hex"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"

	"atoll/tensor"

	"pgregory.net/rapid"
)

// state is that of either optimizer.
type state interface {
	Reader() io.Reader
	Load(r io.Reader) error
}

// small are states of two first moments, and of two and one second ones, that are to be filled, in float32.
func smallAdam() *AdamState { return NewAdamState(2, tensor.F32) }
func smallMuon() *MuonState {
	return NewMuonState([]Block{{Span: Span{0, 1}}, {Span: Span{1, 1}, Rows: 1}}, tensor.F32)
}

func encoded(t testing.TB, s state) []byte {
	t.Helper()
	b, err := io.ReadAll(s.Reader())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// stateGolden is step 5 of moments M = {1, -2} and V = {0.5, 0}; muonGolden of first
// moments {1, -2} and the second moment {0.5}.
const (
	stateGolden = "01" + "0500000000000000" + "0200000000000000" + "0000803f000000c0" + "0000003f00000000"
	muonGolden  = "02" + "0500000000000000" + "0200000000000000" + "0100000000000000" + "0000803f000000c0" + "0000003f"
)

func golden(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStateGolden(t *testing.T) {
	adam, muon := smallAdam(), smallMuon()
	adam.M.set(0, []float32{1, -2})
	adam.V.set(0, []float32{0.5, 0})
	muon.M.set(0, []float32{1, -2})
	muon.V.set(0, []float32{0.5})
	adam.Step, muon.Step = 5, 5
	checkGolden(t, stateGolden, adam, smallAdam())
	checkGolden(t, muonGolden, muon, smallMuon())
}

func checkGolden(t *testing.T, text string, want, got state) {
	t.Helper()
	if b := encoded(t, want); hex.EncodeToString(b) != text {
		t.Errorf("state is %x", b)
	}
	if err := got.Load(bytes.NewReader(golden(t, text))); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("loaded %+v, %v", got, err)
	}
}

// TestStateRoundTrip: float32 comes back as it was, and so does bfloat16, of float32 rounded once.
func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]tensor.Precision{tensor.F32, tensor.BF16}).Draw(t, "precision")
		n := rapid.IntRange(0, 50).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		m := rapid.SliceOfN(rapid.Float32Range(-1e30, 1e30), n, n).Draw(t, "M")
		v := rapid.SliceOfN(rapid.Float32Range(0, 1e30), n, n).Draw(t, "V")
		step := rapid.Int64Min(0).Draw(t, "step")
		adam := NewAdamState(n, p)
		adam.M.set(0, m)
		adam.V.set(0, v)
		blocks := []Block{{Span: Span{0, k}}, {Span: Span{k, n - k}, Rows: 1}}
		muon := NewMuonState(blocks, p)
		muon.M.set(0, m)
		muon.V.set(0, v[:k])
		adam.Step, muon.Step = step, step
		checkRoundTrip(t, adam, NewAdamState(n, p))
		checkRoundTrip(t, muon, NewMuonState(blocks, p))
		checkRounded(t, m, adam, NewAdamState(n, tensor.F32))
	})
}

func checkRoundTrip(t *rapid.T, want, got state) {
	if err := got.Load(want.Reader()); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("loaded %+v, %v; want %+v", got, err, want)
	}
}

// checkRounded: a learner in the other precision takes a state over, within half of the last place.
func checkRounded(t *rapid.T, m []float32, from, to *AdamState) {
	if err := to.Load(from.Reader()); err != nil {
		t.Fatal(err)
	}
	for i, x := range m {
		if d := math.Abs(float64(to.M.wide[i] - x)); d > math.Abs(float64(x))/256 && math.Abs(float64(x)) > 1e-30 {
			t.Fatalf("moment %d is %v, was %v", i, to.M.wide[i], x)
		}
	}
}

// damaged is a golden state that must not load.
type damaged struct {
	name, want string
	header     bool // it is damaged in its header
	damage     func(b []byte) []byte
}

func TestStateErrors(t *testing.T) {
	checkErrors(t, func() state { return smallAdam() }, golden(t, stateGolden), []damaged{
		{"empty", "0 bytes", true, func([]byte) []byte { return nil }},
		{"cut", "it ends early", false, func(b []byte) []byte { return b[:len(b)-4] }},
		{"longer", "it goes on", false, func(b []byte) []byte { return append(b, 0) }},
		{"version", "version 9", true, func(b []byte) []byte { b[0] = 9; return b }},
		{"of another", "it is of muon and this run trains with adamw: start without it", true, func([]byte) []byte { return golden(t, muonGolden) }},
		{"step", "step is -", true, func(b []byte) []byte { b[8] = 0x80; return b }},
		{"count", "it has 9223372036854775810 moments where the model has 2", true, func(b []byte) []byte { b[16] = 0x80; return b }},
		{"infinite", "first moment 1 is -Inf", false, func(b []byte) []byte { copy(b[21:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", false, func(b []byte) []byte { b[28] = 0xbf; return b }},
	})
	checkErrors(t, func() state { return smallMuon() }, golden(t, muonGolden), []damaged{
		{"empty", "0 bytes", true, func([]byte) []byte { return nil }},
		{"header cut", "20 bytes, at least 25", true, func(b []byte) []byte { return b[:20] }},
		{"cut", "it ends early", false, func(b []byte) []byte { return b[:len(b)-4] }},
		{"version", "version 9", true, func(b []byte) []byte { b[0] = 9; return b }},
		{"of another", "it is of adamw and this run trains with muon: start without it", true, func([]byte) []byte { return golden(t, stateGolden) }},
		{"step", "step is -", true, func(b []byte) []byte { b[8] = 0x80; return b }},
		{"more first", "it has 4611686018427387906 moments where the model has 2", true, func(b []byte) []byte { b[16] = 0x40; return b }},
		{"more second", "it has 2 moments where the model has 1", true, func(b []byte) []byte { b[17] = 2; return b }},
		{"infinite", "first moment 1 is -Inf", false, func(b []byte) []byte { copy(b[29:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", false, func(b []byte) []byte { b[36] = 0xbf; return b }},
	})
}

// checkErrors loads each damaged state into one that must stay as it was or, if moments were damaged, be as before the first step.
func checkErrors(t *testing.T, fresh func() state, good []byte, cases []damaged) {
	for _, c := range cases {
		s, want := fresh(), fresh()
		if err := s.Load(bytes.NewReader(good)); err != nil {
			t.Fatal(err)
		}
		if c.header {
			_ = want.Load(bytes.NewReader(good))
		}
		err := s.Load(bytes.NewReader(c.damage(bytes.Clone(good))))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T, %s: error %v, want %q", s, c.name, err, c.want)
		}
		if !reflect.DeepEqual(s, want) {
			t.Errorf("%T, %s: it became %+v", s, c.name, s)
		}
	}
}

func FuzzState(f *testing.F) { fuzzState(f, func() state { return smallAdam() }) }

func FuzzMuonState(f *testing.F) { fuzzState(f, func() state { return smallMuon() }) }

// fuzzState: what loads encodes as it was.
func fuzzState(f *testing.F, fresh func() state) {
	f.Add(golden(f, stateGolden))
	f.Add(golden(f, muonGolden))
	f.Add([]byte{adamStateVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		s := fresh()
		if s.Load(bytes.NewReader(b)) != nil {
			return
		}
		if again := encoded(t, s); !bytes.Equal(again, b) {
			t.Errorf("%x loads as a state that encodes as %x", b, again)
		}
	})
}
