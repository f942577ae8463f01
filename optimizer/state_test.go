package optimizer

import (
	"bytes"
	"encoding"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// marshaled points to a state S that travels as bytes.
type marshaled[S any] interface {
	*S
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
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
	checkGolden(t, stateGolden, AdamState{M: []float32{1, -2}, V: []float32{0.5, 0}, Step: 5})
	checkGolden(t, muonGolden, MuonState{M: []float32{1, -2}, V: []float32{0.5}, Step: 5})
}

func checkGolden[S any, P marshaled[S]](t *testing.T, text string, want S) {
	t.Helper()
	b, err := P(&want).MarshalBinary()
	if err != nil || hex.EncodeToString(b) != text {
		t.Errorf("state is %x, %v", b, err)
	}
	var got S
	if err := P(&got).UnmarshalBinary(golden(t, text)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		m := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "M")
		v := rapid.SliceOfN(rapid.Float32Min(0), n, n).Draw(t, "V")
		step := rapid.Int64Min(0).Draw(t, "step")
		checkRoundTrip(t, AdamState{M: m, V: v, Step: step})
		checkRoundTrip(t, MuonState{M: m, V: v[:k], Step: step})
	})
}

func checkRoundTrip[S any, P marshaled[S]](t *rapid.T, want S) {
	b, _ := P(&want).MarshalBinary()
	var got S
	if err := P(&got).UnmarshalBinary(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("decoded %+v, %v; want %+v", got, err, want)
	}
}

// damaged is a golden state that must not decode.
type damaged struct {
	name, want string
	damage     func(b []byte) []byte
}

func TestStateErrors(t *testing.T) {
	checkErrors(t, AdamState{Step: 3}, golden(t, stateGolden), []damaged{
		{"empty", "0 bytes", func([]byte) []byte { return nil }},
		{"cut", "12 bytes for 2 parameters", func(b []byte) []byte { return b[:len(b)-4] }},
		{"version", "version 9", func(b []byte) []byte { b[0] = 9; return b }},
		{"of another", "it is of muon and this run trains with adamw: start without it", func([]byte) []byte { return golden(t, muonGolden) }},
		{"step", "step is -", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"count", "for 9223372036854775810 parameters", func(b []byte) []byte { b[16] = 0x80; return b }},
		{"infinite", "first moment 1 is -Inf", func(b []byte) []byte { copy(b[21:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", func(b []byte) []byte { b[28] = 0xbf; return b }},
	})
	checkErrors(t, MuonState{Step: 3}, golden(t, muonGolden), []damaged{
		{"empty", "0 bytes", func([]byte) []byte { return nil }},
		{"header cut", "20 bytes, at least 25", func(b []byte) []byte { return b[:20] }},
		{"cut", "8 bytes for 2 first and 1 second", func(b []byte) []byte { return b[:len(b)-4] }},
		{"version", "version 9", func(b []byte) []byte { b[0] = 9; return b }},
		{"of another", "it is of adamw and this run trains with muon: start without it", func([]byte) []byte { return golden(t, stateGolden) }},
		{"step", "step is -", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"counts that wrap", "for 4611686018427387904 first", func(b []byte) []byte { b[9], b[16], b[17] = 0, 0x40, 3; return b }},
		{"more second than first", "for 1 first and 2 second", func(b []byte) []byte { b[9], b[17] = 1, 2; return b }},
		{"infinite", "first moment 1 is -Inf", func(b []byte) []byte { copy(b[29:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", func(b []byte) []byte { b[36] = 0xbf; return b }},
	})
}

// checkErrors decodes each damaged state into one that must stay as it was.
func checkErrors[S any, P marshaled[S]](t *testing.T, before S, good []byte, cases []damaged) {
	for _, c := range cases {
		state := before
		err := P(&state).UnmarshalBinary(c.damage(bytes.Clone(good)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T, %s: error %v, want %q", state, c.name, err, c.want)
		}
		if !reflect.DeepEqual(state, before) {
			t.Errorf("%T, %s: a failed decoding changed the state to %+v", state, c.name, state)
		}
	}
}

func FuzzState(f *testing.F) { fuzzState[AdamState](f, []byte{adamStateVersion}) }

func FuzzMuonState(f *testing.F) { fuzzState[MuonState](f, []byte{muonStateVersion}) }

func fuzzState[S any, P marshaled[S]](f *testing.F, version []byte) {
	f.Add(golden(f, stateGolden))
	f.Add(golden(f, muonGolden))
	f.Add(version)
	f.Fuzz(func(t *testing.T, b []byte) {
		var s S
		if P(&s).UnmarshalBinary(b) != nil {
			return
		}
		if again, _ := P(&s).MarshalBinary(); !bytes.Equal(again, b) {
			t.Errorf("%x decodes to a state that encodes as %x", b, again)
		}
	})
}
