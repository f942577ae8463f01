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
		"header":             EncodeHeader(s, nil),
		"inline":             EncodeHeader(s, []byte("payload")),
		"heartbeat":          EncodeHeartbeat(testKey(1), testRun, testHeartbeat()),
		"equivocation proof": EncodeEquivocation(testEquivocation()),
	}
}

func TestOpenHeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 1, MaxInline+1).Draw(t, "payload")
		h := drawHeader(t)
		h.Size, h.Payload = uint32(len(payload)), Sum(payload)
		s := SignHeader(testKey(1), testRun, h)
		m, err := Open(testRun, EncodeHeader(s, payload))
		if err != nil || *m.Header != s || m.Heartbeat != nil || m.Equivocation != nil {
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

// opens returns what opens each signed thing that travels.
func opens() map[string]func(b []byte) error {
	all := map[string]func(b []byte) error{
		"manifest": func(b []byte) error { _, err := OpenManifest(testRun, b); return err },
	}
	for name := range messages() {
		all[name] = func(b []byte) error { _, err := Open(testRun, b); return err }
	}
	return all
}

func TestAnyOtherBytesAreRefused(t *testing.T) {
	all := messages()
	all["manifest"] = EncodeManifest(testKey(1), testRun, testManifest())
	for name, open := range opens() {
		b := all[name]
		ok(t, open(b))
		for i := range 8 * len(b) {
			if open(flipped(b, i)) == nil {
				t.Errorf("%s: accepted with bit %d of %d inverted", name, i, 8*len(b))
			}
		}
		for n := range b {
			if name == "inline" && n == messageHead+SignedHeaderSize {
				continue // the same header without its payload is a message too
			}
			if open(b[:n]) == nil {
				t.Errorf("%s: accepted %d of %d bytes", name, n, len(b))
			}
		}
		if open(append(bytes.Clone(b), 0)) == nil {
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
