package codec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/tensor/codec"
)

// unpackByText is C-18 to C-18.3, beside which it is to be read.
func unpackByText(b []byte, n int) ([]byte, error) {
	chunk := make([]byte, n)
	for k := range 4 {
		size := 0
		for i := k; i < n; i += 4 {
			size++
		}
		if size == 0 {
			continue
		}
		stream, rest, err := readChunk(b, size)
		if err != nil {
			return nil, err
		}
		for j, x := range stream {
			chunk[4*j+k] = x
		}
		b = rest
	}
	if len(b) > 0 {
		return nil, errText
	}
	return chunk, nil
}

// unpack holds the package to unpackByText.
func unpack(t testing.TB, b []byte, n int) ([]byte, error) {
	t.Helper()
	got, err := codec.Unpack(b, n)
	want, refused := unpackByText(b, n)
	if (err == nil) != (refused == nil) || err == nil && !bytes.Equal(got, want) {
		t.Fatalf("unpacked %x, %v, by the text %x, %v", got, err, want, refused)
	}
	return got, err
}

// valuesAndMore are the bytes of the short example.
func valuesAndMore() (b []byte) {
	for _, x := range three {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return append(b, 7, 8)
}

func specPacked(t *testing.T, s *spectest.Spec) {
	want := valuesAndMore()
	got, err := unpack(t, s.Hex(t, "packed chunk"), len(want))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("unpacked %x, %v, by the text %x", got, err, want)
	}
	if b := codec.Pack(want); !bytes.Equal(b, s.Hex(t, "packed chunk")) {
		t.Errorf("packed %x", b)
	}
}

func specPackedStreams(t *testing.T, s *spectest.Spec) {
	got, err := unpack(t, s.Hex(t, "packed few"), 3)
	if err != nil || !bytes.Equal(got, []byte{5, 6, 7}) {
		t.Errorf("unpacked %x, %v", got, err)
	}
	if b := codec.Pack(got); !bytes.Equal(b, s.Hex(t, "packed few")) {
		t.Errorf("packed %x", b)
	}
	values := make([]byte, 0, 4096)
	for i := range 1024 {
		x := math.Sin(float64(i) * float64(i))
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(float32(x*x*x)))
	}
	for n := range 9 {
		for _, b := range [][]byte{values[:n], values[:len(values)-n]} {
			packed := codec.Pack(b)
			if got, err := unpack(t, packed, len(b)); err != nil || !bytes.Equal(got, b) {
				t.Errorf("%d bytes: %v", len(b), err)
			}
			for i := range len(packed) {
				if _, err := unpack(t, packed[:i], len(b)); !errors.Is(err, codec.ErrCorrupt) {
					t.Fatalf("%d of %d bytes packed for %d: %v", i, len(packed), len(b), err)
				}
			}
		}
	}
}

func specPackedBehind(t *testing.T, s *spectest.Spec) {
	for name, n := range map[string]int{"packed chunk": len(valuesAndMore()), "packed few": 3} {
		if _, err := unpack(t, append(s.Hex(t, name), 0), n); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("%s and a byte: %v", name, err)
		}
	}
	if _, err := unpack(t, []byte{0}, 0); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("a byte for nothing: %v", err)
	}
}
