package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestRequestRoundTrip(t *testing.T) {
	for _, want := range testRequests() {
		got, err := DecodeRequest(want.Encode())
		ok(t, err)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%+v came back as %+v", want, got)
		}
	}
}

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

func TestRequestLimits(t *testing.T) {
	for name, r := range map[string]Request{
		"wait":              {Kind: GetPayload, WaitMs: MaxWaitMs + 1},
		"too many ranges":   {Kind: GetRounds, Ranges: repeat(Range{From: 1, To: 1}, MaxRanges+1)},
		"too many rounds":   {Kind: GetRounds, Ranges: repeat(Range{From: 1, To: MaxRangeRounds}, 5)},
		"a range too long":  {Kind: GetRounds, Ranges: []Range{{From: 1, To: MaxRangeRounds + 1}}},
		"the longest range": {Kind: GetRounds, Ranges: []Range{{From: 1, To: math.MaxUint32}}},
		"backwards":         {Kind: GetRounds, Ranges: []Range{{From: 2, To: 1}}},
		"round 0":           {Kind: GetRounds, Ranges: []Range{{From: 0, To: 1}}},
		"range fragment":    {Kind: GetRounds, Ranges: []Range{{Fragment: MaxFragments, From: 1, To: 1}}},
		"too many headers":  {Kind: GetHeaders, Rounds: repeat(RoundKey{Round: 1}, MaxRoundKeys+1)},
		"header round 0":    {Kind: GetHeaders, Rounds: []RoundKey{{}}},
		"too many tips":     {Kind: GetTips, At: make([]uint32, MaxFragments+1)},
		"header fragment":   {Kind: GetHeaders, Rounds: []RoundKey{{Fragment: MaxFragments, Round: 1}}},
	} {
		if _, err := DecodeRequest(r.Encode()); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantErr(t, err, ErrInvalid)
		}
	}
}

// The largest requests that Validate allows also fit MaxRequest.
func TestLargestRequestsFit(t *testing.T) {
	for _, r := range []Request{
		{Kind: GetRounds, Ranges: repeat(Range{Fragment: 255, From: math.MaxUint32 - 15, To: math.MaxUint32}, MaxRanges)},
		{Kind: GetHeaders, Rounds: repeat(RoundKey{Fragment: 255, Round: math.MaxUint32}, MaxRoundKeys)},
	} {
		_, err := DecodeRequest(r.Encode())
		ok(t, err)
	}
}

func repeat[T any](v T, n int) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = v
	}
	return s
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

func TestRequestHead(t *testing.T) {
	_, err := DecodeRequest(make([]byte, MaxRequest+1))
	wantErr(t, err, ErrSize)
	_, err = DecodeRequest([]byte{Version + 1, byte(GetRoster)})
	wantErr(t, err, ErrVersion)
	for _, kind := range []byte{0, byte(GetOwn) + 1, 255} {
		_, err = DecodeRequest([]byte{Version, kind})
		wantErr(t, err, ErrKind)
	}
	if b := (Request{Kind: 99}).Encode(); len(b) != messageHead {
		t.Errorf("an unknown kind has fields: %x", b)
	}
}
