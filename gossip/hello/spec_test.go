package hello_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// One test for each clause of gossip/wire/SPEC.md that is about records.
func TestSpec(t *testing.T) {
	spectest.Run(t, "H", map[string]spectest.Clause{
		"H-1": specRecord, "H-2": specSigned, "H-3": specForged, "H-4": specOpen, "H-5": specStrings, "H-6": specNumbers,
		"H-7": specDevices, "H-8": specAddrs, "H-9": specWords, "H-10": specPrecision, "H-11": specRefusals, "H-12": specSession,
	})
}

// record is the example, opened.
func record(t testing.TB, s *spectest.Spec) hello.Record {
	t.Helper()
	signed, err := hello.Parse(s.Hex(t, "record"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := signed.Open()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sign signs CBOR as the author of the example, by the text.
func sign(t testing.TB, s *spectest.Spec, run wire.RunID, b []byte) []byte {
	domain := s.Table(t, "domains")[4][0]
	stated := slices.Concat([]byte{byte(len(domain))}, []byte(domain), run[:], b)
	return slices.Concat(b, ed25519.Sign(ed25519.NewKeyFromSeed(s.Hex(t, "seed")), stated))
}

func open(b []byte) error {
	signed, err := hello.Parse(b)
	if err != nil {
		return err
	}
	_, err = signed.Open()
	return err
}

// judge opens the example with a change, signed.
func judge(t testing.TB, s *spectest.Spec, change func(r *hello.Record)) error {
	r := record(t, s)
	change(&r)
	return open(sign(t, s, r.Run, wire.Marshal(r)))
}

// verdicts fails unless each change is taken, or each refused with want.
func verdicts(t *testing.T, s *spectest.Spec, want error, changes map[string]func(r *hello.Record)) {
	t.Helper()
	for name, change := range changes {
		if err := judge(t, s, change); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
}

func specRecord(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	signed := raw[:len(raw)-64]
	r := record(t, s)
	if !bytes.Equal(wire.Marshal(r), signed) {
		t.Errorf("encoded %x", wire.Marshal(r))
	}
	rows := s.Table(t, "record")
	if signed[0] != 0xa0|byte(len(rows)) {
		t.Errorf("a map of %x, the text has %d keys", signed[0], len(rows))
	}
	if r.Protocol != 1 || r.Seq != 2 || r.TokensPerSecond != 12000 || r.Author != wire.PeerID(s.Hex(t, "author")) || len(r.Addrs) != 2 {
		t.Errorf("decoded %+v", r)
	}
}

func specSigned(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	r := record(t, s)
	if got := sign(t, s, r.Run, raw[:len(raw)-64]); !bytes.Equal(got, raw) {
		t.Errorf("signed by the text %x", got)
	}
	signed, err := hello.Sign(ed25519.NewKeyFromSeed(s.Hex(t, "seed")), r)
	if err != nil || !bytes.Equal(signed.Encode(), raw) {
		t.Errorf("signed %x, %v", signed.Encode(), err)
	}
	for _, n := range []int{64, int(s.Number(t, "limits", "MaxRecord")) + 1} {
		if _, err := hello.Parse(make([]byte, n)); !errors.Is(err, wire.ErrSize) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func specForged(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	raw[len(raw)-1] ^= 1
	if err := open(raw); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("a changed signature: %v", err)
	}
	r := record(t, s)
	r.Author[0] ^= 1
	if err := open(sign(t, s, r.Run, wire.Marshal(r))); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("another author: %v", err)
	}
	r = record(t, s)
	if err := open(sign(t, s, wire.RunID{9}, wire.Marshal(r))); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("signed for another run: %v", err)
	}
}

func specOpen(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	r, signed := record(t, s), raw[:len(raw)-64]
	more := slices.Concat([]byte{signed[0] + 1}, signed[1:], []byte{0x18, 99, 0})
	if err := open(sign(t, s, r.Run, more)); err != nil {
		t.Errorf("a key of a newer protocol: %v", err)
	}
	longer := slices.Concat(signed[:2], []byte{0x18, 1}, signed[3:])
	if err := open(sign(t, s, r.Run, longer)); err != nil {
		t.Errorf("a longer integer: %v", err)
	}
	for name, b := range map[string][]byte{
		"a key twice":          slices.Concat([]byte{signed[0] + 1}, signed[1:], []byte{1, 1}),
		"an indefinite length": slices.Concat([]byte{0xbf}, signed[1:], []byte{0xff}),
		"bytes that follow":    append(slices.Clone(signed), 0),
		"a tag":                slices.Concat(signed[:2], []byte{0xc1}, signed[2:]),
	} {
		if err := open(sign(t, s, r.Run, b)); !errors.Is(err, wire.ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func specStrings(t *testing.T, s *spectest.Spec) {
	set := func(text string) map[string]func(r *hello.Record) {
		return map[string]func(r *hello.Record){
			"agent":       func(r *hello.Record) { r.Agent = text },
			"device kind": func(r *hello.Record) { r.Devices[0].Kind = text },
			"device name": func(r *hello.Record) { r.Devices[0].Name = text },
		}
	}
	verdicts(t, s, nil, set(strings.Repeat("x", 64)))
	verdicts(t, s, nil, set("Ä 漢"))
	verdicts(t, s, hello.ErrInvalid, set(strings.Repeat("x", 65)))
	verdicts(t, s, hello.ErrInvalid, set("a\x1b[2J"))
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){
		"role":      func(r *hello.Record) { r.Role = strings.Repeat("x", 65) },
		"trainer":   func(r *hello.Record) { r.Trainer = "\n" },
		"precision": func(r *hello.Record) { r.Precision = "\t" },
	})
}

func specNumbers(t *testing.T, s *spectest.Spec) {
	for name, field := range map[string]func(r *hello.Record) *float64{
		"tokens": func(r *hello.Record) *float64 { return &r.TokensPerSecond },
		"up":     func(r *hello.Record) *float64 { return &r.UpBytesPerSecond },
		"down":   func(r *hello.Record) *float64 { return &r.DownBytesPerSecond },
	} {
		for v, want := range map[float64]error{0: nil, 1e15: nil, -1: hello.ErrInvalid, 1.1e15: hello.ErrInvalid, math.Inf(1): hello.ErrInvalid} {
			verdicts(t, s, want, map[string]func(r *hello.Record){name: func(r *hello.Record) { *field(r) = v }})
		}
		verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){name: func(r *hello.Record) { *field(r) = math.NaN() }})
	}
	verdicts(t, s, nil, map[string]func(r *hello.Record){"16 codecs": func(r *hello.Record) { r.Codecs = make([]byte, 16) }})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){
		"no codec":  func(r *hello.Record) { r.Codecs = nil },
		"17 codecs": func(r *hello.Record) { r.Codecs = make([]byte, 17) },
		"started":   func(r *hello.Record) { r.StartedMs = -1 },
	})
}

func specDevices(t *testing.T, s *spectest.Spec) {
	times := func(n int) func(r *hello.Record) {
		return func(r *hello.Record) { r.Devices = slices.Repeat(r.Devices, n) }
	}
	count := func(n int) func(r *hello.Record) { return func(r *hello.Record) { r.Devices[0].Count = n } }
	verdicts(t, s, nil, map[string]func(r *hello.Record){"16": times(16), "65536 of one": count(65536)})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){"17": times(17), "none of one": count(0), "65537 of one": count(65537)})
}

func specAddrs(t *testing.T, s *spectest.Spec) {
	addrs := func(text string, n int) func(r *hello.Record) {
		return func(r *hello.Record) { r.Addrs = slices.Repeat([]string{text}, n) }
	}
	const good = "/ip4/192.0.2.1/tcp/4001"
	name := strings.Repeat("x", 192-len("/dns4/.org/tcp/4001"))
	verdicts(t, s, nil, map[string]func(r *hello.Record){"16": addrs(good, 16), "192 bytes": addrs("/dns4/"+name+".org/tcp/4001", 1)})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){
		"17": addrs(good, 17), "193 bytes": addrs("/dns4/x"+name+".org/tcp/4001", 1), "text": addrs("192.0.2.1:4001", 1),
	})
}

func specWords(t *testing.T, s *spectest.Spec) {
	verdicts(t, s, nil, map[string]func(r *hello.Record){
		"external": func(r *hello.Record) { r.Trainer = "external" },
		"observer": func(r *hello.Record) { r.Role, r.Trainer, r.Precision = "observer", "", "" },
		"newer":    func(r *hello.Record) { r.Protocol, r.Role = 2, "judge" },
	})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){
		"role":                 func(r *hello.Record) { r.Role = "judge" },
		"trainer":              func(r *hello.Record) { r.Trainer = "" },
		"precision":            func(r *hello.Record) { r.Precision = "f64" },
		"observer that trains": func(r *hello.Record) { r.Role = "observer" },
	})
}

func specPrecision(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "precisions") {
		if class, err := hello.PrecisionClass(row[0]); err != nil || int64(class) != s.Number(t, "precisions", row[0]) {
			t.Errorf("%s has class %d, %v", row[0], class, err)
		}
	}
}

func specRefusals(t *testing.T, s *spectest.Spec) {
	a := record(t, s)
	other := a
	other.Author[0] ^= 1
	if _, err := hello.Negotiate(a, other); err != nil {
		t.Error(err)
	}
	b := other
	for _, c := range []struct {
		field  string
		change func()
	}{
		{"codecs", func() { b.Codecs = []byte{9} }},
		{"author", func() { b.Author = a.Author }},
		{"run", func() { b.Run[0] ^= 1 }},
		{"protocol", func() { b.Protocol++ }},
	} {
		c.change() // and all before: the earlier in order is named
		for _, pair := range [][2]hello.Record{{a, b}, {b, a}} {
			var refusal *hello.Refusal
			if _, err := hello.Negotiate(pair[0], pair[1]); !errors.As(err, &refusal) || refusal.Field != c.field {
				t.Errorf("refused with %v, want %s", err, c.field)
			}
		}
	}
}

func specSession(t *testing.T, s *spectest.Spec) {
	a := record(t, s)
	b := a
	b.Author[0] ^= 1
	a.Codecs, b.Codecs = []byte{4, 1, 2, 4}, []byte{3, 4, 2}
	a.UpBytesPerSecond, a.DownBytesPerSecond, b.UpBytesPerSecond, b.DownBytesPerSecond = 0, 50, 30, 40
	for _, pair := range [][2]hello.Record{{a, b}, {b, a}} {
		got, err := hello.Negotiate(pair[0], pair[1])
		if err != nil || !bytes.Equal(got.Codecs, []byte{2, 4}) || got.BytesPerSecond != 30 {
			t.Errorf("%+v, %v", got, err)
		}
	}
}
