package wire_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// Gossip messages.

func specMessage(t *testing.T, s *spectest.Spec) {
	run := runOf(t, s)
	for _, row := range s.Table(t, "kinds") {
		raw := s.Hex(t, "message "+row[1])
		if raw[0] != wire.Version || strconv.Itoa(int(raw[1])) != row[0] {
			t.Errorf("%s begins with %x", row[1], raw[:2])
		}
		must[wire.Message](t)(wire.Open(run, raw))
	}
	header := s.Hex(t, "message header")
	for n := range 2 {
		_, err := wire.Open(run, header[:n])
		refused(t, "less than a kind", err, wire.ErrSize)
	}
	_, err := wire.Open(run, append(header, make([]byte, s.Number(t, "limits", "MaxMessage"))...))
	refused(t, "too many", err, wire.ErrSize)
}

func specOtherMessage(t *testing.T, s *spectest.Spec) {
	run, header := runOf(t, s), s.Hex(t, "message header")
	for _, version := range []byte{0, 1, 3, 255} {
		_, err := wire.Open(run, changed(header, 0, version))
		refused(t, "version", err, wire.ErrVersion)
	}
	for _, kind := range []byte{0, byte(len(s.Table(t, "kinds")) + 1), 255} {
		_, err := wire.Open(run, changed(header, 1, kind))
		refused(t, "kind", err, wire.ErrKind)
	}
}

// inline is the example of a header with its payload behind it.
func inline(t *testing.T, s *spectest.Spec) []byte {
	return slices.Concat(s.Hex(t, "message header"), s.Hex(t, "inline"))
}

func specInline(t *testing.T, s *spectest.Spec) {
	run := runOf(t, s)
	bare := must[wire.Message](t)(wire.Open(run, s.Hex(t, "message header")))
	raw := inline(t, s)
	m := must[wire.Message](t)(wire.Open(run, raw))
	if bare.Inline != nil || *bare.Header != *m.Header {
		t.Errorf("without a payload %+v", bare)
	}
	same(t, "payload", m.Inline, raw[2+187:])
	same(t, "payload", m.Inline, []byte(s.Text(t, "payload")))
	_, err := wire.Open(run, inlined(t, s, int(s.Number(t, "limits", "MaxInline"))))
	refused(t, "the longest", err, nil)
}

func specOtherInline(t *testing.T, s *spectest.Spec) {
	run, raw := runOf(t, s), inline(t, s)
	_, err := wire.Open(run, changed(raw, len(raw)-1, 'f'))
	refused(t, "another payload", err, wire.ErrInvalid)
	_, err = wire.Open(run, raw[:len(raw)-1])
	refused(t, "part of it", err, wire.ErrSize)
	_, err = wire.Open(run, inlined(t, s, int(s.Number(t, "limits", "MaxInline"))+1))
	refused(t, "a longer one", err, wire.ErrSize)
}

// inlined is a header with a payload of n bytes behind it, for any n.
func inlined(t testing.TB, s *spectest.Spec, n int) []byte {
	payload := make([]byte, n)
	h := must[wire.Header](t)(wire.ParseHeader(s.Hex(t, "header")))
	h.Size, h.Payload = uint32(n), wire.Sum(payload)
	signed := wire.SignHeader(keyOf(t, s), runOf(t, s), h)
	return slices.Concat([]byte{wire.Version, 1}, signed.Append(nil), payload)
}

func specInlineChoice(t *testing.T, s *spectest.Spec) {
	h := must[wire.SignedHeader](t)(wire.ParseSignedHeader(s.Hex(t, "message header")[2:]))
	same(t, "small", wire.EncodeHeader(h, []byte(s.Text(t, "payload"))), inline(t, s))
	most := make([]byte, s.Number(t, "limits", "MaxInline"))
	same(t, "the longest", wire.EncodeHeader(h, most), slices.Concat(s.Hex(t, "message header"), most))
	same(t, "none", wire.EncodeHeader(h, nil), s.Hex(t, "message header"))
}

func specLeftOut(t *testing.T, s *spectest.Spec) {
	h := must[wire.SignedHeader](t)(wire.ParseSignedHeader(s.Hex(t, "message header")[2:]))
	same(t, "large", wire.EncodeHeader(h, make([]byte, s.Number(t, "limits", "MaxInline")+1)), s.Hex(t, "message header"))
}

// fieldsOf decodes CBOR and a signature by the text, and gives the items by the
// names in the table.
func fieldsOf(t testing.TB, s *spectest.Spec, table string, b []byte) (fields map[string]any, signed []byte) {
	t.Helper()
	item, sig := decodeCBOR(t, b)
	if len(sig) != 64 {
		t.Fatalf("%d bytes follow the CBOR", len(sig))
	}
	items, rows := item.(map[uint64]any), s.Table(t, table)
	if len(items) != len(rows) {
		t.Fatalf("%d fields, table %q has %d", len(items), table, len(rows))
	}
	fields = map[string]any{}
	for i, row := range rows {
		if row[0] != strconv.Itoa(i+1) {
			t.Fatalf("key %s in row %d of table %q", row[0], i+1, table)
		}
		fields[row[1]] = items[uint64(i+1)]
	}
	return fields, b[:len(b)-len(sig)]
}

func specHeartbeat(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "message heartbeat")
	f, signed := fieldsOf(t, s, "heartbeat", raw[2:])
	m := must[wire.Message](t)(wire.Open(runOf(t, s), raw))
	if m.Size != len(raw) {
		t.Errorf("a message of %d bytes says that it came in %d", len(raw), m.Size)
	}
	b := *m.Heartbeat
	want := wire.Heartbeat{
		Author: wire.PeerID(f["author"].([]byte)), Incarnation: int64(f["incarnation"].(uint64)), Seq: f["seq"].(uint64),
		State: wire.State(f["state"].(uint64)), Steps: f["steps"].(uint64), Tokens: f["tokens"].(uint64),
		Lag: uint8(f["lag"].(uint64)), Chain: wire.Digest(f["chain"].([]byte)), StateDigest: wire.Digest(f["state digest"].([]byte)),
		Capability: f["capability"].(uint64), TokensPerSecond: f["tokens per second"].(float64), Folded: f["folded"].(uint64),
		Bits: float32(f["bits"].(float64)), PeriodMs: uint32(f["period"].(uint64)), Paused: f["paused"].(bool),
		Upload: f["upload"].(float64), Plan: uint32(f["plan"].(uint64)), Full: f["full"].(bool),
	}
	for i, v := range f["unpublished"].([]any) {
		want.Unpublished = append(want.Unpublished, v.(uint64))
		want.Closed = append(want.Closed, uint32(f["closed"].([]any)[i].(uint64)))
	}
	same(t, "decoded", wire.Marshal(b), wire.Marshal(want))
	sig := wire.Signature(raw[len(raw)-64:])
	if err := wire.Verify(want.Author, domain(t, s, domainHeartbeat), runOf(t, s), signed, sig); err != nil {
		t.Error(err)
	}
	same(t, "encoded", wire.EncodeHeartbeat(keyOf(t, s), runOf(t, s), want), raw)
}

// heartbeatOf opens the example's map with a change, signed.
func heartbeatOf(t *testing.T, s *spectest.Spec, change func(b []byte) []byte) error {
	raw := s.Hex(t, "message heartbeat")
	b := change(bytes.Clone(raw[2 : len(raw)-64]))
	sig := wire.Sign(keyOf(t, s), domain(t, s, domainHeartbeat), runOf(t, s), b)
	_, err := wire.Open(runOf(t, s), slices.Concat(raw[:2], b, sig[:]))
	return err
}

// moreKeys is the map b with one more key and value.
func moreKeys(b []byte, more ...byte) []byte {
	return slices.Concat([]byte{b[0] + 1}, b[1:], more)
}

func specHeartbeatKeys(t *testing.T, s *spectest.Spec) {
	for name, more := range map[string][]byte{"a number": {0x18, 99, 0}, "a list": {0x18, 99, 0x82, 1, 0x61, 'x'}, "of text": {0x61, 'x', 0xf6}} {
		refused(t, name, heartbeatOf(t, s, func(b []byte) []byte { return moreKeys(b, more...) }), nil)
	}
}

func specHeartbeatEncodings(t *testing.T, s *spectest.Spec) {
	for name, change := range map[string]func(b []byte) []byte{
		"a longer length": func(b []byte) []byte { return slices.Concat([]byte{0xb8, b[0] & 31}, b[1:]) },
		"a longer key":    func(b []byte) []byte { return slices.Concat(b[:1], []byte{0x18}, b[1:]) },
	} {
		refused(t, name, heartbeatOf(t, s, change), nil)
	}
}

func specHeartbeatRefused(t *testing.T, s *spectest.Spec) {
	for name, change := range map[string]func(b []byte) []byte{
		"a key twice":          func(b []byte) []byte { return moreKeys(b, 3, 5) },
		"an indefinite length": func(b []byte) []byte { return slices.Concat([]byte{0xbf}, b[1:], []byte{0xff}) },
		"bytes that follow":    func(b []byte) []byte { return append(b, 0) },
		"a tag":                func(b []byte) []byte { return slices.Concat(b[:2], []byte{0xc1}, b[2:]) },
		"an array":             func(b []byte) []byte { return []byte{0x80} },
	} {
		refused(t, name, heartbeatOf(t, s, change), wire.ErrEncoding)
	}
}

func specHeartbeatFields(t *testing.T, s *spectest.Spec) {
	open := func(change func(b *wire.Heartbeat)) error {
		m := must[wire.Message](t)(wire.Open(runOf(t, s), s.Hex(t, "message heartbeat")))
		change(m.Heartbeat)
		_, err := wire.Open(runOf(t, s), append([]byte{wire.Version, 2}, sealed(t, s, domainHeartbeat, m.Heartbeat)...))
		return err
	}
	refused(t, "as it is", open(func(*wire.Heartbeat) {}), nil)
	maxFragments := int(s.Number(t, "limits", "MaxFragments"))
	size := func(n int) func(b *wire.Heartbeat) {
		return func(b *wire.Heartbeat) { b.Closed, b.Unpublished = make([]uint32, n), make([]uint64, n) }
	}
	refused(t, "the most fragments", open(size(maxFragments)), nil)
	refused(t, "the largest lag", open(func(b *wire.Heartbeat) { b.Lag = uint8(s.Number(t, "limits", "MaxLag")) }), nil)
	limit := func(name string) int64 { return s.Number(t, "limits", name) }
	refused(t, "the least", open(func(b *wire.Heartbeat) { b.PeriodMs, b.Upload, b.Plan = uint32(limit("MinPeriodMs")), 0, 0 }), nil)
	refused(t, "the most", open(func(b *wire.Heartbeat) {
		b.PeriodMs, b.Upload, b.Plan = uint32(limit("MaxPeriodMs")), float64(limit("MaxUpload")), uint32(limit("MaxPlan"))
	}), nil)
	for name, change := range map[string]func(b *wire.Heartbeat){
		"incarnation":       func(b *wire.Heartbeat) { b.Incarnation = -1 },
		"state 0":           func(b *wire.Heartbeat) { b.State = 0 },
		"state 6":           func(b *wire.Heartbeat) { b.State = 6 },
		"fragments":         size(maxFragments + 1),
		"unequal lists":     func(b *wire.Heartbeat) { b.Closed = b.Closed[1:] },
		"lag":               func(b *wire.Heartbeat) { b.Lag = uint8(s.Number(t, "limits", "MaxLag")) + 1 },
		"minus zero":        func(b *wire.Heartbeat) { b.TokensPerSecond = math.Copysign(0, -1) },
		"negative":          func(b *wire.Heartbeat) { b.TokensPerSecond = -1 },
		"not a number":      func(b *wire.Heartbeat) { b.TokensPerSecond = math.NaN() },
		"infinite":          func(b *wire.Heartbeat) { b.TokensPerSecond = math.Inf(1) },
		"bits":              func(b *wire.Heartbeat) { b.Bits = -1 },
		"bits not a number": func(b *wire.Heartbeat) { b.Bits = float32(math.NaN()) },
		"bits infinite":     func(b *wire.Heartbeat) { b.Bits = float32(math.Inf(1)) },
		"bits minus zero":   func(b *wire.Heartbeat) { b.Bits = float32(math.Copysign(0, -1)) },
		"no period":         func(b *wire.Heartbeat) { b.PeriodMs = 0 },
		"a short period":    func(b *wire.Heartbeat) { b.PeriodMs = uint32(limit("MinPeriodMs")) - 1 },
		"a long period":     func(b *wire.Heartbeat) { b.PeriodMs = uint32(limit("MaxPeriodMs")) + 1 },
		"negative upload":   func(b *wire.Heartbeat) { b.Upload = -1 },
		"a high upload":     func(b *wire.Heartbeat) { b.Upload = 1.1 * float64(limit("MaxUpload")) },
		"no upload":         func(b *wire.Heartbeat) { b.Upload = math.NaN() },
		"upload minus zero": func(b *wire.Heartbeat) { b.Upload = math.Copysign(0, -1) },
		"a long plan":       func(b *wire.Heartbeat) { b.Plan = uint32(limit("MaxPlan")) + 1 },
	} {
		refused(t, name, open(change), wire.ErrInvalid)
	}
}

func specStates(t *testing.T, s *spectest.Spec) {
	rows := s.Table(t, "states")
	for _, row := range rows {
		if n := s.Number(t, "states", row[0]); wire.State(n).String() != row[0] {
			t.Errorf("state %d is %v, the text says %s", n, wire.State(n), row[0])
		}
	}
	if len(rows) != int(wire.Leaving) {
		t.Errorf("%d states in the text", len(rows))
	}
}

func specEquivocation(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "message equivocation proof")
	a, b := raw[2:2+187], raw[2+187:]
	if len(b) != 187 || bytes.Compare(a[:123], b[:123]) >= 0 {
		t.Error("the smaller header does not come first")
	}
	m := must[wire.Message](t)(wire.Open(runOf(t, s), raw))
	same(t, "first", m.Equivocation.A.Append(nil), a)
	same(t, "second", m.Equivocation.B.Append(nil), b)
	swapped := wire.Equivocation{A: m.Equivocation.B, B: m.Equivocation.A}
	same(t, "sorted when encoded", wire.EncodeEquivocation(swapped), raw)
	invalid := m.Equivocation.B.Header
	invalid.Steps = 0
	_, err := wire.Open(runOf(t, s), slices.Concat([]byte{wire.Version, 3}, wire.SignHeader(keyOf(t, s), runOf(t, s), invalid).Append(nil), b))
	refused(t, "a header that is not valid", err, wire.ErrInvalid)
	for _, at := range []int{2 + 186, len(raw) - 1} {
		_, err := wire.Open(runOf(t, s), changed(raw, at, raw[at]^1))
		refused(t, "another signature", err, wire.ErrSignature)
	}
	_, err = wire.Open(runOf(t, s), raw[:len(raw)-1])
	refused(t, "cut off", err, wire.ErrSize)
}

func specEquivocationOrder(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "message equivocation proof")
	_, err := wire.Open(runOf(t, s), slices.Concat(raw[:2], raw[2+187:], raw[2:2+187]))
	refused(t, "the other order", err, wire.ErrInvalid)
}

func specNoEquivocation(t *testing.T, s *spectest.Spec) {
	first := must[wire.SignedHeader](t)(wire.ParseSignedHeader(s.Hex(t, "message header")[2:]))
	open := func(change func(h *wire.Header)) error {
		h := first.Header
		change(&h)
		second := wire.SignHeader(keyOf(t, s), runOf(t, s), h)
		_, err := wire.Open(runOf(t, s), wire.EncodeEquivocation(wire.Equivocation{A: first, B: second}))
		return err
	}
	refused(t, "two deltas", open(func(h *wire.Header) { h.Tokens++ }), nil)
	refused(t, "one header", open(func(*wire.Header) {}), wire.ErrInvalid)
	refused(t, "two fragments", open(func(h *wire.Header) { h.Fragment++ }), wire.ErrInvalid)
	refused(t, "two rounds", open(func(h *wire.Header) { h.Round++ }), wire.ErrInvalid)
	other := first
	binary.BigEndian.PutUint64(other.Header.Author[:], 1)
	_, err := wire.Open(runOf(t, s), wire.EncodeEquivocation(wire.Equivocation{A: first, B: other}))
	refused(t, "two authors", err, wire.ErrInvalid)
}

// revocation is that of the text.
func revocation(t *testing.T, s *spectest.Spec) wire.SignedHeader {
	m := must[wire.Message](t)(wire.Open(runOf(t, s), s.Hex(t, "message revocation")))
	if !m.Header.Header.Revocation() {
		t.Fatalf("%+v is no revocation", m.Header.Header)
	}
	return *m.Header
}

func specRevokesSomebody(t *testing.T, s *spectest.Spec) {
	h := revocation(t, s).Header
	refused(t, "with a name", h.Validate(), nil)
	h.Certificate = wire.Digest{}
	refused(t, "without a name", h.Validate(), wire.ErrInvalid)
}

func specRevokedTwice(t *testing.T, s *spectest.Spec) {
	h := revocation(t, s).Header
	for name, change := range map[string]func(h *wire.Header){
		"two names":            func(h *wire.Header) { h.Certificate[0]++ },
		"two reasons":          func(h *wire.Header) { h.Payload[0]++ },
		"one of them a delta":  func(h *wire.Header) { h.Codec = 4 },
		"both of them, at all": func(h *wire.Header) { h.Tokens++ },
	} {
		a, b := h, h
		change(&b)
		e := wire.Equivocation{A: wire.SignHeader(keyOf(t, s), runOf(t, s), a), B: wire.SignHeader(keyOf(t, s), runOf(t, s), b)}
		_, err := wire.Open(runOf(t, s), wire.EncodeEquivocation(e))
		refused(t, name, err, wire.ErrInvalid)
	}
}
