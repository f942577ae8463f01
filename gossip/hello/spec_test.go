package hello_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"github.com/fxamacker/cbor/v2"
)

// One test for each clause of gossip/wire/SPEC.md that is about records.
func TestSpec(t *testing.T) {
	spectest.Run(t, "H", map[string]spectest.Clause{
		"H-1": specRecord, "H-1.2": specDeterministic, "H-1.3": specOptional, "H-2": specSigned, "H-2.2": specSignedSize, "H-2.3": specKept, "H-3": specForged,
		"H-4": specUnknownKeys, "H-4.2": specOtherEncodings, "H-4.3": specRefusedEncodings, "H-5": specLongStrings, "H-5.2": specPrintable,
		"H-6": specNumbers, "H-7": specDevices, "H-8": specAddrs, "H-9": specRole, "H-9.2": specObserver, "H-9.3": specLearner,
		"H-9.4": specOtherWords, "H-10": specSessions, "H-10.2": specRefusals, "H-11": specNames,
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

// majors are the major types of CBOR that a type of the table of records has.
var majors = map[string]byte{"uint32": 0, "uint64": 0, "int64": 0, "bytes": 2, "text": 3, "array": 4, "float": 7}

func specRecord(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	rest := raw[:len(raw)-64]
	rows := s.Table(t, "record")
	if rest[0] != 0xa0|byte(len(rows)) {
		t.Errorf("a map of %x, the text has %d keys", rest[0], len(rows))
	}
	rest = rest[1:]
	for i, row := range rows {
		var key int
		var value cbor.RawMessage
		var err error
		for _, v := range []any{&key, &value} {
			if rest, err = cbor.UnmarshalFirst(rest, v); err != nil {
				t.Fatal(err)
			}
		}
		word := strings.FieldsFunc(row[2], func(c rune) bool { return c == ' ' || c == ',' })[0]
		if major, known := majors[word]; strconv.Itoa(key) != row[0] || key != i+1 || !known || value[0]>>5 != major {
			t.Errorf("key %d has %x, by the text %v", key, []byte(value), row)
		}
	}
	r := record(t, s)
	device := hello.Device{Kind: "cpu", Name: "Xeon (AVX-512)", Count: 2, MemoryBytes: 8 << 30}
	if r.Protocol != hello.Protocol || r.Seq != 2 || r.TokensPerSecond != 12000 || r.Author != wire.PeerID(s.Hex(t, "author")) || len(r.Addrs) != 2 || r.Devices[0] != device {
		t.Errorf("decoded %+v", r)
	}
}

func specOptional(t *testing.T, s *spectest.Spec) {
	without := record(t, s)
	for _, row := range s.Table(t, "record optional") {
		r := without
		switch row[1] {
		case "relays":
			r.Relays = true
		case "near":
			r.Near = true
		case "stateless":
			r.Stateless = true
		case "visits":
			r.Visits = true
		case "certificate":
			specCertificate(t, s, row)
			continue
		case "name":
			specNamed(t, s, row)
			continue
		}
		key, err := strconv.Atoi(row[0])
		if err != nil {
			t.Fatal(err)
		}
		// The map has one entry more, and its last is the key with true.
		want := slices.Concat([]byte{0xaf}, wire.Marshal(without)[1:], []byte{byte(key), 0xf5})
		if key < 24 && !bytes.Equal(wire.Marshal(r), want) {
			t.Errorf("%s: %x, want %x", row[1], wire.Marshal(r), want)
		}
		if err := open(sign(t, s, r.Run, wire.Marshal(r))); err != nil {
			t.Errorf("%s: %v", row[1], err)
		}
	}
}

func specNamed(t *testing.T, s *spectest.Spec, row []string) {
	r := record(t, s)
	r.Name = "lab 3"
	raw := wire.Marshal(r)
	if !bytes.HasSuffix(raw, []byte("\x14\x65lab 3")) || row[0] != "20" {
		t.Errorf("row %v: %x", row, raw)
	}
	if err := open(sign(t, s, r.Run, raw)); err != nil {
		t.Error(err)
	}
}

// Every character that is printable (H-5.2) is tried, alone and in a name.
func specNames(t *testing.T, _ *spectest.Spec) {
	for c := rune(0); c <= unicode.MaxRune; c++ {
		letter := unicode.In(c, unicode.L, unicode.Nd) && !strings.ContainsRune("\u115f\u1160\u3164\uffa0", c) // the ignorable ones among them
		if got := hello.CheckName("n" + string(c) + "n"); (got == nil) != (letter || strings.ContainsRune("-_. ", c)) {
			t.Errorf("%U: %v", c, got)
		}
		if got := hello.CheckName(string(c)); (got == nil) != letter {
			t.Errorf("%U alone: %v", c, got)
		}
	}
	for name, good := range map[string]bool{
		"": false, strings.Repeat("n", 32): true, strings.Repeat("n", 33): false, " n": false, "n ": false, "n  n": false,
		"12D3Koo": false, "12D3Ko": true, "abcdef0": true, "abcdef01": false, "ABCDEF01": false, "abcdef01x": true,
		"n abcdef01": false, "n-abcdef01": false, "abcdef01.n": false, "n_12D3Koo": false, "n abcdef0": true,
	} {
		if err := hello.CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A certificate travels as the bytes that it is, whatever they are: what they are worth is M-6.
func specCertificate(t *testing.T, s *spectest.Spec, row []string) {
	r := record(t, s)
	r.Certificate = s.Hex(t, "member certificate")
	raw := wire.Marshal(r)
	if key := []byte{0x12, 0x58, 0xcd}; row[0] != "18" || !bytes.HasSuffix(raw, slices.Concat(key, r.Certificate)) {
		t.Errorf("row %v: %x", row, raw)
	}
	signed, err := hello.Parse(sign(t, s, r.Run, raw))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := signed.Open(); err != nil || !bytes.Equal(got.Certificate, r.Certificate) {
		t.Errorf("opened %x, %v", got.Certificate, err)
	}
	r.Certificate = make([]byte, wire.MaxCertificate+1)
	if err := open(sign(t, s, r.Run, wire.Marshal(r))); !errors.Is(err, hello.ErrInvalid) {
		t.Errorf("a longer one: %v", err)
	}
}

// The encoder of another hand, in its mode of that name, gives the same bytes.
func specDeterministic(t *testing.T, s *spectest.Spec) {
	mode, err := cbor.CoreDetEncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	r := record(t, s)
	signed := s.Hex(t, "record")
	if got := wire.Marshal(r); !bytes.Equal(got, signed[:len(signed)-64]) {
		t.Errorf("encoded %x", got)
	}
	for _, rate := range []float64{0, 0.5, 65504, 65505, 0.1, 1e15} {
		r := r
		r.TokensPerSecond, r.Seq = rate, uint64(rate)
		if rate == 0 {
			r.Role, r.Trainer, r.Precision, r.Devices = "observer", "", "", nil
		}
		var loose map[int]any
		if err := cbor.Unmarshal(wire.Marshal(r), &loose); err != nil {
			t.Fatal(err)
		}
		want, err := mode.Marshal(loose)
		if got := wire.Marshal(r); err != nil || !bytes.Equal(got, want) {
			t.Errorf("encoded %x, by the standard %x, %v", got, want, err)
		}
	}
	if b := wire.Marshal(hello.Record{}); !bytes.Contains(b, []byte{7, 0x80, 8}) {
		t.Errorf("no devices are not an empty array: %x", b)
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
}

func specSignedSize(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "limits", "MaxRecord"))
	for n, want := range map[int]error{0: wire.ErrSize, 64: wire.ErrSize, 65: nil, most: nil, most + 1: wire.ErrSize} {
		if _, err := hello.Parse(make([]byte, n)); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	signed := hello.Signed{Bytes: make([]byte, most-63)}
	if _, err := signed.Open(); !errors.Is(err, wire.ErrSize) {
		t.Errorf("a byte more, opened: %v", err)
	}
}

// With a key that this version does not know, and a longer integer than needed.
func specKept(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "record")
	b := raw[:len(raw)-64]
	more := sign(t, s, record(t, s).Run, slices.Concat([]byte{b[0] + 1}, b[1:2], []byte{0x18, 1}, b[3:], []byte{0x18, 99, 0}))
	signed, err := hello.Parse(more)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signed.Open(); err != nil || !bytes.Equal(signed.Encode(), more) {
		t.Errorf("%v; passed on as %x", err, signed.Encode())
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
	r = record(t, s)
	b := wire.Marshal(r)
	for _, row := range s.Table(t, "domains")[:4] {
		sig := wire.Sign(ed25519.NewKeyFromSeed(s.Hex(t, "seed")), row[0], r.Run, b)
		if err := open(slices.Concat(b, sig[:])); !errors.Is(err, wire.ErrSignature) {
			t.Errorf("signed as %s: %v", row[0], err)
		}
	}
}

// changedMap signs the example's map with other bytes, and opens it.
func changedMap(t testing.TB, s *spectest.Spec, change func(b []byte) []byte) error {
	raw := s.Hex(t, "record")
	return open(sign(t, s, record(t, s).Run, change(raw[:len(raw)-64:len(raw)-64])))
}

// withKey is the map b with one more key and value.
func withKey(b []byte, more ...byte) []byte {
	return slices.Concat([]byte{b[0] + 1}, b[1:], more)
}

func specUnknownKeys(t *testing.T, s *spectest.Spec) {
	for name, more := range map[string][]byte{"a number": {0x18, 99, 0}, "a list": {0x18, 99, 0x82, 1, 0x61, 'x'}, "of text": {0x61, 'x', 0xf6}} {
		if err := changedMap(t, s, func(b []byte) []byte { return withKey(b, more...) }); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func specOtherEncodings(t *testing.T, s *spectest.Spec) {
	for name, change := range map[string]func(b []byte) []byte{
		"a longer integer": func(b []byte) []byte { return slices.Concat(b[:2], []byte{0x18, 1}, b[3:]) },
		"a longer length":  func(b []byte) []byte { return slices.Concat([]byte{0xb8, b[0] & 31}, b[1:]) },
		"a longer float": func(b []byte) []byte {
			return bytes.Replace(b, []byte{8, 0xf9, 0x71, 0xdc}, []byte{8, 0xfa, 0x46, 0x3b, 0x80, 0}, 1)
		},
		"another order": func(b []byte) []byte { return slices.Concat(b[:1], b[3:], b[1:3]) },
	} {
		plain := s.Hex(t, "record")
		err := changedMap(t, s, func(b []byte) []byte {
			if b = change(b); bytes.Equal(b, plain[:len(plain)-64]) {
				t.Fatalf("%s: nothing is changed", name)
			}
			return b
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func specRefusedEncodings(t *testing.T, s *spectest.Spec) {
	const free = 21 // the first key that the tables do not have
	keys := func(b []byte, n int) []byte {
		b = slices.Concat([]byte{0xb8, byte(n)}, b[1:])
		for key := free; key < free+n-len(s.Table(t, "record")); key++ {
			b = append(b, wire.Marshal(key)...)
			b = append(b, 0)
		}
		return b
	}
	nested := func(n int) []byte { // in the map, which is one level
		return append(append([]byte{0x18, 99}, bytes.Repeat([]byte{0x81}, n-1)...), 0)
	}
	depth := int(s.Number(t, "cbor", "nesting")) // an array over the limit makes no record of MaxRecord
	for name, change := range map[string]func(b []byte) []byte{
		"a key twice":          func(b []byte) []byte { return withKey(b, 1, 1) },
		"an unknown key twice": func(b []byte) []byte { return withKey(withKey(b, 0x18, 99, 0), 0x18, 99, 0) },
		"an indefinite length": func(b []byte) []byte { return slices.Concat([]byte{0xbf}, b[1:], []byte{0xff}) },
		"bytes that follow":    func(b []byte) []byte { return append(b, 0) },
		"a tag":                func(b []byte) []byte { return slices.Concat(b[:2], []byte{0xc1}, b[2:]) },
		"65 keys":              func(b []byte) []byte { return keys(b, 65) },
		"deeper nesting":       func(b []byte) []byte { return withKey(b, nested(depth+1)...) },
	} {
		if err := changedMap(t, s, change); !errors.Is(err, wire.ErrEncoding) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(b []byte) []byte{
		"64 keys":         func(b []byte) []byte { return keys(b, 64) },
		"the most levels": func(b []byte) []byte { return withKey(b, nested(depth)...) },
	} {
		if err := changedMap(t, s, change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// texts are changes that put the text into each field of H-5.
func texts(text string) map[string]func(r *hello.Record) {
	return map[string]func(r *hello.Record){
		"role":        func(r *hello.Record) { r.Protocol, r.Role = 3, text }, // of another protocol any word will do
		"trainer":     func(r *hello.Record) { r.Protocol, r.Trainer = 3, text },
		"precision":   func(r *hello.Record) { r.Protocol, r.Precision = 3, text },
		"agent":       func(r *hello.Record) { r.Agent = text },
		"device kind": func(r *hello.Record) { r.Devices[0].Kind = text },
		"device name": func(r *hello.Record) { r.Devices[0].Name = text },
	}
}

func specLongStrings(t *testing.T, s *spectest.Spec) {
	verdicts(t, s, nil, texts(strings.Repeat("x", 64)))
	verdicts(t, s, nil, texts(strings.Repeat("ä", 32)))
	verdicts(t, s, hello.ErrInvalid, texts(strings.Repeat("x", 65)))
	verdicts(t, s, hello.ErrInvalid, texts(strings.Repeat("ä", 32)+"x"))
}

func specPrintable(t *testing.T, s *spectest.Spec) {
	verdicts(t, s, nil, texts("Ä 漢 e\u0301 ½ — € 😀"))
	for _, text := range []string{"a\x1b[2J", "\n", "\t", "\x7f", "\u00a0", "\u2028", "\u200b", "\u202e", "\x00", "\ue000", "\U000e0041"} {
		verdicts(t, s, hello.ErrInvalid, texts(text))
	}
	for at := range 256 { // of an example in ASCII each byte in turn is none of UTF-8
		err := changedMap(t, s, func(b []byte) []byte {
			return bytes.Replace(b, []byte("atoll/"), []byte{'a', byte(at), 'o', 'l', 'l', '/'}, 1)
		})
		if want := at >= 0x20 && at < 0x7f; (err == nil) != want {
			t.Errorf("byte %02x: %v", at, err)
		}
	}
}

func specNumbers(t *testing.T, s *spectest.Spec) {
	for name, field := range map[string]func(r *hello.Record) *float64{
		"tokens": func(r *hello.Record) *float64 { return &r.TokensPerSecond },
	} {
		for v, want := range map[float64]error{0: nil, 1e15: nil, -1: hello.ErrInvalid, 1.1e15: hello.ErrInvalid, math.Inf(1): hello.ErrInvalid} {
			verdicts(t, s, want, map[string]func(r *hello.Record){name: func(r *hello.Record) { *field(r) = v }})
		}
		verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){name: func(r *hello.Record) { *field(r) = math.NaN() }})
	}
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){"started": func(r *hello.Record) { r.StartedMs = -1 }})
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
		"empty": addrs("", 1), "a tab": addrs("/dns4/a\tb", 1),
		"not printable": addrs("/dns4/\u200b.org/tcp/4001", 1),
	})
}

func specRole(t *testing.T, s *spectest.Spec) {
	role := func(word string) func(r *hello.Record) {
		return func(r *hello.Record) { r.Role, r.Trainer = word, map[string]string{"learner": "builtin"}[word] }
	}
	verdicts(t, s, nil, map[string]func(r *hello.Record){"learner": role("learner"), "observer": role("observer")})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){"judge": role("judge"), "none": role(""), "Learner": role("Learner")})
}

func specObserver(t *testing.T, s *spectest.Spec) {
	verdicts(t, s, nil, map[string]func(r *hello.Record){
		"none":                  func(r *hello.Record) { r.Role, r.Trainer = "observer", "" },
		"none and no precision": func(r *hello.Record) { r.Role, r.Trainer, r.Precision = "observer", "", "" },
	})
	verdicts(t, s, hello.ErrInvalid, map[string]func(r *hello.Record){
		"builtin": func(r *hello.Record) { r.Role = "observer" },
	})
}

func specLearner(t *testing.T, s *spectest.Spec) {
	good, bad := map[string]func(r *hello.Record){}, map[string]func(r *hello.Record){}
	for _, word := range []string{"builtin", "external"} {
		good[word] = func(r *hello.Record) { r.Trainer = word }
	}
	for _, word := range []string{"", "python"} {
		bad["trainer "+word] = func(r *hello.Record) { r.Trainer = word }
	}
	verdicts(t, s, nil, good)
	verdicts(t, s, hello.ErrInvalid, bad)
}

func specOtherWords(t *testing.T, s *spectest.Spec) {
	verdicts(t, s, nil, map[string]func(r *hello.Record){
		"role":     func(r *hello.Record) { r.Protocol, r.Role = 3, "judge" },
		"trainer":  func(r *hello.Record) { r.Protocol, r.Trainer = 3, "python" },
		"observer": func(r *hello.Record) { r.Protocol, r.Role = 3, "observer" },
	})
}

func specSessions(t *testing.T, s *spectest.Spec) {
	a := record(t, s)
	b := a
	b.Author[0] ^= 1
	for name, c := range map[string]struct {
		ok     bool
		change func(r *hello.Record)
	}{
		"nothing else": {true, func(*hello.Record) {}},
		"all else": {true, func(r *hello.Record) {
			*r = hello.Record{Protocol: r.Protocol, Run: r.Run, Author: r.Author, Seq: 99, Role: "observer", StartedMs: 7}
		}},
		"protocol": {false, func(r *hello.Record) { r.Protocol++ }},
		"run":      {false, func(r *hello.Record) { r.Run[31] ^= 1 }},
		"author":   {false, func(r *hello.Record) { r.Author = a.Author }},
	} {
		other := b
		c.change(&other)
		for _, pair := range [][2]hello.Record{{a, other}, {other, a}} {
			if err := hello.Negotiate(pair[0], pair[1]); (err == nil) != c.ok {
				t.Errorf("%s differs: %v", name, err)
			}
		}
	}
}

func specRefusals(t *testing.T, s *spectest.Spec) {
	a := record(t, s)
	other := a
	other.Author[0] ^= 1
	b := other
	for _, c := range []struct {
		field  string
		change func()
	}{
		{"author", func() { b.Author = a.Author }},
		{"run", func() { b.Run[0] ^= 1 }},
		{"protocol", func() { b.Protocol++ }},
	} {
		c.change() // and all before: the earlier in order is named
		for _, pair := range [][2]hello.Record{{a, b}, {b, a}} {
			var refusal *hello.Refusal
			if err := hello.Negotiate(pair[0], pair[1]); !errors.As(err, &refusal) || refusal.Field != c.field {
				t.Errorf("refused with %v, want %s", err, c.field)
			}
		}
	}
}
