package optimizer

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// muonGolden is step 5 of first moments {1, -2} and the second moment {0.5}.
const muonGolden = "02" + "0500000000000000" + "0200000000000000" + "0100000000000000" + "0000803f000000c0" + "0000003f"

func goldenMuon(t testing.TB) []byte {
	b, err := hex.DecodeString(muonGolden)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMuonStateGolden(t *testing.T) {
	want := MuonState{M: []float32{1, -2}, V: []float32{0.5}, Step: 5}
	b, err := want.MarshalBinary()
	if err != nil || hex.EncodeToString(b) != muonGolden {
		t.Errorf("state is %x, %v", b, err)
	}
	var got MuonState
	if err := got.UnmarshalBinary(goldenMuon(t)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func TestMuonStateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 50).Draw(t, "n")
		k := rapid.IntRange(0, n).Draw(t, "k")
		want := MuonState{
			M:    rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "M"),
			V:    rapid.SliceOfN(rapid.Float32Min(0), k, k).Draw(t, "V"),
			Step: rapid.Int64Min(0).Draw(t, "step"),
		}
		b, _ := want.MarshalBinary()
		var got MuonState
		if err := got.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("decoded %+v, %v; want %+v", got, err, want)
		}
	})
}

func TestMuonStateErrors(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		damage     func(b []byte) []byte
	}{
		{"empty", "0 bytes", func([]byte) []byte { return nil }},
		{"header cut", "20 bytes, at least 25", func(b []byte) []byte { return b[:20] }},
		{"cut", "8 bytes for 2 first and 1 second", func(b []byte) []byte { return b[:len(b)-4] }},
		{"version", "version 9", func(b []byte) []byte { b[0] = 9; return b }},
		{"of another", "it is of adamw and this run trains with muon: start without it", func([]byte) []byte { return golden(t) }},
		{"step", "step is -", func(b []byte) []byte { b[8] = 0x80; return b }},
		{"counts that wrap", "for 4611686018427387904 first", func(b []byte) []byte { b[9], b[16], b[17] = 0, 0x40, 3; return b }},
		{"more second than first", "for 1 first and 2 second", func(b []byte) []byte { b[9], b[17] = 1, 2; return b }},
		{"infinite", "first moment 1 is -Inf", func(b []byte) []byte { copy(b[29:], "\x00\x00\x80\xff"); return b }},
		{"negative", "second moment 0 is -0.5", func(b []byte) []byte { b[36] = 0xbf; return b }},
	} {
		state := MuonState{Step: 3}
		err := state.UnmarshalBinary(tc.damage(goldenMuon(t)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if state.Step != 3 || state.M != nil {
			t.Errorf("%s: a failed decoding changed the state to %+v", tc.name, state)
		}
	}
}

// TestAdamWRefusesMuonsState by name.
func TestAdamWRefusesMuonsState(t *testing.T) {
	state := AdamState{Step: 3}
	err := state.UnmarshalBinary(goldenMuon(t))
	if err == nil || !strings.Contains(err.Error(), "it is of muon and this run trains with adamw: start without it") || state.Step != 3 {
		t.Errorf("error %v, state %+v", err, state)
	}
}

func FuzzMuonState(f *testing.F) {
	f.Add(goldenMuon(f))
	f.Add(golden(f))
	f.Add([]byte{muonStateVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		var s MuonState
		if s.UnmarshalBinary(b) != nil {
			return
		}
		if again, _ := s.MarshalBinary(); !bytes.Equal(again, b) {
			t.Errorf("%x decodes to a state that encodes as %x", b, again)
		}
	})
}
