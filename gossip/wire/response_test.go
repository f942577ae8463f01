package wire

import (
	"bytes"
	"math"
	"reflect"
	"testing"
)

func TestResponseRoundTrip(t *testing.T) {
	r := Response{Status: OK, Body: []byte("body")}
	got, err := DecodeResponse(r.Encode(), 5)
	ok(t, err)
	if !reflect.DeepEqual(got, r) || got.Err() != nil {
		t.Errorf("came back as %v", got)
	}
	for status, want := range map[Status]error{NotFound: ErrNotFound, Busy: ErrBusy, Refused: ErrRefused} {
		got, err := DecodeResponse(Response{Status: status, Body: []byte("stays out")}.Encode(), 1)
		ok(t, err)
		wantErr(t, got.Err(), want)
	}
}

func TestResponseLimits(t *testing.T) {
	_, err := DecodeResponse(nil, 10)
	wantErr(t, err, ErrSize)
	_, err = DecodeResponse([]byte{byte(OK), 1, 2}, 2)
	wantErr(t, err, ErrSize)
	_, err = DecodeResponse([]byte{byte(NotFound), 1}, 10)
	wantErr(t, err, ErrSize)
	for _, status := range []byte{0, byte(Refused) + 1, 255} {
		_, err = DecodeResponse([]byte{status}, 10)
		wantErr(t, err, ErrKind)
	}
}

func TestRoster(t *testing.T) {
	want := [][]byte{{1}, {}, bytes.Repeat([]byte{2}, MaxRecord)}
	got, err := DecodeRoster(EncodeRoster(want))
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("came back as %v", got)
	}
	full := EncodeRoster(repeat(make([]byte, MaxRecord), MaxRoster))
	if len(full) > maxRosterBody {
		t.Errorf("a full roster has %d bytes, limit %d", len(full), maxRosterBody)
	}
	_, err = DecodeRoster(full)
	ok(t, err)
	for _, bad := range [][]byte{
		EncodeRoster(make([][]byte, MaxRoster+1)),
		EncodeRoster([][]byte{make([]byte, MaxRecord+1)}),
		make([]byte, maxRosterBody+1),
	} {
		_, err := DecodeRoster(bad)
		wantErr(t, err, ErrSize)
	}
	_, err = DecodeRoster([]byte{0x80, 0})
	wantErr(t, err, ErrEncoding)
}

func TestRounds(t *testing.T) {
	asked := []Range{{From: 1, To: 2}, {From: 1, To: 1}}
	want := testAnswers()
	got, err := DecodeRounds(EncodeRounds(want), asked)
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v came back as %v", want, got)
	}
	_, err = DecodeRounds(EncodeRounds(want), asked[:1])
	wantErr(t, err, ErrSize)
	_, err = DecodeRounds(EncodeRounds(want), []Range{asked[1], asked[0]})
	wantErr(t, err, ErrSize)
	_, err = DecodeRounds(make([]byte, maxRoundsBody+1), asked)
	wantErr(t, err, ErrSize)
	_, err = DecodeRounds([]byte{0xff}, asked)
	wantErr(t, err, ErrEncoding)
}

// The largest answer to the largest request fits its limit.
func TestLargestRoundsFit(t *testing.T) {
	asked := repeat(Range{From: 1, To: MaxRangesRounds / MaxRanges}, MaxRanges)
	answer := RangeAnswer{Closed: math.MaxUint32, Base: math.MaxUint32, Sets: make([]Digest, MaxRangesRounds/MaxRanges)}
	body := EncodeRounds(repeat(answer, MaxRanges))
	t.Logf("largest rounds answer: %d bytes of %d", len(body), maxRoundsBody)
	_, err := DecodeRounds(body, asked)
	ok(t, err)
	asked = repeat(Range{From: 1, To: MaxRangeRounds}, MaxRangesRounds/MaxRangeRounds)
	answer.Sets = make([]Digest, MaxRangeRounds)
	_, err = DecodeRounds(EncodeRounds(repeat(answer, len(asked))), asked)
	ok(t, err)
}

func TestHeaders(t *testing.T) {
	want := []SignedHeader{testEvidence().A, testEvidence().B}
	got, err := DecodeHeaders(EncodeHeaders(want))
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("came back as %v", got)
	}
	body := EncodeHeaders(repeat(want[0], MaxHeaders))
	_, err = DecodeHeaders(body)
	ok(t, err)
	_, err = DecodeHeaders(append(body, body[:SignedHeaderSize]...))
	wantErr(t, err, ErrSize)
	_, err = DecodeHeaders(body[:SignedHeaderSize+1])
	wantErr(t, err, ErrSize)
	_, err = DecodeHeaders(make([]byte, SignedHeaderSize))
	wantErr(t, err, ErrInvalid)
}

func TestMaxResponse(t *testing.T) {
	for k := GetGenesis; k <= GetOwn; k++ {
		if n := k.MaxResponse(); n <= statusSize || n > statusSize+MaxPayload {
			t.Errorf("%v: %d bytes", k, n)
		}
	}
	if n := RequestKind(0).MaxResponse(); n != statusSize {
		t.Errorf("unknown kind: %d bytes", n)
	}
}
