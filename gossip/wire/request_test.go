package wire

import (
	"bytes"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestRangesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 64).Draw(t, "ranges")
		want := Request{Kind: GetRounds, Ranges: []Range{}}
		for range n {
			from := rapid.Uint32Range(1, math.MaxUint32-256).Draw(t, "from")
			want.Ranges = append(want.Ranges, Range{
				Fragment: rapid.Uint16Range(0, MaxFragments-1).Draw(t, "fragment"),
				From:     from,
				To:       from + rapid.Uint32Range(0, 255).Draw(t, "more"),
			})
		}
		got, err := DecodeRequest(want.Encode())
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
	})
}

// The largest requests that Validate allows also fit MaxRequest.
func TestLargestRequestsFit(t *testing.T) {
	for _, r := range []Request{
		{Kind: GetRounds, Ranges: slices.Repeat([]Range{{Fragment: 255, From: math.MaxUint32 - 15, To: math.MaxUint32}}, MaxRanges)},
		{Kind: GetHeaders, Rounds: slices.Repeat([]RoundKey{{Fragment: 255, Round: math.MaxUint32}}, MaxRoundKeys)},
	} {
		_, err := DecodeRequest(r.Encode())
		ok(t, err)
	}
}

func TestUnknownRequestHasNoFields(t *testing.T) {
	if b := (Request{Kind: 99}).Encode(); len(b) != messageHead {
		t.Errorf("encoded %x", b)
	}
}

func TestRequestIsExact(t *testing.T) {
	for _, r := range testRequests() {
		b := r.Encode()
		for n := range b {
			if _, err := DecodeRequest(b[:n]); err == nil {
				t.Errorf("%v: accepted %d of %d bytes", r.Kind, n, len(b))
			}
		}
		if _, err := DecodeRequest(append(bytes.Clone(b), 0)); err == nil {
			t.Errorf("%v: accepted with a byte after it", r.Kind)
		}
	}
}

// Each kind of request is one whose answer may be large, one whose answer shows the way, or neither: who adds a kind decides.
func TestKindsOfAnswers(t *testing.T) {
	decided := map[RequestKind]string{
		GetPayload: "large", GetChunk: "large", GetPart: "large", GetManifest: "large", GetSnapshot: "large",
		GetPeerList: "at once", GetRounds: "at once", GetHeaders: "at once", GetOwn: "at once",
		GetGenesis: "neither", GetCertificates: "neither", GetHoldings: "neither",
	}
	for k := GetGenesis; int(k) < len(requestNames); k++ {
		is := map[string]bool{"large": k.Large(), "at once": k.AtOnce(), "neither": !k.Large() && !k.AtOnce()}
		if how, known := decided[k]; !known || !is[how] || k.Large() && k.AtOnce() {
			t.Errorf("%v is decided to be %q, and is: %v", k, how, is)
		}
	}
}
