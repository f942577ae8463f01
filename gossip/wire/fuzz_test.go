package wire

import (
	"bytes"
	"testing"
)

// Each target holds its decoder to the same: no panic, and what is accepted
// encodes to the very bytes that were decoded.

func FuzzOpen(f *testing.F) {
	for _, b := range messages() {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Open(testRun, b)
		if err != nil {
			return
		}
		if m.Header != nil && !bytes.Equal(EncodeHeader(*m.Header, m.Inline), b) {
			t.Error("another encoding of a header was accepted")
		}
		if m.Evidence != nil && !bytes.Equal(EncodeEvidence(*m.Evidence), b) {
			t.Error("another encoding of evidence was accepted")
		}
	})
}

func FuzzHeader(f *testing.F) {
	f.Add(SignHeader(testKey(1), testRun, testHeader()).Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := ParseSignedHeader(b); err == nil && !bytes.Equal(s.Append(nil), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzEvidence(f *testing.F) {
	f.Add(EncodeEvidence(testEvidence())[messageHead:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if e, err := decodeEvidence(b); err == nil && !bytes.Equal(EncodeEvidence(e)[messageHead:], b) {
			t.Error("another encoding was accepted")
		}
	})
}

// FuzzBeat stops before the signature, which no mutated input passes.
func FuzzBeat(f *testing.F) {
	f.Add(EncodeBeat(testKey(1), testRun, testBeat())[messageHead:])
	f.Add(EncodeBeat(testKey(1), testRun, largestBeat(MaxFragments))[messageHead:])
	f.Fuzz(func(t *testing.T, b []byte) {
		var beat Beat
		signed, _, err := unseal(b, &beat)
		if err != nil || beat.Validate() != nil {
			return
		}
		if !bytes.Equal(Marshal(beat), signed) {
			t.Error("another encoding was accepted")
		}
		_ = Verify(beat.Author, domainBeat, testRun, signed, Signature{})
	})
}

// FuzzManifest stops before the signature, which no mutated input passes.
func FuzzManifest(f *testing.F) {
	f.Add(EncodeManifest(testKey(1), testRun, testManifest()))
	f.Fuzz(func(t *testing.T, b []byte) {
		var m Manifest
		signed, _, err := unseal(b, &m)
		if err != nil || m.Validate() != nil {
			return
		}
		if !bytes.Equal(Marshal(m), signed) {
			t.Error("another encoding was accepted")
		}
		for _, fragment := range m.Fragments {
			for i := range fragment.Chunks {
				if n := fragment.ChunkLen(i); n < 1 || n > ChunkSize {
					t.Errorf("chunk %d has %d bytes", i, n)
				}
			}
		}
	})
}

func FuzzRequest(f *testing.F) {
	for _, r := range testRequests() {
		f.Add(r.Encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeRequest(b); err == nil && !bytes.Equal(r.Encode(), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzResponse(f *testing.F) {
	f.Add(Response{Status: OK, Body: []byte("body")}.Encode())
	f.Add(Response{Status: Busy}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeResponse(b, MaxRequest); err == nil && !bytes.Equal(r.Encode(), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzRoster(f *testing.F) {
	f.Add(EncodeRoster([][]byte{{1}, {2, 3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := DecodeRoster(b); err == nil && !bytes.Equal(EncodeRoster(r), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzRounds(f *testing.F) {
	f.Add(EncodeRounds(testAnswers()))
	asked := []Range{{From: 1, To: 2}, {From: 1, To: 1}}
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := DecodeRounds(b, asked); err == nil && !bytes.Equal(EncodeRounds(a), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzHeaders(f *testing.F) {
	f.Add(EncodeHeaders([]SignedHeader{testEvidence().A, testEvidence().B}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := DecodeHeaders(b); err == nil && !bytes.Equal(EncodeHeaders(h), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 1, 2})
	f.Fuzz(func(t *testing.T, b []byte) {
		body, err := ReadFrame(bytes.NewReader(b), MaxMessage)
		if err != nil {
			return
		}
		var back bytes.Buffer
		if err := WriteFrame(&back, body, MaxMessage); err != nil || !bytes.HasPrefix(b, back.Bytes()) {
			t.Errorf("%x became %x, %v", b, back.Bytes(), err)
		}
	})
}
