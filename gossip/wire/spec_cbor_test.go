package wire_test

import (
	"encoding/binary"
	"math"
	"testing"
)

// cborReader decodes what this protocol uses of RFC 8949, by its text and not
// by the library that the package uses. A malformed item fails the test.
type cborReader struct {
	t testing.TB
	b []byte
}

// decodeCBOR returns the one item at the front of b and what follows it:
// uint64, []byte, []any, map[uint64]any, float64, bool.
func decodeCBOR(t testing.TB, b []byte) (item any, rest []byte) {
	t.Helper()
	r := &cborReader{t, b}
	return r.item(), r.b
}

func (r *cborReader) take(n uint64) []byte {
	r.t.Helper()
	if n > uint64(len(r.b)) {
		r.t.Fatalf("%d bytes wanted, %d left", n, len(r.b))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// number reads 1, 2, 4 or 8 bytes, big-endian.
func (r *cborReader) number(size uint64) uint64 {
	b := make([]byte, 8)
	copy(b[8-size:], r.take(size))
	return binary.BigEndian.Uint64(b)
}

func (r *cborReader) item() any {
	r.t.Helper()
	head := r.take(1)[0]
	major, info := head>>5, uint64(head&31)
	if major == 7 {
		if info == 20 || info == 21 {
			return info == 21
		}
		return r.float(info)
	}
	n := info
	if info >= 24 {
		n = r.number(1 << (info - 24))
	}
	switch major {
	case 0:
		return n
	case 2:
		return r.take(n)
	case 4:
		items := []any{}
		for range n {
			items = append(items, r.item())
		}
		return items
	case 5:
		items := map[uint64]any{}
		for range n {
			key := r.item().(uint64)
			items[key] = r.item()
		}
		return items
	}
	r.t.Fatalf("CBOR major type %d", major)
	return nil
}

func (r *cborReader) float(info uint64) float64 {
	switch info {
	case 25:
		return half(uint16(r.number(2)))
	case 26:
		return float64(math.Float32frombits(uint32(r.number(4))))
	case 27:
		return math.Float64frombits(r.number(8))
	}
	r.t.Fatalf("CBOR simple value %d", info)
	return 0
}

// half is the value of finite IEEE 754 binary16 bits.
func half(b uint16) float64 {
	exponent, fraction := int(b>>10&31), float64(b&1023)
	v := math.Ldexp(1+fraction/1024, exponent-15)
	if exponent == 0 {
		v = math.Ldexp(fraction, -24)
	}
	if b>>15 == 1 {
		return -v
	}
	return v
}
