package wire_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"runtime"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"github.com/zeebo/blake3"
)

// One test for each clause of SPEC.md that is about this package. They decode
// by the text, and hold the package to it.
func TestSpec(t *testing.T) {
	spectest.Run(t, "W", map[string]spectest.Clause{
		"W-1": specHash, "W-1.2": specNone, "W-2": specPeerID, "W-2.2": specOrder, "W-3": specStatement, "W-4": specSignature,
		"W-4.2": specForged, "W-5": specDomains, "W-6": specMalleable, "W-7": specArrays, "W-7.2": specCanonical, "W-8": specFloats,
		"W-9": specNesting, "W-10": specLimits, "W-10.2": specOverLimits, "W-10.3": specAnnounced,
		"W-11": specHeader, "W-11.2": specStated, "W-12": specHeaderFields, "W-12.2": specRevokesSomebody, "W-13": specHeaderID, "W-14": specSignedHeader, "W-15": specPayload,
		"W-15.2": specOtherPayload,
		"W-16":   specMessage, "W-16.2": specOtherMessage, "W-17": specInline, "W-17.2": specOtherInline, "W-18": specInlineChoice, "W-18.2": specLeftOut,
		"W-19": specHeartbeat, "W-19.2": specHeartbeatKeys, "W-19.3": specHeartbeatEncodings, "W-19.4": specHeartbeatRefused, "W-20": specHeartbeatFields, "W-21": specStates, "W-22": specEquivocation, "W-22.2": specEquivocationOrder, "W-23": specNoEquivocation, "W-23.2": specRevokedTwice,
		"W-24": specRequest, "W-24.2": specOtherRequest, "W-25": specRequestKinds, "W-26": specGetGenesis, "W-26.2": specOtherGenesis,
		"W-27": specGetPeerList, "W-27.2": specGetOwn, "W-28": specGetSnapshot, "W-28.2": specNewerSnapshot,
		"W-29": specGetPayload, "W-29.2": specWait, "W-30": specGetRounds, "W-30.2": specOtherRanges, "W-31": specGetHeaders, "W-31.2": specOtherKeys, "W-31.3": specGetCertificates,
		"W-42": specGetHoldings, "W-42.2": specGetPart, "W-42.3": specPartSet, "W-42.4": specOtherPartSet,
		"W-43": specHoldings, "W-43.2": specOtherHoldings, "W-44": specPart, "W-44.2": specPartBytes, "W-44.3": specTree, "W-44.4": specOtherPart,
		"W-32": specStatus, "W-32.2": specOtherStatus, "W-33": specPeerList, "W-33.2": specPeerListUnopened, "W-34": specRounds, "W-34.2": specRoundsFields,
		"W-34.3": specOtherRounds, "W-34.4": specSetsLeftOut, "W-35": specSetDigest, "W-36": specHeaders, "W-36.2": specOtherHeaders, "W-36.3": specCertificates,
		"W-37": specManifest, "W-37.2": specManifestFragment, "W-37.3": specManifestSize, "W-38": specManifestFields, "W-38.2": specEmptyFragment,
		"W-39": specChunks, "W-39.2": specOtherChunk, "W-40": specFrame, "W-40.2": specLongFrame, "W-40.3": specCutFrame,
		"W-41": specVersions, "W-41.2": specHelloDomain, "W-41.3": specOtherVersion,
	})
}

// Helpers.

func runOf(t testing.TB, s *spectest.Spec) wire.RunID { return wire.RunID(s.Hex(t, "run")) }

func keyOf(t testing.TB, s *spectest.Spec) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(s.Hex(t, "seed"))
}

func domain(t testing.TB, s *spectest.Spec, row int) string { return s.Table(t, "domains")[row][0] }

// Rows of the table of domains.
const (
	domainHeader = iota
	domainHeaderID
	domainHeartbeat
	domainManifest
	domainHello
)

// statement is W-3.
func statement(domain string, run wire.RunID, b []byte) []byte {
	return slices.Concat([]byte{byte(len(domain))}, []byte(domain), run[:], b)
}

func digest(b []byte) []byte {
	d := blake3.Sum256(b)
	return d[:]
}

// same fails unless got is want.
func same(t testing.TB, what string, got, want []byte) {
	t.Helper()
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %x\nwant %x", what, got, want)
	}
}

// refused fails unless err wraps want.
func refused(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// changed is a copy of b with other bytes from at on.
func changed(b []byte, at int, with ...byte) []byte {
	c := bytes.Clone(b)
	copy(c[at:], with)
	return c
}

// sealed signs CBOR as the author of the examples.
func sealed(t testing.TB, s *spectest.Spec, row int, v any) []byte {
	b := wire.Marshal(v)
	return append(b, ed25519.Sign(keyOf(t, s), statement(domain(t, s, row), runOf(t, s), b))...)
}

// Names, hashes and signatures.

func specHash(t *testing.T, s *spectest.Spec) {
	text := []byte(s.Text(t, "payload"))
	same(t, "digest", digest(text), s.Hex(t, "payload digest"))
	d := wire.Sum(text)
	same(t, "Sum", d[:], s.Hex(t, "payload digest"))
}

func specNone(t *testing.T, _ *spectest.Spec) {
	if !(wire.Digest{}).IsZero() || (wire.Digest{31: 1}).IsZero() {
		t.Error("none is not the digest of zero bytes alone")
	}
}

func specPeerID(t *testing.T, s *spectest.Spec) {
	public := keyOf(t, s).Public().(ed25519.PublicKey)
	same(t, "public key", public, s.Hex(t, "author"))
	id := wire.PeerIDOf(keyOf(t, s))
	same(t, "peer id", id[:], public)
}

func specOrder(t *testing.T, _ *spectest.Spec) {
	if (wire.PeerID{1}).Compare(wire.PeerID{0, 255}) <= 0 || (wire.Digest{1}).Compare(wire.Digest{0, 255}) <= 0 {
		t.Error("not ordered as byte strings")
	}
}

func specStatement(t *testing.T, s *spectest.Spec) {
	got := statement(domain(t, s, domainHeaderID), runOf(t, s), stated(t, s))
	same(t, "statement", got, s.Hex(t, "header id statement"))
}

func specSignature(t *testing.T, s *spectest.Spec) {
	stated := statement(domain(t, s, domainHeader), runOf(t, s), stated(t, s))
	same(t, "signature", ed25519.Sign(keyOf(t, s), stated), s.Hex(t, "header signature"))
}

func specForged(t *testing.T, s *spectest.Spec) {
	for name, size := range map[string]int{"message header": 0, "message heartbeat": 0, "message equivocation proof": 187} {
		b := s.Hex(t, name)
		b[len(b)-size-1] ^= 1
		_, err := wire.Open(runOf(t, s), b)
		refused(t, name, err, wire.ErrSignature)
	}
	manifest := s.Hex(t, "body manifest")
	_, err := wire.OpenManifest(runOf(t, s), changed(manifest, len(manifest)-1, manifest[len(manifest)-1]^1))
	refused(t, "manifest", err, wire.ErrSignature)
}

func specDomains(t *testing.T, s *spectest.Spec) {
	author := wire.PeerID(s.Hex(t, "author"))
	b := []byte("bytes")
	for i, row := range s.Table(t, "domains") {
		sig := wire.Signature(ed25519.Sign(keyOf(t, s), statement(row[0], runOf(t, s), b)))
		for j, other := range s.Table(t, "domains") {
			if err := wire.Verify(author, other[0], runOf(t, s), b, sig); (err == nil) != (i == j) {
				t.Errorf("signed for %q, verified for %q: %v", row[0], other[0], err)
			}
		}
		refused(t, "another run", wire.Verify(author, row[0], wire.RunID{1}, b, sig), wire.ErrSignature)
	}
}

// The order of the group is 2^252 + 27742317777372353535851937790883648493.
func specMalleable(t *testing.T, s *spectest.Spec) {
	order, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	order.Add(order, new(big.Int).Lsh(big.NewInt(1), 252))
	sig := s.Hex(t, "header signature")
	half := bytes.Clone(sig[32:])
	slices.Reverse(half) // to big-endian
	again := new(big.Int).Add(new(big.Int).SetBytes(half), order).FillBytes(make([]byte, 32))
	slices.Reverse(again)
	second := wire.Signature(slices.Concat(sig[:32], again))
	author, d := wire.PeerID(s.Hex(t, "author")), domain(t, s, domainHeader)
	if err := wire.Verify(author, d, runOf(t, s), stated(t, s), wire.Signature(sig)); err != nil {
		t.Fatal(err)
	}
	refused(t, "second form", wire.Verify(author, d, runOf(t, s), stated(t, s), second), wire.ErrSignature)
}

// Encodings and limits.

func specArrays(t *testing.T, s *spectest.Spec) {
	type structure struct {
		_      struct{} `cbor:",toarray"`
		Number uint64
		Name   wire.PeerID
		List   []uint32
	}
	v := structure{Number: 24, Name: wire.PeerID(s.Hex(t, "author")), List: []uint32{}}
	want := slices.Concat([]byte{0x83, 0x18, 24, 0x58, 32}, v.Name[:], []byte{0x80})
	same(t, "encoded", wire.Marshal(v), want)
	item, rest := decodeCBOR(t, want)
	fields := item.([]any)
	if fields[0] != v.Number || len(fields[2].([]any)) != 0 || len(rest) != 0 {
		t.Errorf("by the text %v, and %x follows", fields, rest)
	}
	same(t, "peer id", fields[1].([]byte), v.Name[:])
	var got structure
	if err := wire.Unmarshal(want, &got); err != nil || got.Number != v.Number || got.Name != v.Name || len(got.List) != 0 {
		t.Errorf("decoded %+v, %v", got, err)
	}
}

func specCanonical(t *testing.T, s *spectest.Spec) {
	good := s.Hex(t, "request rounds")
	must[wire.Request](t)(wire.DecodeRequest(good))
	head, ranges := good[:2], good[3:] // behind the array of one field
	for name, fields := range map[string][]byte{
		"a longer length":       slices.Concat([]byte{0x98, 1}, ranges),
		"a longer integer":      {0x81, 0x81, 0x83, 0x18, 0, 1, 1},
		"an indefinite length":  slices.Concat([]byte{0x9f}, ranges, []byte{0xff}),
		"a tag":                 slices.Concat([]byte{0x81, 0xc1}, ranges),
		"bytes that follow":     slices.Concat([]byte{0x81}, ranges, []byte{0}),
		"a field too many":      slices.Concat([]byte{0x82}, ranges, []byte{0}),
		"a field too few":       {0x80},
		"null for a list":       {0x81, 0xf6},
		"a map for a structure": slices.Concat([]byte{0xa1, 0}, ranges),
	} {
		_, err := wire.DecodeRequest(slices.Concat(head, fields))
		refused(t, name, err, wire.ErrEncoding)
	}
	bytesAsList := slices.Concat([]byte{wire.Version, 1, 0x81, 0x98, 32}, bytes.Repeat([]byte{1}, 32))
	_, err := wire.DecodeRequest(bytesAsList)
	refused(t, "a list for bytes", err, wire.ErrEncoding)
}

func specFloats(t *testing.T, s *spectest.Spec) {
	for _, c := range []struct {
		v    float64
		size int
	}{{0, 3}, {1.5, 3}, {65504, 3}, {12000.5, 5}, {1e10, 5}, {0.1, 9}} {
		b := wire.Marshal(c.v)
		if item, rest := decodeCBOR(t, b); item != c.v || len(b) != c.size || len(rest) != 0 {
			t.Errorf("%v is %x, read back %v; want %d bytes", c.v, b, item, c.size)
		}
	}
	var v float64
	refused(t, "1.5 in 8 bytes", wire.Unmarshal([]byte{0xfb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, &v), wire.ErrEncoding)
}

func specNesting(t *testing.T, s *spectest.Spec) {
	array := s.Number(t, "cbor", "array")
	var list []uint64
	if err := wire.Unmarshal(wire.Marshal(make([]uint64, array)), &list); err != nil {
		t.Error(err)
	}
	refused(t, "a long array", wire.Unmarshal(wire.Marshal(make([]uint64, array+1)), &list), wire.ErrEncoding)
	deepest := bytes.Repeat([]byte{0x81}, int(s.Number(t, "cbor", "nesting"))-1)
	var nested [][][][]uint64
	if err := wire.Unmarshal(append(deepest, 0x80), &nested); err != nil {
		t.Error(err)
	}
	var deeper [][][][][]uint64
	refused(t, "deep nesting", wire.Unmarshal(append(append(deepest, 0x81), 0x80), &deeper), wire.ErrEncoding)
	announced := []byte{0x9b, 0, 0, 1, 0, 0, 0, 0, 0}
	refused(t, "a length without elements", wire.Unmarshal(announced, &list), wire.ErrEncoding)
}

func specLimits(t *testing.T, s *spectest.Spec) {
	have := map[string]int64{
		"MaxMessage": wire.MaxMessage, "MaxInline": wire.MaxInline, "MaxFragments": wire.MaxFragments, "MaxLag": wire.MaxLag,
		"MinPeriodMs": wire.MinPeriodMs, "MaxPeriodMs": wire.MaxPeriodMs, "MaxUpload": wire.MaxUpload, "MaxPlan": wire.MaxPlan,
		"MaxRequest": wire.MaxRequest, "MaxWaitMs": wire.MaxWaitMs, "MaxRanges": wire.MaxRanges, "MaxRangeRounds": wire.MaxRangeRounds,
		"MaxRangesRounds": wire.MaxRangesRounds, "MaxRoundKeys": wire.MaxRoundKeys, "MaxGenesis": wire.MaxGenesis, "MaxRecord": wire.MaxRecord,
		"MaxPeerList": wire.MaxPeerList, "MaxWords": wire.MaxWords, "MaxWord": wire.MaxWord, "MaxHeaders": wire.MaxHeaders, "MaxPayload": wire.MaxPayload, "ChunkSize": wire.ChunkSize,
		"MaxChunks": wire.MaxChunks, "MaxManifest": wire.MaxManifest,
		"MaxAuthors": wire.MaxAuthors, "MaxCertificates": wire.MaxCertificates, "MaxCertificate": wire.MaxCertificate,
		"MaxHoldings": wire.MaxHoldings, "PartSize": wire.PartSize, "MaxParts": wire.MaxParts,
	}
	for name, value := range have {
		if want := s.Number(t, "limits", name); want != value {
			t.Errorf("%s is %d, the text says %d", name, value, want)
		}
	}
	if n := len(s.Table(t, "limits")); n != len(have) {
		t.Errorf("%d limits in the text, %d here", n, len(have))
	}
}

// specOverLimits has a thing that is over each limit by one. Records are H-2.
func specOverLimits(t *testing.T, s *spectest.Spec) {
	run, over := runOf(t, s), func(limit string) int { return int(s.Number(t, "limits", limit)) + 1 }
	open := func(b []byte) error { _, err := wire.Open(run, b); return err }
	asks := func(r wire.Request) error { _, err := wire.DecodeRequest(r.Encode()); return err }
	header := func(change func(h *wire.Header)) error {
		h := must[wire.Header](t)(wire.ParseHeader(s.Hex(t, "header")))
		change(&h)
		_, err := wire.ParseHeader(h.Append(nil))
		return err
	}
	manifest := func(f wire.FragmentManifest) error {
		_, err := wire.OpenManifest(run, sealed(t, s, domainManifest, wire.Manifest{Author: wire.PeerID(s.Hex(t, "author")), Fragments: []wire.FragmentManifest{f}}))
		return err
	}
	heartbeat := func(change func(b *wire.Heartbeat)) error {
		b := must[wire.Message](t)(wire.Open(run, s.Hex(t, "message heartbeat"))).Heartbeat
		change(b)
		return open(append([]byte{wire.Version, 2}, sealed(t, s, domainHeartbeat, b)...))
	}
	peerList := func(l wire.PeerList) error { _, err := wire.DecodePeerList(l.Encode()); return err }
	span := wire.Range{From: 1, To: uint32(s.Number(t, "limits", "MaxRangeRounds"))}
	_, request := wire.DecodeRequest(make([]byte, over("MaxRequest")))
	_, headers := wire.DecodeHeaders(bytes.Repeat(s.Hex(t, "message header")[2:], over("MaxHeaders")))
	_, genesis := wire.DecodeResponse(append([]byte{1}, make([]byte, over("MaxGenesis"))...), wire.GetGenesis.MaxResponse())
	_, signed := wire.OpenManifest(run, make([]byte, over("MaxManifest")))
	for limit, err := range map[string]error{
		"MaxMessage":      open(make([]byte, over("MaxMessage"))),
		"MaxInline":       open(inlined(t, s, over("MaxInline"))),
		"MaxFragments":    asks(wire.Request{Kind: wire.GetSnapshot, At: make([]uint32, over("MaxFragments"))}),
		"MaxLag":          heartbeat(func(b *wire.Heartbeat) { b.Lag = uint8(over("MaxLag")) }),
		"MaxRequest":      request,
		"MaxWaitMs":       asks(wire.Request{Kind: wire.GetPayload, WaitMs: uint32(over("MaxWaitMs"))}),
		"MaxRanges":       asks(wire.Request{Kind: wire.GetRounds, Ranges: slices.Repeat([]wire.Range{{From: 1, To: 1}}, over("MaxRanges"))}),
		"MaxRangeRounds":  asks(wire.Request{Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: span.To + 1}}}),
		"MaxRangesRounds": asks(wire.Request{Kind: wire.GetRounds, Ranges: slices.Repeat([]wire.Range{span}, over("MaxRangesRounds")/int(span.To)+1)}),
		"MaxRoundKeys":    asks(wire.Request{Kind: wire.GetHeaders, Rounds: slices.Repeat([]wire.RoundKey{{Round: 1}}, over("MaxRoundKeys"))}),
		"MaxGenesis":      genesis,
		"MaxRecord":       peerList(wire.PeerList{Records: [][]byte{make([]byte, over("MaxRecord"))}}),
		"MaxPeerList":     peerList(wire.PeerList{Records: slices.Repeat([][]byte{{1}}, over("MaxPeerList"))}),
		"MaxWords":        peerList(wire.PeerList{Words: slices.Repeat([][]byte{{1}}, over("MaxWords"))}),
		"MaxWord":         peerList(wire.PeerList{Words: [][]byte{make([]byte, over("MaxWord"))}}),
		"MaxHeaders":      headers,
		"MaxPayload":      header(func(h *wire.Header) { h.Size = uint32(over("MaxPayload")) }),
		"ChunkSize":       wire.CheckChunk(int(s.Number(t, "limits", "ChunkSize")), wire.Digest{}, make([]byte, over("ChunkSize"))),
		"MaxChunks": manifest(wire.FragmentManifest{
			Size: uint64(over("MaxChunks")) * uint64(s.Number(t, "limits", "ChunkSize")), Chunks: make([]wire.Digest, over("MaxChunks"))}),
		"MaxManifest": signed,
	} {
		if !errors.Is(err, wire.ErrSize) && !errors.Is(err, wire.ErrInvalid) && !errors.Is(err, wire.ErrEncoding) {
			t.Errorf("over %s: %v", limit, err)
		}
	}
}

// specAnnounced announces what never comes: 64 MiB in a frame, 2^40 elements of an array,
// 2^40 bytes of a string.
func specAnnounced(t *testing.T, s *spectest.Spec) {
	limit := int(s.Number(t, "limits", "MaxPayload"))
	for name, read := range map[string]func() error{
		"frame":  func() error { _, err := wire.ReadFrame(bytes.NewReader([]byte{4, 0, 0, 1, 7}), limit); return err },
		"array":  func() error { var v [][]byte; return wire.Unmarshal([]byte{0x9b, 0, 0, 1, 0, 0, 0, 0, 0, 0x80}, &v) },
		"string": func() error { var v []byte; return wire.Unmarshal([]byte{0x5b, 0, 0, 1, 0, 0, 0, 0, 0, 7}, &v) },
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := read()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; err == nil || n > 1<<18 {
			t.Errorf("%s: %v, for which %d bytes were set aside", name, err, n)
		}
	}
}

// Headers.

func specHeader(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "header")
	f := s.Layout(t, "header", raw)
	want := wire.Header{
		Author: wire.PeerID(f["author"]), Fragment: binary.BigEndian.Uint16(f["fragment"]), Round: binary.BigEndian.Uint32(f["round"]),
		Base: binary.BigEndian.Uint32(f["base"]), Steps: binary.BigEndian.Uint32(f["steps"]), Tokens: binary.BigEndian.Uint64(f["tokens"]),
		Codec: f["codec"][0], Size: binary.BigEndian.Uint32(f["size"]), Payload: wire.Digest(f["payload"]), Certificate: wire.Digest(f["certificate"]),
	}
	got := must[wire.Header](t)(wire.ParseHeader(raw))
	if got != want || want.Tokens != 12288 || want.Steps != 24 {
		t.Errorf("decoded %+v, by the text %+v", got, want)
	}
	same(t, "encoding", got.Append(nil), raw)
}

// stated is what the example of a header states.
func stated(t testing.TB, s *spectest.Spec) []byte {
	return s.Hex(t, "header")[:at(t, s, "certificate")]
}

func specStated(t *testing.T, s *spectest.Spec) {
	raw := changed(s.Hex(t, "header"), at(t, s, "certificate"), s.Hex(t, "certificate")...)
	h := must[wire.Header](t)(wire.ParseHeader(raw))
	id := h.ID(runOf(t, s))
	same(t, "id", id[:], digest(statement(domain(t, s, domainHeaderID), runOf(t, s), raw)))
	same(t, "id", id[:], s.Hex(t, "certified id"))
	signed := wire.SignHeader(keyOf(t, s), runOf(t, s), h)
	same(t, "signature", signed.Sig[:], s.Hex(t, "certified signature"))
	same(t, "by the text", signed.Sig[:], ed25519.Sign(keyOf(t, s), statement(domain(t, s, domainHeader), runOf(t, s), raw)))
}

// at is the offset of a field of the header.
func at(t testing.TB, s *spectest.Spec, field string) int {
	i := slices.IndexFunc(s.Table(t, "header"), func(row []string) bool { return row[2] == field })
	var offset int
	if _, err := fmt.Sscan(s.Table(t, "header")[i][0], &offset); err != nil {
		t.Fatal(err)
	}
	return offset
}

func specHeaderFields(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "header")
	for name, b := range map[string][]byte{
		"fragment 256":       changed(raw, at(t, s, "fragment"), 1, 0),
		"round 0":            changed(raw, at(t, s, "round"), 0, 0, 0, 0, 0, 0, 0, 0),
		"base equal round":   changed(raw, at(t, s, "base"), 0, 0, 0, 17),
		"steps 0":            changed(raw, at(t, s, "steps"), 0, 0, 0, 0),
		"size 0":             changed(raw, at(t, s, "size"), 0, 0, 0, 0),
		"size above a limit": changed(raw, at(t, s, "size"), 4, 0, 0, 1),
	} {
		_, err := wire.ParseHeader(b)
		refused(t, name, err, wire.ErrInvalid)
	}
	for name, b := range map[string][]byte{
		"fragment 255": changed(raw, at(t, s, "fragment"), 0, 255),
		"base 0":       changed(raw, at(t, s, "base"), 0, 0, 0, 0),
		"size 64 Mi":   changed(raw, at(t, s, "size"), 4, 0, 0, 0),
		"no tokens":    changed(raw, at(t, s, "tokens"), 0, 0, 0, 0, 0, 0, 0, 0),
	} {
		if _, err := wire.ParseHeader(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func specHeaderID(t *testing.T, s *spectest.Spec) {
	want := digest(s.Hex(t, "header id statement"))
	same(t, "by the text", want, s.Hex(t, "header id"))
	h := must[wire.Header](t)(wire.ParseHeader(s.Hex(t, "header")))
	id := h.ID(runOf(t, s))
	same(t, "ID", id[:], want)
	signed := must[wire.SignedHeader](t)(wire.ParseSignedHeader(s.Hex(t, "message header")[2:]))
	signed.Sig[0] ^= 1
	other := signed.Header.ID(runOf(t, s))
	same(t, "with another signature", other[:], want)
}

func specSignedHeader(t *testing.T, s *spectest.Spec) {
	raw := slices.Concat(s.Hex(t, "header"), s.Hex(t, "header signature"))
	if len(raw) != 187 {
		t.Errorf("%d bytes", len(raw))
	}
	h := must[wire.SignedHeader](t)(wire.ParseSignedHeader(raw))
	if err := h.Verify(runOf(t, s)); err != nil {
		t.Error(err)
	}
	same(t, "signed here", wire.SignHeader(keyOf(t, s), runOf(t, s), h.Header).Append(nil), raw)
	_, err := wire.ParseSignedHeader(raw[1:])
	refused(t, "187 bytes", err, wire.ErrSize)
}

func specPayload(t *testing.T, s *spectest.Spec) {
	h := must[wire.Header](t)(wire.ParseHeader(s.Hex(t, "header")))
	if err := h.CheckPayload([]byte(s.Text(t, "payload"))); err != nil {
		t.Error(err)
	}
}

func specOtherPayload(t *testing.T, s *spectest.Spec) {
	h := must[wire.Header](t)(wire.ParseHeader(s.Hex(t, "header")))
	refused(t, "another", h.CheckPayload([]byte("payloaf")), wire.ErrInvalid)
	refused(t, "a longer one", h.CheckPayload([]byte("payload ")), wire.ErrSize)
}

// Frames and versions.

func specFrame(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "frame")
	body := raw[4:]
	if n := binary.BigEndian.Uint32(raw); int(n) != len(body) {
		t.Errorf("length %d of %d bytes", n, len(body))
	}
	got, err := wire.ReadFrame(bytes.NewReader(raw), len(body))
	same(t, "body", got, body)
	refused(t, "frame", err, nil)
	var b bytes.Buffer
	refused(t, "write", wire.WriteFrame(&b, body, len(body)), nil)
	same(t, "written", b.Bytes(), raw)
}

func specLongFrame(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "frame")
	body := raw[4:]
	head := bytes.NewReader(raw)
	_, err := wire.ReadFrame(head, len(body)-1)
	refused(t, "too long", err, wire.ErrSize)
	if head.Len() != len(body) {
		t.Error("it read on behind the length")
	}
}

func specCutFrame(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "frame")
	for n := 1; n < len(raw); n++ {
		_, err := wire.ReadFrame(bytes.NewReader(raw[:n]), len(raw)-4)
		refused(t, fmt.Sprintf("%d bytes", n), err, io.ErrUnexpectedEOF)
	}
}

func specVersions(t *testing.T, s *spectest.Spec) {
	for _, name := range []string{"message header", "message heartbeat", "message equivocation proof", "request genesis"} {
		if b := s.Hex(t, name); b[0] != wire.Version {
			t.Errorf("%s begins with %d", name, b[0])
		}
	}
}

func specHelloDomain(t *testing.T, s *spectest.Spec) {
	for i, digit := range map[int]string{domainHeader: " 1", domainHeaderID: " 1", domainHeartbeat: " 2", domainManifest: " 1"} {
		if name := domain(t, s, i); !strings.HasSuffix(name, digit) {
			t.Errorf("domain %q", name)
		}
	}
	if name := domain(t, s, domainHello); strings.ContainsAny(name, "0123456789") {
		t.Errorf("domain %q", name)
	}
}

func specOtherVersion(t *testing.T, s *spectest.Spec) {
	_, err := wire.Open(runOf(t, s), changed(s.Hex(t, "message header"), 0, wire.Version+1))
	refused(t, "message", err, wire.ErrVersion)
	_, err = wire.DecodeRequest(changed(s.Hex(t, "request peer list"), 0, wire.Version+1))
	refused(t, "request", err, wire.ErrVersion)
}
