package outer

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"unsafe"

	"atoll/tensor"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// checkWritten holds what a tip writes against its encoding, whole and up to an error.
func checkWritten(t *rapid.T, tip *Tip, encoded []byte) {
	var b bytes.Buffer
	n, err := tip.WriteTo(&b)
	if err != nil || n != int64(len(encoded)) || tip.Size() != len(encoded) || !bytes.Equal(b.Bytes(), encoded) {
		t.Fatalf("wrote %d bytes, %v; Size %d, encoded %d", n, err, tip.Size(), len(encoded))
	}
	full := &cutOff{left: rapid.IntRange(0, len(encoded)-1).Draw(t, "room")}
	room := int64(full.left)
	if n, err := tip.WriteTo(full); !errors.Is(err, io.ErrShortWrite) || n != room {
		t.Fatalf("with room for %d bytes: %d written, %v", room, n, err)
	}
}

// cutOff has room for so many bytes.
type cutOff struct{ left int }

func (w *cutOff) Write(b []byte) (int, error) {
	if n := min(w.left, len(b)); n < len(b) {
		w.left = 0
		return n, io.ErrShortWrite
	}
	w.left -= len(b)
	return len(b), nil
}

func TestTipSurvivesEncoding(t *testing.T) {
	f := toyFragment()
	rapid.Check(t, func(rt *rapid.T) {
		p := drawParams(rt)
		p.Budget = 1 << 20
		tip := Genesis(f, vector(7, f.Len), p)
		for round := uint32(1); round <= 2; round++ {
			tip = mustFold(t, p, f, tip, drawSet(rt, t, p, f, round)...)
		}
		b := tip.Encode()
		checkWritten(rt, tip, b)
		if len(b) != TipSize(f, p) || tip.State != blake3.Sum256(b) {
			rt.Fatalf("%d bytes with state %x", len(b), tip.State)
		}
		back, err := DecodeTip(b, f, p)
		if err != nil || back.State != tip.State || !bytes.Equal(back.Encode(), b) {
			rt.Fatal("decoding gives another tip", err)
		}
		if back.Tokens != tip.Tokens || back.EndRound != tip.EndRound || back.Chain != tip.Chain || back.Round != 2 {
			rt.Fatal("the head changed")
		}
	})
}

// A large tip is hashed in pieces.
func TestStateIsTheDigestOfTheEncoding(t *testing.T) {
	for _, n := range []int{50_000, 1 << 18, 1 << 20} {
		f := Fragment{Tensors: []Tensor{{Name: "w", Len: n}}, Len: n}
		tip := Genesis(f, vector(1, f.Len), Params{})
		if b := tip.Encode(); tip.State != blake3.Sum256(b) {
			t.Errorf("the state of %d values is not BLAKE3 of the encoding", n)
		}
	}
}

func TestDecodeTipRefuses(t *testing.T) {
	p, f := toyParams(), toyFragment()
	good := Genesis(f, vector(1, f.Len), p).Encode()
	for want, change := range map[string]func(b []byte) []byte{
		"bytes":                     func(b []byte) []byte { return b[:len(b)-1] },
		"begins":                    func(b []byte) []byte { b[0]++; return b },
		"norm reference":            func(b []byte) []byte { copy(b[tipHeadSize:], "\x00\x00\x80\x7f"); return b },
		"global parameters value 2": func(b []byte) []byte { copy(b[tipHeadSize+4*6:], "\x01\x00\x80\xff"); return b },
	} {
		if _, err := DecodeTip(change(bytes.Clone(good)), f, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error about %q, got %v", want, err)
		}
	}
	if _, err := DecodeTip(nil, f, p); err == nil {
		t.Error("nothing is a tip")
	}
}

// The layout of an encoded tip, byte by byte.
func TestGoldenTip(t *testing.T) {
	f := Fragment{Tensors: []Tensor{{Name: "w", Len: 2}}, Len: 2}
	p := Params{Mu: 0.5, OwnText: true}
	tip := &Tip{Round: 3, EndRound: 2, Tokens: 0x0102030405060708, Chain: Digest{0xaa, 31: 0xbb},
		Ref: []float32{0.5}, Global: []float32{1, -2}, Momentum: []float32{0, math.MaxFloat32}}
	want := "61746f6c6c540001" + "03000000" + "02000000" + "0807060504030201" +
		"aa" + strings.Repeat("00", 30) + "bb" + "0000003f" + "0000803f" + "000000c0" + "00000000" + "ffff7f7f"
	if got := hex.EncodeToString(tip.Encode()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if back, err := DecodeTip(tip.Encode(), f, p); err != nil || !bytes.Equal(back.Encode(), tip.Encode()) {
		t.Error(err)
	}
}

func TestChainDigestTellsSetsApart(t *testing.T) {
	a, b := ID{1}, ID{2}
	seen := map[Digest]bool{}
	for _, ids := range [][]ID{nil, {a}, {b}, {a, b}} {
		seen[ChainDigest(Digest{}, ids)] = true
		seen[ChainDigest(Digest{9}, ids)] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d digests of 8 chains", len(seen))
	}
}

func TestTakes(t *testing.T) {
	if tip := (&Tip{Round: 7}); !tip.Takes(1000) {
		t.Error("a fragment that has not ended refuses")
	}
	if tip := (&Tip{Round: 7, EndRound: 7}); !tip.Takes(8) || tip.Takes(9) {
		t.Error("the round after the end round is the last")
	}
}

func FuzzDecodeTip(f *testing.F) {
	frag := Fragment{Tensors: []Tensor{{Name: "v", Len: 3}, {Name: "w", Len: 2}}, Len: 5}
	for _, p := range []Params{{OwnText: true}, {Mu: 0.9, OwnText: true}, {}, {Mu: 0.9}} {
		tip := Genesis(frag, vector(1, frag.Len), p)
		f.Add(tip.Encode(), p.Mu != 0)
		if !p.OwnText {
			tip.Round, tip.Reputations = 3, []Reputation{{Author{1}, 5, 2}, {Author{2}, -5, 3}}
			f.Add(tip.Encode(), p.Mu != 0)
		}
		tip.Round, tip.Revoked = 3, []Revoked{{[32]byte{1}, 1}, {[32]byte{2}, 3}}
		f.Add(tip.Encode(), p.Mu != 0)
	}
	f.Fuzz(func(t *testing.T, b []byte, momentum bool) {
		p := Params{}
		if momentum {
			p.Mu = 0.9
		}
		for _, p.OwnText = range []bool{false, true} {
			if tip, err := DecodeTip(b, frag, p); err == nil && !bytes.Equal(tip.Encode(), b) {
				t.Fatal("decodes and encodes differently")
			}
		}
	})
}

// Memory is hashed as it is only where that gives what writing each value does.
func TestFloatsInMemory(t *testing.T) {
	if !littleEndian {
		t.Skip("floats are written one by one here")
	}
	rapid.Check(t, func(t *rapid.T) {
		v := vector(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 3*tipBuffer/4).Draw(t, "values"))
		var b bytes.Buffer
		writeFloats(&b, v)
		if !bytes.Equal(b.Bytes(), tensor.Bytes(v)) {
			t.Fatalf("%d values are other bytes in memory", len(v))
		}
	})
}

// A bit that flips anywhere in a tip, in its digest or in the checksums themselves, is found. A learner finds
// flipped bits of the global parameters.
func TestSoundFindsAnyFlippedBit(t *testing.T) {
	f := Fragment{Tensors: []Tensor{{Name: "v", Len: 30}, {Name: "w", Len: 20}}, Len: 50}
	rapid.Check(t, func(t *rapid.T) {
		tip := Genesis(f, vector(1, f.Len), Params{Mu: 0.9})
		if !tip.Sound() {
			t.Fatal("a new tip is damaged")
		}
		floats := func(v []float32) *byte { return &tensor.Bytes(v)[rapid.IntRange(0, 4*len(v)-1).Draw(t, "byte")] }
		number := func(v *uint32) *byte { return &(*[4]byte)(unsafe.Pointer(v))[rapid.IntRange(0, 3).Draw(t, "byte")] }
		digest := func(d *Digest) *byte { return &d[rapid.IntRange(0, len(d)-1).Draw(t, "byte")] }
		places := []*byte{
			floats(tip.Global), number(&tip.globalCheck), floats(tip.Momentum), floats(tip.Ref), digest(&tip.Chain), digest(&tip.State),
			number(&tip.Round), number(&tip.EndRound), number(&tip.check), &(*[8]byte)(unsafe.Pointer(&tip.Tokens))[0],
		}
		at := rapid.IntRange(0, len(places)-1).Draw(t, "place")
		*places[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if tip.Sound() {
			t.Fatalf("nothing is found at place %d", at)
		}
		if ofGlobal := at < 2; tip.GlobalSound() == ofGlobal {
			t.Fatalf("place %d: the global parameters are sound: %v", at, tip.GlobalSound())
		}
	})
}

func BenchmarkSound(b *testing.B) {
	const n = 1 << 20
	tip := Genesis(Fragment{Tensors: []Tensor{{Len: n}}, Len: n}, make([]float32, n), toyParams())
	b.SetBytes(4 * n)
	for b.Loop() {
		tip.Sound()
	}
}
