package wire

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// messages returns one gossip message of each kind, and a header with its
// payload.
func messages() map[string][]byte {
	s := SignHeader(testKey(1), testRun, testHeader())
	return map[string][]byte{
		"header":   EncodeHeader(s, nil),
		"inline":   EncodeHeader(s, []byte("payload")),
		"beat":     EncodeBeat(testKey(1), testRun, testBeat()),
		"evidence": EncodeEvidence(testEvidence()),
	}
}

func TestOpenHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 1, MaxInline+1).Draw(t, "payload")
		h := drawHeader(t)
		h.Size, h.Payload = uint32(len(payload)), Sum(payload)
		s := SignHeader(testKey(1), testRun, h)
		m, err := Open(testRun, EncodeHeader(s, payload))
		if err != nil || *m.Header != s || m.Beat != nil || m.Evidence != nil {
			t.Fatalf("%v came back as %v, %v", s, m, err)
		}
		if len(payload) > MaxInline {
			payload = nil // stays out of the message
		}
		if !bytes.Equal(m.Inline, payload) {
			t.Fatalf("inline %x, want %x", m.Inline, payload)
		}
	})
}

func TestOpenDoesNotShareMemory(t *testing.T) {
	b := messages()["inline"]
	m, err := Open(testRun, b)
	ok(t, err)
	clear(b)
	if string(m.Inline) != "payload" {
		t.Errorf("inline became %q", m.Inline)
	}
}

func TestAnyFlippedBitIsRefused(t *testing.T) {
	for name, b := range messages() {
		for i := range 8 * len(b) {
			if _, err := Open(testRun, flipped(b, i)); err == nil {
				t.Errorf("%s: accepted with bit %d of %d inverted", name, i, 8*len(b))
			}
		}
	}
}

func TestAnyOtherLengthIsRefused(t *testing.T) {
	for name, b := range messages() {
		for n := range b {
			if name == "inline" && n == messageHead+SignedHeaderSize {
				continue // the same header without its payload is a message too
			}
			if _, err := Open(testRun, b[:n]); err == nil {
				t.Errorf("%s: accepted %d of %d bytes", name, n, len(b))
			}
		}
		if _, err := Open(testRun, append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%s: accepted with a byte after it", name)
		}
	}
}

func TestReplayInAnotherRunIsRefused(t *testing.T) {
	for _, b := range messages() {
		_, err := Open(otherRun, b)
		wantErr(t, err, ErrSignature)
	}
}

func TestAnotherKindIsRefused(t *testing.T) {
	for name, b := range messages() {
		for kind := range 256 {
			if byte(kind) == b[1] {
				continue
			}
			c := bytes.Clone(b)
			c[1] = byte(kind)
			if _, err := Open(testRun, c); err == nil {
				t.Errorf("%s: accepted as kind %d", name, kind)
			}
		}
	}
}

func TestAnotherVersionIsNamed(t *testing.T) {
	b := messages()["beat"]
	b[0]++
	_, err := Open(testRun, b)
	wantErr(t, err, ErrVersion)
}

func TestOpenLimits(t *testing.T) {
	for _, n := range []int{0, 1, MaxMessage + 1} {
		_, err := Open(testRun, make([]byte, n))
		wantErr(t, err, ErrSize)
	}
	_, err := Open(testRun, []byte{Version, 99})
	wantErr(t, err, ErrKind)
}

func TestInlineOverItsLimitIsRefused(t *testing.T) {
	payload := make([]byte, MaxInline+1)
	h := testHeader()
	h.Size, h.Payload = uint32(len(payload)), Sum(payload)
	b := append(EncodeHeader(SignHeader(testKey(1), testRun, h), nil), payload...)
	_, err := Open(testRun, b)
	wantErr(t, err, ErrSize)
}

func TestCheckPayload(t *testing.T) {
	h := testHeader()
	ok(t, h.CheckPayload([]byte("payload")))
	wantErr(t, h.CheckPayload([]byte("payloaD")), ErrInvalid)
	wantErr(t, h.CheckPayload([]byte("payload.")), ErrSize)
}

func TestEvidenceOrderDoesNotMatter(t *testing.T) {
	e := testEvidence()
	if !bytes.Equal(EncodeEvidence(e), EncodeEvidence(Evidence{A: e.B, B: e.A})) {
		t.Error("one pair has two encodings")
	}
	m, err := Open(testRun, EncodeEvidence(e))
	ok(t, err)
	if *m.Evidence != e {
		t.Errorf("came back as %v", *m.Evidence)
	}
	swapped := e.A.Append(e.B.Append([]byte{Version, byte(KindEvidence)}))
	_, err = Open(testRun, swapped)
	wantErr(t, err, ErrInvalid)
}

func TestEvidenceMustProve(t *testing.T) {
	sign := func(key byte, change func(*Header)) SignedHeader {
		h := testHeader()
		change(&h)
		return SignHeader(testKey(key), testRun, h)
	}
	a := sign(1, func(*Header) {})
	for name, b := range map[string]SignedHeader{
		"the same header":  a,
		"another author":   sign(2, func(h *Header) { h.Tokens++ }),
		"another fragment": sign(1, func(h *Header) { h.Fragment++ }),
		"another round":    sign(1, func(h *Header) { h.Round++ }),
	} {
		if err := (Evidence{A: a, B: b}).Check(testRun); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantErr(t, err, ErrInvalid)
		}
	}
	forged := sign(1, func(h *Header) { h.Tokens++ })
	forged.Sig[0]++
	wantErr(t, Evidence{A: a, B: forged}.Check(testRun), ErrSignature)
	wantErr(t, Evidence{A: forged, B: a}.Check(testRun), ErrSignature)
}
