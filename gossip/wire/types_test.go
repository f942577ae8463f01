package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestTextIsAllOfTheBytes(t *testing.T) {
	id := PeerIDOf(testKey(1))
	text, err := json.Marshal(map[PeerID]Digest{id: testDigest("d")})
	ok(t, err)
	var back map[PeerID]Digest
	ok(t, json.Unmarshal(text, &back))
	if back[id] != testDigest("d") {
		t.Fatalf("%s came back as %v", text, back)
	}
}

func TestTextOfAnotherLengthIsRefused(t *testing.T) {
	var (
		p PeerID
		d Digest
		r RunID
		s Signature
	)
	for _, text := range []string{"", "00", strings.Repeat("0", 63), strings.Repeat("0", 65), strings.Repeat("z", 64), strings.Repeat("z", 128)} {
		for _, err := range []error{p.UnmarshalText([]byte(text)), d.UnmarshalText([]byte(text)), r.UnmarshalText([]byte(text)), s.UnmarshalText([]byte(text))} {
			if err == nil {
				t.Errorf("%q was accepted", text)
			}
		}
	}
	if p != (PeerID{}) || s != (Signature{}) {
		t.Error("a refused text left bytes behind")
	}
}

func TestShortName(t *testing.T) {
	d := Digest{0xab, 0xcd, 0xef, 0x01, 0x23, 0x45}
	if d.String() != "abcdef0123" {
		t.Errorf("short name %q", d)
	}
}

func TestSetDigestIgnoresOrder(t *testing.T) {
	a, b := testDigest("a"), testDigest("b")
	ids := []Digest{b, a}
	if SetDigest(ids) != SetDigest([]Digest{a, b}) {
		t.Error("order changes the digest")
	}
	if ids[0] != b {
		t.Error("the argument was sorted in place")
	}
	if SetDigest([]Digest{a}) == SetDigest([]Digest{a, b}) {
		t.Error("a subset has the same digest")
	}
	if !SetDigest(nil).IsZero() {
		t.Error("the empty set's digest is not zero")
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	for got, want := range map[string]string{
		State(0).String():        "state 0",
		State(9).String():        "state 9",
		Leaving.String():         "leaving",
		RequestKind(0).String():  "request 0",
		RequestKind(99).String(): "request 99",
		GetChunk.String():        "chunk",
		Status(0).String():       "status 0",
		Status(5).String():       "status 5",
		Refused.String():         "refused",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
