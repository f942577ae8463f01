package wire_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"lukechampine.com/blake3/guts"
)

// Parts of blobs.

func specGetHoldings(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "holdings")
	for i, d := range fields[0].([]any) {
		same(t, "digest", r.Digests[i][:], d.([]byte))
	}
	r.Digests = make([]wire.Digest, s.Number(t, "limits", "MaxHoldings"))
	_, err := wire.DecodeRequest(r.Encode())
	refused(t, "as many as may be", err, nil)
	r.Digests = append(r.Digests, wire.Digest{})
	_, err = wire.DecodeRequest(r.Encode())
	refused(t, "one more", err, wire.ErrInvalid)
}

func specGetPart(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "part")
	same(t, "digest", r.Digest[:], fields[0].([]byte))
	same(t, "parts", fields[1].([]byte), []byte{1, 0x80})
	if !slices.Equal(r.Parts.Indexes(), []int{0, 15}) {
		t.Errorf("parts %v", r.Parts.Indexes())
	}
}

// setOf is W-42.3.
func setOf(parts ...int) []byte {
	b := []byte{}
	for _, i := range parts {
		b = append(b, make([]byte, max(0, i/8+1-len(b)))...)
		b[i/8] |= 1 << (i % 8)
	}
	return b
}

func specPartSet(t *testing.T, s *spectest.Spec) {
	for _, parts := range [][]int{nil, {0}, {7, 8}, {3, 200}, {int(s.Number(t, "limits", "MaxParts")) - 1}} {
		var set wire.PartSet
		for _, i := range parts {
			set.Add(i)
		}
		same(t, "set", wire.EncodeHoldings([]wire.PartSet{set}), wire.Marshal([][]byte{setOf(parts...)}))
		got, err := wire.DecodeHoldings(wire.Marshal([][]byte{setOf(parts...)}), 1)
		if err != nil || got[0] != set {
			t.Errorf("%v came as %v, %v", parts, got, err)
		}
	}
}

func specOtherPartSet(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "request part")
	digest := raw[5 : 5+32]
	ask := func(set []byte) error {
		_, err := wire.DecodeRequest(append([]byte{raw[0], raw[1]}, wire.Marshal([]any{digest, set})...))
		return err
	}
	longest := s.Number(t, "limits", "MaxParts") / 8
	refused(t, "the longest", ask(bytes.Repeat([]byte{1}, int(longest))), nil)
	refused(t, "a longer one", ask(bytes.Repeat([]byte{1}, int(longest)+1)), wire.ErrSize)
	refused(t, "one that ends with 0", ask([]byte{1, 0}), wire.ErrEncoding)
	refused(t, "none", ask(nil), wire.ErrInvalid)
}

func specHoldings(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body holdings")
	held := must[[]wire.PartSet](t)(wire.DecodeHoldings(raw, 2))
	if !slices.Equal(held[0].Indexes(), []int{0, 1}) || !held[1].Empty() {
		t.Errorf("%v", held)
	}
	same(t, "body", wire.EncodeHoldings(held), raw)
}

func specOtherHoldings(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body holdings")
	for _, asked := range []int{1, 3} {
		_, err := wire.DecodeHoldings(raw, asked)
		refused(t, "another number of blobs", err, wire.ErrSize)
	}
	decode := func(set []byte) error {
		_, err := wire.DecodeHoldings(wire.Marshal([][]byte{set}), 1)
		return err
	}
	longest := int(s.Number(t, "limits", "MaxParts") / 8)
	refused(t, "a set too long", decode(bytes.Repeat([]byte{1}, longest+1)), wire.ErrSize)
	refused(t, "a set that ends with 0", decode([]byte{1, 0}), wire.ErrEncoding)
	refused(t, "the largest answer", decode(bytes.Repeat([]byte{1}, longest)), nil)
}

// exampleBlob is the blob of the example.
func exampleBlob(t testing.TB, s *spectest.Spec) (blob, tree []byte) {
	tree = s.Hex(t, "blob tree")
	blob = make([]byte, binary.LittleEndian.Uint64(tree))
	for i := range blob {
		blob[i] = byte(i % 251)
	}
	return blob, tree
}

func specPart(t *testing.T, s *spectest.Spec) {
	blob, tree := exampleBlob(t, s)
	size := int(s.Number(t, "limits", "PartSize"))
	body := slices.Concat([]byte{0, 0, 0, 1}, tree, blob[size:])
	p := must[wire.Part](t)(wire.OpenPart(wire.Sum(blob), body))
	if p.Index != 1 || p.Size() != int64(len(blob)) {
		t.Errorf("part %d of %d bytes", p.Index, p.Size())
	}
	same(t, "body", p.Encode(), body)
}

func specPartBytes(t *testing.T, s *spectest.Spec) {
	blob, tree := exampleBlob(t, s)
	size := int(s.Number(t, "limits", "PartSize"))
	for i, want := range [][]byte{blob[:size], blob[size:]} {
		p := must[wire.Part](t)(wire.OpenPart(wire.Sum(blob), slices.Concat([]byte{0, 0, 0, byte(i)}, tree, want)))
		same(t, "bytes", p.Bytes, want)
		if n := wire.PartLen(int64(len(blob)), i); n != len(want) {
			t.Errorf("part %d has %d bytes, by the text %d", i, n, len(want))
		}
	}
}

// chaining is the chaining value of a node of BLAKE3 over bytes that begin at a chunk.
func chaining(b []byte, chunk uint64) [8]uint32 {
	if len(b) <= guts.ChunkSize {
		return guts.ChainingValue(guts.CompressChunk(b, &guts.IV, chunk, 0))
	}
	half := guts.ChunkSize
	for 2*half < len(b) {
		half *= 2
	}
	l, r := chaining(b[:half], chunk), chaining(b[half:], chunk+uint64(half/guts.ChunkSize))
	return guts.ChainingValue(guts.ParentNode(l, r, &guts.IV, 0))
}

// above appends the hashes above the parts, the root first.
func above(tree, b []byte, at, part int) []byte {
	if len(b) <= part {
		return tree
	}
	half := part
	for 2*half < len(b) {
		half *= 2
	}
	for _, cv := range [][8]uint32{chaining(b[:half], uint64(at/guts.ChunkSize)), chaining(b[half:], uint64((at+half)/guts.ChunkSize))} {
		for _, word := range cv {
			tree = binary.LittleEndian.AppendUint32(tree, word)
		}
	}
	return above(above(tree, b[:half], at, part), b[half:], at+half, part)
}

func specTree(t *testing.T, s *spectest.Spec) {
	part := int(s.Number(t, "limits", "PartSize"))
	blob, tree := exampleBlob(t, s)
	same(t, "the example", above(binary.LittleEndian.AppendUint64(nil, uint64(len(blob))), blob, 0, part), tree)
	for _, size := range []int{1, part, 3*part + 7, 5 * part} {
		blob := bytes.Repeat([]byte{7, 9, 1}, size)[:size]
		got, digest, err := wire.TreeOf(bytes.NewReader(blob), int64(size))
		if err != nil || digest != wire.Sum(blob) {
			t.Errorf("%d bytes: digest %v, %v", size, digest, err)
		}
		same(t, "tree", got, above(binary.LittleEndian.AppendUint64(nil, uint64(size)), blob, 0, part))
	}
}

func specOtherPart(t *testing.T, s *spectest.Spec) {
	blob, tree := exampleBlob(t, s)
	size := int(s.Number(t, "limits", "PartSize"))
	body := slices.Concat([]byte{0, 0, 0, 1}, tree, blob[size:])
	for what, wrong := range map[string][]byte{
		"another byte":        changed(body, len(body)-1, body[len(body)-1]^1),
		"another place":       changed(body, 3, 0),
		"another tree":        changed(body, 4+8, body[4+8]^1),
		"another size":        changed(body, 4, 2),
		"a place beyond":      changed(body, 3, 2),
		"a byte too few":      body[:len(body)-1],
		"no bytes":            body[:4],
		"a size of 0":         changed(body, 4, make([]byte, 8)...),
		"a size over a limit": changed(body, 4, bytes.Repeat([]byte{255}, 8)...),
	} {
		if _, err := wire.OpenPart(wire.Sum(blob), wrong); err == nil {
			t.Errorf("%s: it was taken", what)
		}
	}
	if _, err := wire.OpenPart(wire.Sum([]byte("another")), body); err == nil {
		t.Error("a part of another blob was taken")
	}
}
