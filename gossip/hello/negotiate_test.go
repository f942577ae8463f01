package hello

import (
	"errors"
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
		{FieldProtocol, func(r *Record) { r.Protocol = Protocol - 1 }, []string{"peer has 1 (atoll/0.1.0)", "the peer is the older one: install this version of atoll there"}},
		{FieldProtocol, func(r *Record) { r.Protocol, r.Agent = Protocol+1, "" }, []string{"peer has 3:", "install"}},
		{FieldRun, func(r *Record) { r.Run = wire.RunID{9} }, []string{"0102030000", "0900000000", "another run", "link"}},
		{FieldAuthor, func(r *Record) { r.Author = testRecord(1).Author }, []string{"one key", "folder of its own"}},
	} {
		b := testRecord(2)
		c.change(&b)
		err := Negotiate(testRecord(1), b)
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
		err, errBack := Negotiate(a, b), Negotiate(b, a)
		if (err == nil) != (errBack == nil) {
			t.Fatalf("%v one way and %v the other", err, errBack)
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
