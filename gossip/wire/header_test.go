package wire

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHeader(t)
		b := h.Append([]byte("before"))[len("before"):]
		got, err := ParseHeader(b)
		if err != nil || got != h || len(b) != HeaderSize {
			t.Fatalf("%v came back as %v, %v", h, got, err)
		}
		s := SignedHeader{Header: h, Sig: Signature(bytes.Repeat([]byte{7}, 64))}
		back, err := ParseSignedHeader(s.Append(nil))
		if err != nil || back != s {
			t.Fatalf("%v came back as %v, %v", s, back, err)
		}
	})
}

func TestHeaderLength(t *testing.T) {
	b := SignHeader(testKey(1), testRun, testHeader()).Append(nil)
	for _, n := range []int{0, 1, HeaderSize - 1, HeaderSize + 1} {
		_, err := ParseHeader(b[:n])
		wantErr(t, err, ErrSize)
	}
	_, err := ParseSignedHeader(b[:len(b)-1])
	wantErr(t, err, ErrSize)
	_, err = ParseSignedHeader(append(b, 0))
	wantErr(t, err, ErrSize)
}

func TestHeaderIDCoversRunAndEveryField(t *testing.T) {
	h := testHeader()
	seen := map[Digest]int{h.ID(testRun): -1}
	if _, same := seen[h.ID(otherRun)]; same {
		t.Error("the id is the same in another run")
	}
	raw := h.Append(nil)
	for i := range 8 * len(raw) {
		g, err := ParseHeader(flipped(raw, i))
		if err != nil {
			continue
		}
		id := g.ID(testRun)
		if other, dup := seen[id]; dup {
			t.Errorf("bits %d and %d give one id", i, other)
		}
		seen[id] = i
	}
}

// Without a certificate a header states nothing of one.
func TestHeadersWithoutCertificate(t *testing.T) {
	s := SignHeader(testKey(1), testRun, testHeader())
	stated := s.Append(nil)[:91]
	if s.Header.ID(testRun) != Sum(Statement("atoll header id 1", testRun, stated)) {
		t.Error("another id")
	}
	ok(t, Verify(s.Header.Author, "atoll header 1", testRun, stated, s.Sig))
}

func TestSignHeaderSetsAuthor(t *testing.T) {
	h := testHeader()
	h.Author = PeerID{}
	s := SignHeader(testKey(2), testRun, h)
	if s.Header.Author != PeerIDOf(testKey(2)) {
		t.Errorf("author %v", s.Header.Author)
	}
	ok(t, s.Verify(testRun))
	s.Header.Author = PeerIDOf(testKey(3))
	wantErr(t, s.Verify(testRun), ErrSignature)
}
