package hello

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

func TestRefusalsNameTheFieldAndTheRemedy(t *testing.T) {
	for _, c := range []struct {
		field  string
		change func(*Record)
		says   []string
	}{
		{FieldProtocol, func(r *Record) { r.Protocol, r.Agent = Protocol+1, "atoll/9" }, []string{"2 (atoll/0.1.0)", "3 (atoll/9)", "this node is the older one: install the peer's version of atoll here"}},
		{FieldProtocol, func(r *Record) { r.Protocol, r.Minor = Protocol-1, 7 }, []string{"peer has 1.0..1.7 (atoll/0.1.0)", "the peer is the older one: install this version of atoll there"}},
		{FieldProtocol, func(r *Record) { r.Minor, r.LeastMinor = 2, 1 }, []string{"we have 2 (", "peer has 2.1..2.2 (", "this node is the older one"}},
		{FieldProtocol, func(r *Record) { r.Minor, r.LeastMinor = 2, 2 }, []string{"peer has 2.2 (", "this node is the older one"}},
		{FieldProtocol, func(r *Record) { r.Protocol, r.Agent = Protocol+1, "" }, []string{"peer has 3:", "install"}},
		{FieldRun, func(r *Record) { r.Run = wire.RunID{9} }, []string{"0102030000", "0900000000", "another run", "link"}},
		{FieldAuthor, func(r *Record) { r.Author = testRecord(1).Author }, []string{"one key", "--dir"}},
		{FieldCodecs, func(r *Record) { r.Codecs = []uint8{2, 3} }, []string{"[1 4]", "[2 3]", "codec"}},
	} {
		b := testRecord(2)
		c.change(&b)
		_, err := Negotiate(testRecord(1), b)
		var refusal *Refusal
		if !errors.As(err, &refusal) || refusal.Field != c.field {
			t.Errorf("%s: %v", c.field, err)
			continue
		}
		for _, part := range c.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not say %q", err, part)
			}
		}
	}
	if text := (&Refusal{Field: "new"}).Error(); !strings.HasPrefix(text, "new: ") {
		t.Errorf("a refusal over an unknown field: %q", text)
	}
}

func TestNegotiateIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRecord(t, 1), drawRecord(t, rapid.ByteRange(1, 2).Draw(t, "key"))
		there, err := Negotiate(a, b)
		back, errBack := Negotiate(b, a)
		if (err == nil) != (errBack == nil) || !reflect.DeepEqual(there, back) {
			t.Fatalf("%v, %v one way and %v, %v the other", there, err, back, errBack)
		}
		if err == nil {
			return
		}
		var r, s *Refusal
		if !errors.As(err, &r) || !errors.As(errBack, &s) || *r != (Refusal{s.Field, s.Theirs, s.Ours, -s.Ahead}) {
			t.Fatalf("refusals %v and %v do not mirror each other", err, errBack)
		}
	})
}

// A newer minor version is negotiated down to the newest that the older node speaks, if the newer
// one still speaks that.
func TestNewerMinorIsNegotiatedDown(t *testing.T) {
	for _, c := range []struct {
		least, newest uint32
		want          int // -1: refused
	}{{0, 0, 0}, {0, 3, 3}, {3, 3, 3}, {2, 9, 4}, {4, 4, 4}, {5, 5, -1}, {5, 9, -1}} {
		a, b := testRecord(1), testRecord(2)
		a.LeastMinor, a.Minor = 0, 4
		b.LeastMinor, b.Minor = c.least, c.newest
		s, err := Negotiate(a, b)
		if c.want < 0 {
			var refusal *Refusal
			if !errors.As(err, &refusal) || refusal.Ahead != -1 {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if err != nil || int(s.Minor) != c.want {
			t.Errorf("%+v: %+v, %v", c, s, err)
		}
	}
}

// What is agreed on is in both ranges, and nothing newer is.
func TestMinorIsTheNewestOfBoth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawRecord(t, 1), drawRecord(t, 2)
		b.Protocol, b.Run, b.Codecs = a.Protocol, a.Run, a.Codecs
		speaks := func(r Record, minor uint32) bool { return r.LeastMinor <= minor && minor <= r.Minor }
		s, err := Negotiate(a, b)
		for minor := range uint32(10) {
			both := speaks(a, minor) && speaks(b, minor)
			if both && (err != nil || s.Minor < minor) || err == nil && minor == s.Minor && !both {
				t.Fatalf("%d..%d and %d..%d come to %d, %v", a.LeastMinor, a.Minor, b.LeastMinor, b.Minor, s.Minor, err)
			}
		}
	})
}
