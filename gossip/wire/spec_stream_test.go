package wire_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// Requests.

// requested decodes an example of a request, and checks that its kind is the
// one in the table and that encoding gives the same bytes.
func requested(t testing.TB, s *spectest.Spec, kind string) (r wire.Request, fields []any) {
	t.Helper()
	raw := s.Hex(t, "request "+kind)
	r = must[wire.Request](t)(wire.DecodeRequest(raw))
	same(t, kind, r.Encode(), raw)
	if raw[0] != wire.Version || int64(raw[1]) != s.Number(t, "requests", kind) {
		t.Errorf("%s begins with %x", kind, raw[:2])
	}
	if len(raw) > 2 {
		item, rest := decodeCBOR(t, raw[2:])
		if len(rest) > 0 {
			t.Errorf("%s: %x follows", kind, rest)
		}
		fields = item.([]any)
	}
	return r, fields
}

func specRequest(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "requests") {
		raw := s.Hex(t, "request "+row[0])
		if _, fields := requested(t, s, row[0]); raw[0] != wire.Version || (len(fields) == 0) != (row[2] == "") {
			t.Errorf("%s has fields %v, by the text %s", row[0], fields, row[2])
		}
	}
	_, err := wire.DecodeRequest([]byte{1})
	refused(t, "one byte", err, wire.ErrSize)
	_, err = wire.DecodeRequest(make([]byte, s.Number(t, "limits", "MaxRequest")+1))
	refused(t, "too many", err, wire.ErrSize)
}

func specOtherRequest(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "request peer list")
	for _, kind := range []byte{0, byte(len(s.Table(t, "requests")) + 1), 255} {
		_, err := wire.DecodeRequest([]byte{wire.Version, kind})
		refused(t, "kind", err, wire.ErrKind)
	}
	_, err := wire.DecodeRequest(append(raw, 0x80))
	refused(t, "bytes where there are no fields", err, wire.ErrSize)
	_, err = wire.DecodeRequest(changed(raw, 0, 1))
	refused(t, "another version", err, wire.ErrVersion)
}

func specRequestKinds(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "requests") {
		kind := wire.RequestKind(s.Number(t, "requests", row[0]))
		if kind.String() != row[0] || strconv.Itoa(kind.MaxResponse()) != row[4] {
			t.Errorf("kind %d is %v with answers up to %d, the text says %v", kind, kind, kind.MaxResponse(), row)
		}
	}
}

func specGetGenesis(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "genesis")
	same(t, "run", r.Run[:], fields[0].([]byte))
	same(t, "run", r.Run[:], s.Hex(t, "run"))
}

func specOtherGenesis(t *testing.T, s *spectest.Spec) {
	doc := []byte(s.Text(t, "genesis"))
	run := wire.RunID(s.Hex(t, "genesis run"))
	refused(t, "the run's", wire.CheckGenesis(run, doc), nil)
	refused(t, "of another run", wire.CheckGenesis(runOf(t, s), doc), wire.ErrInvalid)
	refused(t, "with another byte", wire.CheckGenesis(run, changed(doc, 1, 'f')), wire.ErrInvalid)
	refused(t, "cut off", wire.CheckGenesis(run, doc[:len(doc)-1]), wire.ErrInvalid)
}

func specGetPeerList(t *testing.T, s *spectest.Spec) { asksAlone(t, s, "peer list", wire.GetPeerList) }

func specGetOwn(t *testing.T, s *spectest.Spec) { asksAlone(t, s, "own", wire.GetOwn) }

// asksAlone fails unless the example is a request of that kind, without fields.
func asksAlone(t *testing.T, s *spectest.Spec, name string, kind wire.RequestKind) {
	if r, fields := requested(t, s, name); fields != nil || r.Kind != kind {
		t.Errorf("%s is %v with fields %v", name, r.Kind, fields)
	}
}

func specGetCertificates(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "certificates")
	for i, d := range fields[0].([]any) {
		same(t, "digest", r.Certificates[i][:], d.([]byte))
	}
	for i, a := range fields[1].([]any) {
		same(t, "author", r.Authors[i][:], a.([]byte))
	}
	most := int(s.Number(t, "limits", "MaxAuthors"))
	r.Authors, r.Certificates = make([]wire.PeerID, most), make([]wire.Digest, most)
	if _, err := wire.DecodeRequest(r.Encode()); err != nil {
		t.Errorf("the most of both: %v", err)
	}
	for name, r := range map[string]wire.Request{
		"more authors": {Kind: r.Kind, Authors: make([]wire.PeerID, most+1)}, "more digests": {Kind: r.Kind, Certificates: make([]wire.Digest, most+1)},
	} {
		_, err := wire.DecodeRequest(r.Encode())
		refused(t, name, err, wire.ErrInvalid)
	}
}

func specCertificates(t *testing.T, s *spectest.Spec) {
	raw := slices.Concat(s.Hex(t, "body certificates"), s.Hex(t, "member certificate"))
	list := must[[][]byte](t)(wire.DecodeCertificates(raw))
	if len(list) != 1 {
		t.Fatalf("%d certificates", len(list))
	}
	same(t, "certificate", list[0], s.Hex(t, "member certificate"))
	same(t, "encoded", wire.EncodeCertificates(list), raw)
	long, many := int(s.Number(t, "limits", "MaxCertificate")), int(s.Number(t, "limits", "MaxCertificates"))
	list = make([][]byte, many+1)
	for i := range list {
		list[i] = make([]byte, long)
	}
	if _, err := wire.DecodeCertificates(wire.EncodeCertificates(list[:many])); err != nil {
		t.Errorf("the most and longest: %v", err)
	}
	_, err := wire.DecodeCertificates(wire.EncodeCertificates(list))
	refused(t, "more of them", err, wire.ErrSize)
	_, err = wire.DecodeCertificates(wire.EncodeCertificates([][]byte{make([]byte, long+1)}))
	refused(t, "a longer one", err, wire.ErrSize)
}

func specGetSnapshot(t *testing.T, s *spectest.Spec) {
	if _, fields := requested(t, s, "manifest"); fields != nil {
		t.Error("manifest has fields")
	}
	r, fields := requested(t, s, "chunk")
	same(t, "digest", r.Digest[:], fields[0].([]byte))
	r, fields = requested(t, s, "snapshot")
	for i, round := range fields[0].([]any) {
		if uint64(r.At[i]) != round.(uint64) {
			t.Errorf("round %d of fragment %d, by the text %d", r.At[i], i, round)
		}
	}
	r.At = make([]uint32, s.Number(t, "limits", "MaxFragments")+1)
	_, err := wire.DecodeRequest(r.Encode())
	refused(t, "tips of more fragments", err, wire.ErrInvalid)
}

func specNewerSnapshot(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "request newer snapshot")
	r := must[wire.Request](t)(wire.DecodeRequest(raw))
	same(t, "newer snapshot", r.Encode(), raw)
	if want := []uint32{7, wire.NewestTip, wire.NoTip}; !slices.Equal(r.At, want) {
		t.Errorf("asks for %v, by the text %v", want, r.At)
	}
}

func specGetPayload(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "payload")
	same(t, "id", r.Digest[:], fields[0].([]byte))
}

func specWait(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "payload")
	if uint64(r.WaitMs) != fields[1].(uint64) || r.WaitMs != 5000 {
		t.Errorf("wait %d, by the text %v", r.WaitMs, fields[1])
	}
	r.WaitMs = uint32(s.Number(t, "limits", "MaxWaitMs"))
	_, err := wire.DecodeRequest(r.Encode())
	refused(t, "the longest wait", err, nil)
	r.WaitMs++
	_, err = wire.DecodeRequest(r.Encode())
	refused(t, "a longer wait", err, wire.ErrInvalid)
}

func specGetRounds(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "rounds")
	for i, item := range fields[0].([]any) {
		f := item.([]any)
		want := wire.Range{Fragment: uint16(f[0].(uint64)), From: uint32(f[1].(uint64)), To: uint32(f[2].(uint64))}
		if r.Ranges[i] != want {
			t.Errorf("range %d is %v, by the text %v", i, r.Ranges[i], want)
		}
		if n := int(want.To-want.From) + 1; want.Rounds() != n {
			t.Errorf("range %d has %d rounds, both ends included %d", i, want.Rounds(), n)
		}
	}
}

func specOtherRanges(t *testing.T, s *spectest.Spec) {
	most, all := uint32(s.Number(t, "limits", "MaxRangeRounds")), int(s.Number(t, "limits", "MaxRangesRounds"))
	many := int(s.Number(t, "limits", "MaxRanges"))
	whole := slices.Repeat([]wire.Range{{From: 1, To: most}}, all/int(most))
	for name, c := range map[string]struct {
		ranges []wire.Range
		want   error
	}{
		"fragment 255":       {[]wire.Range{{Fragment: 255, From: 1, To: 1}}, nil},
		"fragment 256":       {[]wire.Range{{Fragment: 256, From: 1, To: 1}}, wire.ErrInvalid},
		"from 0":             {[]wire.Range{{From: 0, To: 1}}, wire.ErrInvalid},
		"backwards":          {[]wire.Range{{From: 2, To: 1}}, wire.ErrInvalid},
		"the longest":        {[]wire.Range{{From: 5, To: 4 + most}}, nil},
		"a longer one":       {[]wire.Range{{From: 5, To: 5 + most}}, wire.ErrInvalid},
		"all rounds":         {[]wire.Range{{From: 1, To: math.MaxUint32}}, wire.ErrInvalid},
		"the most ranges":    {slices.Repeat([]wire.Range{{From: 1, To: 1}}, many), nil},
		"more ranges":        {slices.Repeat([]wire.Range{{From: 1, To: 1}}, many+1), wire.ErrInvalid},
		"the most rounds":    {whole, nil},
		"more rounds in all": {append(slices.Clone(whole), wire.Range{From: 1, To: 1}), wire.ErrInvalid},
	} {
		_, err := wire.DecodeRequest(wire.Request{Kind: wire.GetRounds, Ranges: c.ranges}.Encode())
		refused(t, name, err, c.want)
	}
}

func specGetHeaders(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "headers")
	for i, item := range fields[0].([]any) {
		f := item.([]any)
		want := wire.RoundKey{Fragment: uint16(f[0].(uint64)), Round: uint32(f[1].(uint64))}
		if r.Rounds[i] != want {
			t.Errorf("key %d is %v, by the text %v", i, r.Rounds[i], want)
		}
	}
}

func specOtherKeys(t *testing.T, s *spectest.Spec) {
	most := int(s.Number(t, "limits", "MaxRoundKeys"))
	for name, c := range map[string]struct {
		keys []wire.RoundKey
		want error
	}{
		"the most":     {slices.Repeat([]wire.RoundKey{{Round: 1}}, most), nil},
		"more":         {slices.Repeat([]wire.RoundKey{{Round: 1}}, most+1), wire.ErrInvalid},
		"fragment 256": {[]wire.RoundKey{{Fragment: 256, Round: 1}}, wire.ErrInvalid},
		"round 0":      {[]wire.RoundKey{{Round: 0}}, wire.ErrInvalid},
	} {
		_, err := wire.DecodeRequest(wire.Request{Kind: wire.GetHeaders, Rounds: c.keys}.Encode())
		refused(t, name, err, c.want)
	}
}

// Answers.

// answered is an answer of that status: the example of one with a body, or the number alone.
func answered(t *testing.T, s *spectest.Spec, status string) []byte {
	if status == wire.OK.String() {
		return s.Hex(t, "response ok")
	}
	return []byte{byte(s.Number(t, "statuses", status))}
}

func specStatus(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "statuses") {
		raw := answered(t, s, row[0])
		r := must[wire.Response](t)(wire.DecodeResponse(raw, len(raw)))
		if int64(raw[0]) != s.Number(t, "statuses", row[0]) || r.Status.String() != row[0] {
			t.Errorf("%s is %x, decoded as %v", row[0], raw, r.Status)
		}
		same(t, row[0], r.Encode(), raw)
		same(t, "body", r.Body, raw[1:])
	}
}

func specOtherStatus(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "statuses") {
		raw := answered(t, s, row[0])
		r := must[wire.Response](t)(wire.DecodeResponse(raw, len(raw)))
		_, err := wire.DecodeResponse(append(raw, 0), len(raw)+1)
		if r.Status == wire.OK {
			refused(t, "a body", err, nil)
			continue
		}
		refused(t, "bytes after "+row[0], err, wire.ErrSize)
	}
	for _, status := range []byte{0, byte(len(s.Table(t, "statuses")) + 1), 255} {
		_, err := wire.DecodeResponse([]byte{status}, 1)
		refused(t, "status", err, wire.ErrKind)
	}
}

func specPeerList(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body peer list")
	item, rest := decodeCBOR(t, raw)
	list := must[wire.PeerList](t)(wire.DecodePeerList(raw))
	for i, part := range [][][]byte{list.Records, list.Words} {
		for j, b := range item.([]any)[i].([]any) {
			same(t, "item", part[j], b.([]byte))
		}
	}
	same(t, "encoded", list.Encode(), raw)
	same(t, "rest", rest, nil)
	for most, longest := range map[string]string{"MaxPeerList": "MaxRecord", "MaxWords": "MaxWord"} {
		many, long := int(s.Number(t, "limits", most)), int(s.Number(t, "limits", longest))
		for name, c := range map[string]struct {
			items [][]byte
			want  error
		}{
			longest:                {[][]byte{make([]byte, long)}, nil},
			"more than " + longest: {[][]byte{make([]byte, long+1)}, wire.ErrSize},
			most:                   {slices.Repeat([][]byte{{1}}, many), nil},
			"more than " + most:    {slices.Repeat([][]byte{{1}}, many+1), wire.ErrSize},
		} {
			l := wire.PeerList{Words: c.items}
			if most == "MaxPeerList" {
				l = wire.PeerList{Records: c.items}
			}
			_, err := wire.DecodePeerList(l.Encode())
			refused(t, name, err, c.want)
		}
	}
}

// Records and words of the example are none.
func specPeerListUnopened(t *testing.T, s *spectest.Spec) {
	list := must[wire.PeerList](t)(wire.DecodePeerList(s.Hex(t, "body peer list")))
	for _, b := range slices.Concat(list.Records, list.Words) {
		if len(b) > 64 {
			t.Errorf("%d bytes could be one", len(b))
		}
	}
}

// askedRounds are the ranges that the example answers.
var askedRounds = []wire.Range{{From: 1, To: 2}, {From: 1, To: 1}}

func specRounds(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body rounds")
	answers := must[[]wire.RangeAnswer](t)(wire.DecodeRounds(raw, askedRounds))
	item, rest := decodeCBOR(t, raw)
	if n := len(item.([]any)); n != len(askedRounds) || len(answers) != n || len(rest) != 0 {
		t.Errorf("%d answers, by the text %d, and %x follows", len(answers), n, rest)
	}
	same(t, "encoded", wire.EncodeRounds(answers), raw)
}

func specRoundsFields(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body rounds")
	answers := must[[]wire.RangeAnswer](t)(wire.DecodeRounds(raw, askedRounds))
	item, _ := decodeCBOR(t, raw)
	for i, one := range item.([]any) {
		f := one.([]any)
		a := answers[i]
		if uint64(a.Closed) != f[0].(uint64) || uint64(a.Base) != f[1].(uint64) || len(a.Sets) != len(f[4].([]any)) {
			t.Errorf("answer %d is %+v, by the text %v", i, a, f)
		}
		same(t, "chain", a.Chain[:], f[2].([]byte))
		same(t, "state", a.State[:], f[3].([]byte))
		for j, set := range f[4].([]any) {
			same(t, "set", a.Sets[j][:], set.([]byte))
		}
	}
}

func specOtherRounds(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body rounds")
	_, err := wire.DecodeRounds(raw, askedRounds[:1])
	refused(t, "more answers", err, wire.ErrSize)
	_, err = wire.DecodeRounds(raw, append(slices.Clone(askedRounds), wire.Range{From: 1, To: 1}))
	refused(t, "fewer answers", err, wire.ErrSize)
	_, err = wire.DecodeRounds(raw, []wire.Range{{From: 1, To: 1}, {From: 1, To: 1}})
	refused(t, "more sets than rounds", err, wire.ErrSize)
}

func specSetsLeftOut(t *testing.T, s *spectest.Spec) {
	set := wire.Digest(s.Hex(t, "set digest"))
	body := wire.EncodeRounds([]wire.RangeAnswer{{Sets: []wire.Digest{set}}, {}})
	asked := []wire.Range{{From: 1, To: 4}, {From: 1, To: 1}}
	answers := must[[]wire.RangeAnswer](t)(wire.DecodeRounds(body, asked))
	if answers[0].Set(0) != set {
		t.Errorf("the set of the first round is %v", answers[0].Set(0))
	}
	for i, a := range answers {
		for n := len(a.Sets); n < asked[i].Rounds(); n++ {
			if !a.Set(n).IsZero() {
				t.Errorf("the set of round %d of range %d is %v", 1+n, i, a.Set(n))
			}
		}
	}
}

func specSetDigest(t *testing.T, s *spectest.Spec) {
	ids := s.Hex(t, "set ids")
	a, b := ids[:32], ids[32:]
	if bytes.Compare(a, b) < 0 {
		t.Fatal("the example is in order already")
	}
	same(t, "by the text", digest(slices.Concat([]byte("atoll set 1"), b, a)), s.Hex(t, "set digest"))
	for _, set := range [][]wire.Digest{{wire.Digest(a), wire.Digest(b)}, {wire.Digest(b), wire.Digest(a)}} {
		d := wire.SetDigest(set)
		same(t, hex.EncodeToString(a[:2]), d[:], s.Hex(t, "set digest"))
	}
	if !wire.SetDigest(nil).IsZero() {
		t.Error("an empty set has a digest")
	}
}

func specHeaders(t *testing.T, s *spectest.Spec) {
	one := s.Hex(t, "message header")[2:]
	two := slices.Concat(one, s.Hex(t, "message equivocation proof")[2+187:])
	headers := must[[]wire.SignedHeader](t)(wire.DecodeHeaders(two))
	same(t, "second", headers[1].Append(nil), two[187:])
	same(t, "encoded", wire.EncodeHeaders(headers), two)
	most := int(s.Number(t, "limits", "MaxHeaders"))
	_, err := wire.DecodeHeaders(bytes.Repeat(one, most))
	refused(t, "the most", err, nil)
	_, err = wire.DecodeHeaders(bytes.Repeat(one, most+1))
	refused(t, "more", err, wire.ErrSize)
}

func specOtherHeaders(t *testing.T, s *spectest.Spec) {
	one := s.Hex(t, "message header")[2:]
	_, err := wire.DecodeHeaders(slices.Concat(one, one[1:]))
	refused(t, "cut off", err, wire.ErrSize)
	_, err = wire.DecodeHeaders(slices.Concat(one, changed(one, at(t, s, "fragment"), 1, 0)))
	refused(t, "one that is not valid", err, wire.ErrInvalid)
}

func specManifest(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body manifest")
	m := must[wire.Manifest](t)(wire.OpenManifest(runOf(t, s), raw))
	item, sig := decodeCBOR(t, raw)
	top := item.([]any)
	same(t, "author", m.Author[:], top[0].([]byte))
	signed := raw[:len(raw)-len(sig)]
	if err := wire.Verify(m.Author, domain(t, s, domainManifest), runOf(t, s), signed, wire.Signature(sig)); err != nil {
		t.Error(err)
	}
	same(t, "encoded", wire.EncodeManifest(keyOf(t, s), runOf(t, s), m), raw)
	_, err := wire.OpenManifest(runOf(t, s), changed(raw, len(raw)-1, raw[len(raw)-1]^1))
	refused(t, "another signature", err, wire.ErrSignature)
}

func specManifestFragment(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body manifest")
	m := must[wire.Manifest](t)(wire.OpenManifest(runOf(t, s), raw))
	item, _ := decodeCBOR(t, raw)
	top := item.([]any)
	for i, one := range top[1].([]any) {
		f, got := one.([]any), m.Fragments[i]
		if uint64(got.Round) != f[0].(uint64) || uint64(got.Closed) != f[1].(uint64) || got.Size != f[4].(uint64) {
			t.Errorf("fragment %d is %+v, by the text %v", i, got, f)
		}
		same(t, "chain", got.Chain[:], f[2].([]byte))
		same(t, "state", got.State[:], f[3].([]byte))
		for j, c := range f[5].([]any) {
			same(t, "chunk", got.Chunks[j][:], c.([]byte))
		}
	}
}

// specManifestSize has manifests with every number at its longest: none is longer than what is read, by more than a
// shorter head.
func specManifestSize(t *testing.T, s *spectest.Spec) {
	chunk := uint64(s.Number(t, "limits", "ChunkSize"))
	for _, c := range []struct {
		fragments int
		tip       uint64
	}{{1, 1}, {24, chunk + 1}, {24, 300 * chunk}, {256, chunk}, {2, 4096 * chunk}, {24, 4096 * chunk}} {
		f := wire.FragmentManifest{Round: math.MaxUint32, Closed: math.MaxUint32, Size: c.tip, Chunks: make([]wire.Digest, (c.tip+chunk-1)/chunk)}
		b := wire.EncodeManifest(keyOf(t, s), runOf(t, s), wire.Manifest{Fragments: slices.Repeat([]wire.FragmentManifest{f}, c.fragments)})
		if most := wire.ManifestSize(c.fragments, c.tip); len(b) > most || len(b) < most-16*(c.fragments+1) {
			t.Errorf("%+v: a manifest of %d bytes, %d are read", c, len(b), most)
		}
	}
	if most := wire.ManifestSize(256, math.MaxUint64); int64(most) != s.Number(t, "limits", "MaxManifest") {
		t.Errorf("%d bytes are read at most", most)
	}
}

// opensChanged opens the example's manifest with a change, signed again.
func opensChanged(t *testing.T, s *spectest.Spec, change func(m *wire.Manifest)) error {
	m := must[wire.Manifest](t)(wire.OpenManifest(runOf(t, s), s.Hex(t, "body manifest")))
	change(&m)
	_, err := wire.OpenManifest(runOf(t, s), sealed(t, s, domainManifest, m))
	return err
}

func specEmptyFragment(t *testing.T, s *spectest.Spec) {
	for round, want := range map[uint32]error{0: nil, 1: wire.ErrInvalid} {
		refused(t, "size 0", opensChanged(t, s, func(m *wire.Manifest) {
			m.Fragments[1] = wire.FragmentManifest{Round: round, Closed: round}
		}), want)
	}
}

func specManifestFields(t *testing.T, s *spectest.Spec) {
	open := func(change func(m *wire.Manifest)) error { return opensChanged(t, s, change) }
	chunk, most := uint64(s.Number(t, "limits", "ChunkSize")), int(s.Number(t, "limits", "MaxChunks"))
	many := int(s.Number(t, "limits", "MaxFragments"))
	refused(t, "the most fragments", open(func(m *wire.Manifest) { m.Fragments = slices.Repeat(m.Fragments[1:], many) }), nil)
	refused(t, "the largest", open(func(m *wire.Manifest) {
		m.Fragments[0].Size, m.Fragments[0].Chunks = chunk*uint64(most), make([]wire.Digest, most)
	}), nil)
	for name, change := range map[string]func(m *wire.Manifest){
		"no fragments":      func(m *wire.Manifest) { m.Fragments = nil },
		"more fragments":    func(m *wire.Manifest) { m.Fragments = slices.Repeat(m.Fragments[1:], many+1) },
		"closed below":      func(m *wire.Manifest) { m.Fragments[0].Closed = m.Fragments[0].Round - 1 },
		"nothing":           func(m *wire.Manifest) { m.Fragments[0].Size, m.Fragments[0].Chunks = 0, nil },
		"a chunk too few":   func(m *wire.Manifest) { m.Fragments[0].Chunks = m.Fragments[0].Chunks[1:] },
		"a chunk too many":  func(m *wire.Manifest) { m.Fragments[0].Size = chunk },
		"more than allowed": func(m *wire.Manifest) { m.Fragments[0].Size = chunk*uint64(most) + 1 },
		"a size that wraps": func(m *wire.Manifest) { m.Fragments[0].Size = math.MaxUint64 },
	} {
		refused(t, name, open(change), wire.ErrInvalid)
	}
}

func specChunks(t *testing.T, s *spectest.Spec) {
	size := int(s.Number(t, "limits", "ChunkSize"))
	blob := bytes.Repeat([]byte{7}, 2*size+5)
	f := wire.FragmentManifest{Size: uint64(len(blob)), Chunks: wire.ChunkDigests(blob)}
	if len(f.Chunks) != 3 {
		t.Fatalf("%d chunks", len(f.Chunks))
	}
	for i, want := range f.Chunks {
		part := blob[i*size : min((i+1)*size, len(blob))]
		if n := f.ChunkLen(i); n != len(part) {
			t.Errorf("chunk %d has %d bytes, by the text %d", i, n, len(part))
		}
		same(t, "digest", want[:], digest(part))
	}
}

func specOtherChunk(t *testing.T, s *spectest.Spec) {
	size := int(s.Number(t, "limits", "ChunkSize"))
	blob := bytes.Repeat([]byte{7}, size+5)
	f := wire.FragmentManifest{Size: uint64(len(blob)), Chunks: wire.ChunkDigests(blob)}
	for i, part := range [][]byte{blob[:size], blob[size:]} {
		check := func(b []byte) error { return wire.CheckChunk(f.ChunkLen(i), f.Chunks[i], b) }
		refused(t, "the chunk", check(part), nil)
		refused(t, "another", check(changed(part, len(part)-1, 8)), wire.ErrInvalid)
		refused(t, "a shorter one", check(part[1:]), wire.ErrSize)
		refused(t, "a longer one", check(append(part[:len(part):len(part)], 7)), wire.ErrSize)
	}
}
