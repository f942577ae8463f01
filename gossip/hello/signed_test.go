package hello

import (
	"bytes"
	"crypto/ed25519"
	"reflect"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

func sign(t testing.TB, key ed25519.PrivateKey, r Record) Signed {
	t.Helper()
	s, err := Sign(key, r)
	ok(t, err)
	return s
}

func TestRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t, 1)
		signed, err := Sign(testKey(1), want)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := Parse(signed.Encode())
		if err != nil || !reflect.DeepEqual(parsed, signed) {
			t.Fatalf("%v parsed as %v, %v", signed, parsed, err)
		}
		got, err := parsed.Open()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

func TestSignSetsAuthor(t *testing.T) {
	r, err := sign(t, testKey(2), testRecord(1)).Open()
	ok(t, err)
	if r.Author != wire.PeerIDOf(testKey(2)) {
		t.Errorf("author %v", r.Author)
	}
}

func TestSignValidates(t *testing.T) {
	r := testRecord(1)
	r.Role = "captain"
	_, err := Sign(testKey(1), r)
	wantErr(t, err, ErrInvalid)
}

func TestRecordTampered(t *testing.T) {
	b := sign(t, testKey(1), testRecord(1)).Encode()
	open := func(b []byte) error {
		s, err := Parse(b)
		if err != nil {
			return err
		}
		_, err = s.Open()
		return err
	}
	ok(t, open(b))
	for i := range 8 * len(b) {
		c := bytes.Clone(b)
		c[i/8] ^= 1 << (i % 8)
		if open(c) == nil {
			t.Errorf("accepted with bit %d of %d inverted", i, 8*len(b))
		}
	}
	for n := range b {
		if open(b[:n]) == nil {
			t.Errorf("accepted %d of %d bytes", n, len(b))
		}
	}
}

func TestRecordSize(t *testing.T) {
	s := sign(t, testKey(1), largestRecord())
	t.Logf("a record with every device name at its longest: %d bytes of %d", len(s.Encode()), wire.MaxRecord)
	r := largestRecord()
	for range MaxAddrs {
		r.Addrs = append(r.Addrs[:0:0], append(r.Addrs, "/dns4/"+strings.Repeat("d", 170)+"/tcp/4001")...)
	}
	r.Addrs = r.Addrs[:MaxAddrs]
	_, err := Sign(testKey(1), r)
	wantErr(t, err, wire.ErrSize)
}

// FuzzRecord holds the decoder to no panic, and what it accepts to Validate.
func FuzzRecord(f *testing.F) {
	f.Add(sign(f, testKey(1), testRecord(1)).Encode())
	f.Add(sign(f, testKey(1), largestRecord()).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		_, _ = s.Open()
		var r Record
		if wire.UnmarshalOpen(s.Bytes, &r) != nil || r.Validate() != nil {
			return // past here no mutated input has a signature
		}
		again := Signed{Bytes: wire.Marshal(r)}
		again.Sig = wire.Sign(testKey(1), domain, r.Run, again.Bytes)
		if _, err := Sign(testKey(1), r); err != nil && len(again.Encode()) <= wire.MaxRecord {
			t.Errorf("valid, but cannot be signed: %v", err)
		}
		_ = Negotiate(testRecord(1), r)
		Plan(r, 4, 128, 1<<20)
	})
}
