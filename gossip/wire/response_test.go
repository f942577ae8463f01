package wire

import (
	"math"
	"slices"
	"testing"
)

func TestStatusIsAnError(t *testing.T) {
	for status, want := range map[Status]error{OK: nil, NotFound: ErrNotFound, Busy: ErrBusy, Refused: ErrRefused} {
		got, err := DecodeResponse(Response{Status: status, Body: []byte("stays out")}.Encode(), 10)
		ok(t, err)
		wantErr(t, got.Err(), want)
	}
}

func TestResponseLimits(t *testing.T) {
	_, err := DecodeResponse(nil, 10)
	wantErr(t, err, ErrSize)
	_, err = DecodeResponse([]byte{byte(OK), 1, 2}, 2)
	wantErr(t, err, ErrSize)
}

func TestPeerListLimits(t *testing.T) {
	full := PeerList{Records: slices.Repeat([][]byte{make([]byte, MaxRecord)}, MaxPeerList), Words: slices.Repeat([][]byte{make([]byte, MaxWord)}, MaxWords)}
	if n := len(full.Encode()); n > maxPeerListBody {
		t.Errorf("a full peer list has %d bytes, limit %d", n, maxPeerListBody)
	}
	_, err := DecodePeerList(full.Encode())
	ok(t, err)
	got, err := DecodePeerList(PeerList{Records: [][]byte{{}}}.Encode())
	if ok(t, err); len(got.Records) != 1 || len(got.Records[0]) != 0 || len(got.Words) != 0 {
		t.Errorf("an empty record came back as %v", got)
	}
	_, err = DecodePeerList(make([]byte, maxPeerListBody+1))
	wantErr(t, err, ErrSize)
	_, err = DecodePeerList([]byte{0x80, 0})
	wantErr(t, err, ErrEncoding)
}

func TestRoundsLimits(t *testing.T) {
	asked := []Range{{From: 1, To: 2}, {From: 1, To: 1}}
	_, err := DecodeRounds(EncodeRounds(testAnswers()), []Range{asked[1], asked[0]})
	wantErr(t, err, ErrSize)
	_, err = DecodeRounds(make([]byte, maxRoundsBody+1), asked)
	wantErr(t, err, ErrSize)
	_, err = DecodeRounds([]byte{0xff}, asked)
	wantErr(t, err, ErrEncoding)
}

// The largest answer to the largest request fits its limit.
func TestLargestRoundsFit(t *testing.T) {
	asked := slices.Repeat([]Range{{From: 1, To: MaxRangesRounds / MaxRanges}}, MaxRanges)
	answer := RangeAnswer{Closed: math.MaxUint32, Base: math.MaxUint32, Sets: make([]Digest, MaxRangesRounds/MaxRanges)}
	body := EncodeRounds(slices.Repeat([]RangeAnswer{answer}, MaxRanges))
	t.Logf("largest rounds answer: %d bytes of %d", len(body), maxRoundsBody)
	_, err := DecodeRounds(body, asked)
	ok(t, err)
	asked = slices.Repeat([]Range{{From: 1, To: MaxRangeRounds}}, MaxRangesRounds/MaxRangeRounds)
	answer.Sets = make([]Digest, MaxRangeRounds)
	_, err = DecodeRounds(EncodeRounds(slices.Repeat([]RangeAnswer{answer}, len(asked))), asked)
	ok(t, err)
}

func TestMaxResponseOfAnUnknownKind(t *testing.T) {
	if n := RequestKind(0).MaxResponse(); n != statusSize {
		t.Errorf("%d bytes", n)
	}
}
