package wire

import (
	"bytes"
	"testing"
)

// Each target holds its decoder to the same: no panic, and what is accepted
// encodes to the very bytes that were decoded.

// exact fuzzes a decoder; again encodes what it decodes.
func exact[V any](f *testing.F, decode func(b []byte) (V, error), again func(v V) []byte, seeds ...[]byte) {
	for _, b := range seeds {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := decode(b); err == nil && !bytes.Equal(again(v), b) {
			t.Error("another encoding was accepted")
		}
	})
}

func FuzzHeader(f *testing.F) {
	exact(f, ParseSignedHeader, func(s SignedHeader) []byte { return s.Append(nil) }, SignHeader(testKey(1), testRun, testHeader()).Append(nil))
}

func FuzzEquivocation(f *testing.F) {
	encode := func(e Equivocation) []byte { return EncodeEquivocation(e)[messageHead:] }
	exact(f, decodeEquivocation, encode, encode(testEquivocation()))
}

func FuzzRequest(f *testing.F) {
	var seeds [][]byte
	for _, r := range testRequests() {
		seeds = append(seeds, r.Encode())
	}
	exact(f, DecodeRequest, Request.Encode, seeds...)
}

func FuzzResponse(f *testing.F) {
	decode := func(b []byte) (Response, error) { return DecodeResponse(b, MaxRequest) }
	exact(f, decode, Response.Encode, Response{Status: OK, Body: []byte("body")}.Encode(), Response{Status: Busy}.Encode())
}

func FuzzPeerList(f *testing.F) {
	exact(f, DecodePeerList, PeerList.Encode, PeerList{Records: [][]byte{{1}, {2, 3}}, Words: [][]byte{{4}}}.Encode())
}

func FuzzRounds(f *testing.F) {
	asked := []Range{{From: 1, To: 2}, {From: 1, To: 1}}
	decode := func(b []byte) ([]RangeAnswer, error) { return DecodeRounds(b, asked) }
	exact(f, decode, EncodeRounds, EncodeRounds(testAnswers()))
}

func FuzzHeaders(f *testing.F) {
	exact(f, DecodeHeaders, EncodeHeaders, EncodeHeaders([]SignedHeader{testEquivocation().A, testEquivocation().B}))
}

func FuzzHoldings(f *testing.F) {
	decode := func(b []byte) ([]PartSet, error) { return DecodeHoldings(b, 2) }
	exact(f, decode, EncodeHoldings, EncodeHoldings([]PartSet{AllParts(MaxParts), {}}))
}

// FuzzPart stops before the hashes, which no mutated input fits.
func FuzzPart(f *testing.F) {
	blob, tree, _ := testBlob(f, 3*PartSize+5)
	exact(f, decodePart, Part.Encode, partOf(blob, tree, 3).Encode(), Part{Tree: []byte{1, 0, 0, 0, 0, 0, 0, 0}, Bytes: []byte{1}}.Encode())
}

// FuzzOpenPart takes no part but those that were cut.
func FuzzOpenPart(f *testing.F) {
	blob, tree, digest := testBlob(f, PartSize+5)
	f.Add(partOf(blob, tree, 1).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := OpenPart(digest, b)
		if err == nil && !bytes.Equal(b, partOf(blob, tree, p.Index).Encode()) {
			t.Error("another part was accepted")
		}
	})
}

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
		if m.Equivocation != nil && !bytes.Equal(EncodeEquivocation(*m.Equivocation), b) {
			t.Error("another encoding of equivocation proof was accepted")
		}
	})
}

// FuzzHeartbeat stops before the signature, which no mutated input passes.
func FuzzHeartbeat(f *testing.F) {
	f.Add(EncodeHeartbeat(testKey(1), testRun, testHeartbeat())[messageHead:])
	f.Add(EncodeHeartbeat(testKey(1), testRun, largestHeartbeat(MaxFragments))[messageHead:])
	f.Add(seal(nil, testKey(1), domainHeartbeat, testRun, map[int]any{16: 20, 17: true, 99: []string{"more"}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var heartbeat Heartbeat
		signed, _, err := cut(b)
		if err != nil || UnmarshalOpen(signed, &heartbeat) != nil || heartbeat.Validate() != nil {
			return
		}
		var again Heartbeat
		if err := UnmarshalOpen(Marshal(heartbeat), &again); err != nil || !bytes.Equal(Marshal(again), Marshal(heartbeat)) {
			t.Errorf("%+v came back as %+v, %v", heartbeat, again, err)
		}
		_ = Verify(heartbeat.Author, domainHeartbeat, testRun, signed, Signature{})
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
