package wire

import (
	"errors"
	"math"
	"testing"
)

func TestOpenVote(t *testing.T) {
	want := SignVote(testKey(1), testRun, testVote())
	b := want.Encode()
	got, err := OpenVote(testRun, b)
	if err != nil || got != want {
		t.Fatalf("%+v came back as %+v, %v", want, got, err)
	}
	if _, err := OpenVote(otherRun, b); !errors.Is(err, ErrSignature) {
		t.Errorf("in another run: %v", err)
	}
	for at := range b {
		bad := append([]byte(nil), b...)
		bad[at] ^= 1
		if _, err := OpenVote(testRun, bad); err == nil {
			t.Errorf("byte %d changed: taken", at)
		}
		if _, err := OpenVote(testRun, b[:at]); err == nil {
			t.Errorf("the first %d bytes are taken", at)
		}
	}
}

func TestVoteValidate(t *testing.T) {
	for name, change := range map[string]func(v *Vote){
		"no phase":              func(v *Vote) { v.Phase = 0 },
		"another phase":         func(v *Vote) { v.Phase = Precommit + 1 },
		"far view":              func(v *Vote) { v.View, v.Proof = MaxView+1, 0 },
		"a value of no round":   func(v *Vote) { v.Round = 0 },
		"a round of no value":   func(v *Vote) { v.Value = Digest{} },
		"a proposal of nothing": func(v *Vote) { v.Round, v.Value = 0, Digest{} },
		"a prevote with proof":  func(v *Vote) { v.Phase = Prevote },
		"a proof of its view":   func(v *Vote) { v.Proof = v.View + 1 },
	} {
		v := testVote()
		change(&v)
		if err := v.Validate(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := OpenVote(testRun, SignVote(testKey(1), testRun, v).Encode()); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: opens with %v", name, err)
		}
	}
	v := testVote()
	if err := v.Validate(); err != nil {
		t.Error(err)
	}
	v.Height, v.View, v.Round, v.Proof = math.MaxUint32, MaxView, math.MaxUint32, MaxView
	if b := SignVote(testKey(1), testRun, v).Encode(); len(b) != MaxVote {
		t.Errorf("the longest has %d bytes, the limit is %d", len(b), MaxVote)
	}
	if Phase(9).String() != "phase 9" || Prevote.String() != "prevote" {
		t.Errorf("%v, %v", Phase(9), Prevote)
	}
}
