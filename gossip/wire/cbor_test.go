package wire

import (
	"bytes"
	"encoding/hex"
	"reflect"
	"testing"
)

// pair stands for any structure of the package.
type pair struct {
	_ struct{} `cbor:",toarray"`
	N uint32
	S []uint32
}

func TestUnmarshalTakesOnlyTheCanonicalForm(t *testing.T) {
	for name, in := range map[string]string{
		"empty":               "",
		"cut":                 "8201",
		"trailing byte":       "8201810200",
		"number too long":     "82180181 02",
		"head too long":       "9802018102",
		"indefinite array":    "9f018102ff",
		"indefinite inner":    "82019f02ff",
		"too few fields":      "8101",
		"too many fields":     "8301810203",
		"null for a list":     "8201f6",
		"tag":                 "82c1018102",
		"negative":            "82208102",
		"float for a number":  "82f93c008102",
		"number out of range": "821b00000001000000008102",
		"map for an array":    "a2014e028102",
		"nested too deep":     "820181818181818102",
		"huge array, no data": "82019b7fffffffffffffff",
		"4097 elements":       "8201991001" + string(bytes.Repeat([]byte("00"), 4097)),
	} {
		var p pair
		raw, err := hex.DecodeString(string(bytes.ReplaceAll([]byte(in), []byte(" "), nil)))
		ok(t, err)
		if err := Unmarshal(raw, &p); err == nil {
			t.Errorf("%s: %s was accepted as %v", name, in, p)
		} else {
			wantErr(t, err, ErrEncoding)
		}
	}
	var p pair
	ok(t, Unmarshal([]byte{0x82, 0x01, 0x81, 0x02}, &p))
	if p.N != 1 || !reflect.DeepEqual(p.S, []uint32{2}) {
		t.Errorf("decoded %v", p)
	}
}

func TestFixedBytesMustHaveTheirLength(t *testing.T) {
	for _, n := range []int{0, 31, 33} {
		var d Digest
		wantErr(t, Unmarshal(Marshal(make([]byte, n)), &d), ErrEncoding)
	}
	var d Digest
	wantErr(t, Unmarshal(Marshal(make([]uint16, 32)), &d), ErrEncoding)
}

// keyed stands for the capability record.
type keyed struct {
	A uint32 `cbor:"1,keyasint"`
}

func TestUnmarshalOpenSkipsOnlyUnknownKeys(t *testing.T) {
	newer := []byte{0xa2, 0x01, 0x05, 0x02, 0x06}
	var k keyed
	ok(t, UnmarshalOpen(newer, &k))
	if k.A != 5 {
		t.Errorf("decoded %v", k)
	}
	k = keyed{}
	wantErr(t, Unmarshal(newer, &k), ErrEncoding)
	for name, in := range map[string][]byte{
		"duplicate key":         {0xa2, 0x01, 0x05, 0x01, 0x06},
		"duplicate unknown key": {0xa3, 0x01, 0x05, 0x02, 0x06, 0x02, 0x07},
		"trailing byte":         {0xa1, 0x01, 0x05, 0x00},
		"indefinite map":        {0xbf, 0x01, 0x05, 0xff},
		"deep unknown value":    {0xa2, 0x01, 0x05, 0x02, 0x81, 0x81, 0x81, 0x81, 0x00},
	} {
		var k keyed
		if err := UnmarshalOpen(in, &k); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestUnsealNeedsASignature(t *testing.T) {
	var p pair
	_, _, err := unseal(make([]byte, 63), &p)
	wantErr(t, err, ErrSize)
}
