package wire

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"
)

var (
	testRun  = RunID(Sum([]byte("test run")))
	otherRun = RunID(Sum([]byte("another run")))
)

// testKey returns one of 256 fixed keys.
func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func testDigest(name string) Digest { return Sum([]byte(name)) }

func testHeader() Header {
	payload := []byte("payload")
	return Header{
		Author: PeerIDOf(testKey(1)), Fragment: 3, Round: 17, Base: 16, Steps: 24, Tokens: 12288,
		Codec: 4, Size: uint32(len(payload)), Payload: Sum(payload),
	}
}

func testHeartbeat() Heartbeat {
	return Heartbeat{
		Author: PeerIDOf(testKey(1)), Incarnation: 1767225600000, Seq: 5, State: Training, Steps: 100, Tokens: 51200,
		Unpublished: []uint64{512, 0, 12288}, Closed: []uint32{4, 3, 300}, Lag: 2,
		Chain: testDigest("chain"), StateDigest: testDigest("state"), Capability: 1,
		TokensPerSecond: 12000.5, Folded: 40960, Bits: 2.5,
		PeriodMs: 2000, Upload: 2.5e6, Plan: 36, Full: true,
	}
}

func testEquivocation() Equivocation {
	a, b := testHeader(), testHeader()
	b.Tokens++
	return Equivocation{A: SignHeader(testKey(1), testRun, a), B: SignHeader(testKey(1), testRun, b)}.sorted()
}

func testManifest() Manifest {
	return Manifest{Author: PeerIDOf(testKey(1)), Fragments: []FragmentManifest{
		{Round: 7, Closed: 9, Chain: testDigest("c"), State: testDigest("h"), Size: ChunkSize + 1, Chunks: []Digest{testDigest("0"), testDigest("1")}},
		{Round: 0, Closed: 0, Chunks: []Digest{}},
	}}
}

func testRequests() []Request {
	return []Request{
		{Kind: GetGenesis, Run: testRun},
		{Kind: GetPeerList},
		{Kind: GetPayload, Digest: testDigest("id"), WaitMs: 5000},
		{Kind: GetRounds, Ranges: []Range{{Fragment: 0, From: 1, To: 16}, {Fragment: 255, From: 300, To: 300}}},
		{Kind: GetHeaders, Rounds: []RoundKey{{Fragment: 1, Round: 2}, {Fragment: 3, Round: 70000}}},
		{Kind: GetManifest},
		{Kind: GetChunk, Digest: testDigest("chunk")},
		{Kind: GetSnapshot, At: []uint32{7, 0, 70000}},
		{Kind: GetOwn},
		{Kind: GetHoldings, Digests: []Digest{testDigest("a"), testDigest("b")}},
		{Kind: GetPart, Digest: testDigest("a"), Parts: AllParts(9)},
	}
}

func testAnswers() []RangeAnswer {
	return []RangeAnswer{
		{Closed: 20, Base: 4, Chain: testDigest("c"), State: testDigest("h"), Sets: []Digest{testDigest("s"), {}}},
		{Closed: 0, Base: 0, Sets: []Digest{}},
	}
}

// testBlob is a blob of so many bytes, its tree and its digest.
func testBlob(t testing.TB, size int) (blob, tree []byte, digest Digest) {
	blob = make([]byte, size)
	for i := range blob {
		blob[i] = byte(i % 251)
	}
	tree, digest, err := TreeOf(bytes.NewReader(blob), int64(size))
	ok(t, err)
	return blob, tree, digest
}

// partOf is a part of such a blob.
func partOf(blob, tree []byte, i int) Part {
	return Part{Index: i, Tree: tree, Bytes: blob[i*PartSize:][:PartLen(int64(len(blob)), i)]}
}

// wantErr fails the test unless err wraps want.
func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flipped returns a copy of b with bit i inverted.
func flipped(b []byte, i int) []byte {
	c := bytes.Clone(b)
	c[i/8] ^= 1 << (i % 8)
	return c
}

// Generators of valid values.

func drawDigest(t *rapid.T) Digest {
	return Digest(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "digest"))
}

func drawHeader(t *rapid.T) Header {
	round := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "round")
	return Header{
		Author:   PeerID(drawDigest(t)),
		Fragment: rapid.Uint16Range(0, MaxFragments-1).Draw(t, "fragment"),
		Round:    round,
		Base:     rapid.Uint32Range(0, round-1).Draw(t, "base"),
		Steps:    rapid.Uint32Range(1, math.MaxUint32).Draw(t, "steps"),
		Tokens:   rapid.Uint64().Draw(t, "tokens"),

		Codec:   rapid.ByteMax(CodecRevocation-1).Draw(t, "codec"),
		Size:    rapid.Uint32Range(1, MaxPayload).Draw(t, "size"),
		Payload: drawDigest(t),

		Certificate: rapid.SampledFrom([]Digest{{}, testDigest("certificate")}).Draw(t, "certificate"),
	}
}

func drawHeartbeat(t *rapid.T) Heartbeat {
	n := rapid.IntRange(0, MaxFragments).Draw(t, "fragments")
	return Heartbeat{
		Incarnation:     rapid.Int64Range(0, math.MaxInt64).Draw(t, "incarnation"),
		Seq:             rapid.Uint64().Draw(t, "seq"),
		State:           State(rapid.Uint8Range(uint8(Joining), uint8(Leaving)).Draw(t, "state")),
		Steps:           rapid.Uint64().Draw(t, "steps"),
		Tokens:          rapid.Uint64().Draw(t, "tokens"),
		Unpublished:     rapid.SliceOfN(rapid.Uint64(), n, n).Draw(t, "unpublished"),
		Closed:          rapid.SliceOfN(rapid.Uint32(), n, n).Draw(t, "closed"),
		Lag:             rapid.Uint8Range(0, MaxLag).Draw(t, "lag"),
		Chain:           drawDigest(t),
		StateDigest:     drawDigest(t),
		Capability:      rapid.Uint64().Draw(t, "capability"),
		TokensPerSecond: rapid.Float64Range(0, math.MaxFloat64).Draw(t, "tokens per second"),
		Folded:          rapid.Uint64().Draw(t, "folded"),
		Bits:            rapid.Float32Range(0, math.MaxFloat32).Draw(t, "bits"),
		PeriodMs:        rapid.Uint32Range(MinPeriodMs, MaxPeriodMs).Draw(t, "period"),
		Paused:          rapid.Bool().Draw(t, "paused"),
		Upload:          rapid.Float64Range(0, MaxUpload).Draw(t, "upload"),
		Plan:            rapid.Uint32Range(0, MaxPlan).Draw(t, "plan"),
		Full:            rapid.Bool().Draw(t, "full"),
	}
}
