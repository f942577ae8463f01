package optimizer

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// stateGolden is step 5 of moments M = {1, -2} and V = {0.5, 0}.
const stateGolden = "01" + "0500000000000000" + "0200000000000000" + "0000803f000000c0" + "0000003f00000000"

func golden(t testing.TB) []byte {
	b, err := hex.DecodeString(stateGolden)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestStateGolden(t *testing.T) {
	want := AdamState{M: []float32{1, -2}, V: []float32{0.5, 0}, Step: 5}
	b, err := want.MarshalBinary()
	if err != nil || hex.EncodeToString(b) != stateGolden {
		t.Errorf("state is %x, %v", b, err)
	}
	var got AdamState
	if err := got.UnmarshalBinary(golden(t)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		want := AdamState{
			M:    rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "M"),
			V:    rapid.SliceOfN(rapid.Float32Min(0), n, n).Draw(t, "V"),
			Step: rapid.Int64Min(0).Draw(t, "step"),
		}
		b, _ := want.MarshalBinary()
		var got AdamState
		if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded %+v, %v; want %+v", got, err, want)
		}
	})
}

func TestStateErrors(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		damage     func(b []byte) []byte
	}{
		{"empty", "0 bytes", func([]byte) []byte { return nil }},
		{"cut", "12 bytes for 2 parameters", func(b []byte) []byte { return b[:len(b)-4] }},
		{"version", "version 9", func(b []byte) []byte { b[0] = 9; return b }},
		{"step", "step is -", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"count", "for 9223372036854775810 parameters", func(b []byte) []byte { b[16] = 0x80; return b }},
		{"infinite", "first moment 1 is -Inf", func(b []byte) []byte { copy(b[21:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", func(b []byte) []byte { b[28] = 0xbf; return b }},
	} {
		state := AdamState{Step: 3}
		err := state.UnmarshalBinary(tc.damage(golden(t)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if state.Step != 3 || state.M != nil {
			t.Errorf("%s: a failed decoding changed the state to %+v", tc.name, state)
		}
	}
}

func FuzzState(f *testing.F) {
	f.Add(golden(f))
	f.Add([]byte{adamStateVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s AdamState
		if s.UnmarshalBinary(b) != nil {
			return
		}
		if again, _ := s.MarshalBinary(); !bytes.Equal(again, b) {
			t.Errorf("%x decodes to a state that encodes as %x", b, again)
		}
	})
}
