package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"lukechampine.com/blake3/bao"
)

// A blob is a file that the nodes of a run give each other, named by its digest: a shard of
// the run's corpus, its manifest, its tokenizer. It travels in parts, in any order and from
// several peers. BLAKE3 is a tree of hashes, and each part brings the upper levels of the
// blob's tree. So a part can be checked by itself, with the blob's digest alone.

// partGroup says that the tree's lowest level has a hash for each part: 2^8 chunks of BLAKE3,
// 1 KiB each.
const partGroup = 8

const (
	partIndex = 4  // bytes of the index before a tree
	treeHead  = 8  // bytes of the blob's size, at the begin of a tree
	treeNode  = 64 // bytes of two hashes
)

// PartSet is a set of parts of one blob.
type PartSet [MaxParts / 64]uint64

// AllParts is the set of the first n parts.
func AllParts(n int) (s PartSet) {
	for i := range n {
		s.Add(i)
	}
	return s
}

// Add adds a part.
func (s *PartSet) Add(i int) { s[i/64] |= 1 << (i % 64) }

// Has reports whether a part is in the set.
func (s PartSet) Has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// Without is what is not in o.
func (s PartSet) Without(o PartSet) PartSet {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

// With is what is in either.
func (s PartSet) With(o PartSet) PartSet {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// And is what is in both.
func (s PartSet) And(o PartSet) PartSet {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

// Len is how many parts are in the set.
func (s PartSet) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Empty reports whether there are none.
func (s PartSet) Empty() bool { return s == PartSet{} }

// Indexes are the parts in ascending order.
func (s PartSet) Indexes() (parts []int) {
	for w, word := range s {
		for ; word != 0; word &= word - 1 {
			parts = append(parts, 64*w+bits.TrailingZeros64(word))
		}
	}
	return parts
}

// bytes are the set as it travels: part i is bit i mod 8 of byte i / 8, and the last byte is
// not 0.
func (s PartSet) bytes() []byte {
	b := make([]byte, 0, MaxParts/8)
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

// partSet is the inverse of bytes.
func partSet(b []byte) (s PartSet, err error) {
	if len(b) > MaxParts/8 {
		return s, fmt.Errorf("%w: set of parts with %d bytes, at most %d", ErrSize, len(b), MaxParts/8)
	}
	if len(b) > 0 && b[len(b)-1] == 0 {
		return s, fmt.Errorf("%w: set of parts that ends with a byte of 0", ErrEncoding)
	}
	whole := append(slices.Clone(b), make([]byte, MaxParts/8-len(b))...)
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(whole[8*i:])
	}
	return s, nil
}

// PartCount is how many parts a blob of so many bytes has.
func PartCount(size int64) int { return int((size + PartSize - 1) / PartSize) }

// PartLen is the length in bytes of part i of a blob of so many bytes.
func PartLen(size int64, i int) int { return int(min(PartSize, size-int64(i)*PartSize)) }

// checkBlobSize refuses sizes that no blob has.
func checkBlobSize(size uint64) error {
	if size == 0 || size > MaxBlob {
		return fmt.Errorf("%w: blob of %d bytes, want 1..%d", ErrSize, size, MaxBlob)
	}
	return nil
}

// treeSize is the length in bytes of the tree of a blob.
func treeSize(size int64) int { return treeHead + treeNode*(PartCount(size)-1) }

// TreeOf reads a blob of so many bytes, 1 to MaxBlob, and returns its tree and its digest.
func TreeOf(r io.Reader, size int64) (tree []byte, digest Digest, err error) {
	if err := checkBlobSize(uint64(size)); err != nil {
		return nil, Digest{}, err
	}
	tree = make([]byte, treeSize(size))
	root, err := bao.Encode(writerAt(tree), r, size, partGroup, true)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return tree, root, err
}

// writerAt is memory that is written in place.
type writerAt []byte

// WriteAt implements io.WriterAt.
func (w writerAt) WriteAt(p []byte, at int64) (int, error) { return copy(w[at:], p), nil }

// Part is a part of a blob.
type Part struct {
	Index int
	Tree  []byte // of the blob: its size, and the hashes above its parts
	Bytes []byte
}

// Size is that of the blob in bytes.
func (p Part) Size() int64 { return int64(binary.LittleEndian.Uint64(p.Tree)) }

// Encode returns the body that answers GetPart.
func (p Part) Encode() []byte {
	b := make([]byte, 0, partIndex+len(p.Tree)+len(p.Bytes))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Index))
	return append(append(b, p.Tree...), p.Bytes...)
}

// OpenPart decodes a part of the blob with a digest, and refuses what is not one. The part
// shares memory with b.
func OpenPart(digest Digest, b []byte) (Part, error) {
	p, err := decodePart(b)
	if err == nil && !bao.VerifyChunk(p.Bytes, p.Tree, partGroup, uint64(p.Index)*PartSize, digest) {
		err = fmt.Errorf("%w: it is no part of blob %v", ErrInvalid, digest)
	}
	if err != nil {
		return Part{}, fmt.Errorf("open part: %w", err)
	}
	return p, nil
}

// decodePart takes a body apart, and checks nothing but lengths.
func decodePart(b []byte) (Part, error) {
	if len(b) < partIndex+treeHead || len(b) > maxPartBody {
		return Part{}, fmt.Errorf("%w: %d bytes, want %d..%d", ErrSize, len(b), partIndex+treeHead, maxPartBody)
	}
	index, b := binary.BigEndian.Uint32(b), b[partIndex:]
	size := binary.LittleEndian.Uint64(b)
	if err := checkBlobSize(size); err != nil {
		return Part{}, err
	}
	if parts := PartCount(int64(size)); int64(index) >= int64(parts) {
		return Part{}, fmt.Errorf("%w: part %d of %d", ErrInvalid, index, parts)
	}
	n := treeSize(int64(size))
	if want := n + PartLen(int64(size), int(index)); len(b) != want {
		return Part{}, fmt.Errorf("%w: %d bytes of tree and part %d, want %d", ErrSize, len(b), index, want)
	}
	return Part{Index: int(index), Tree: b[:n], Bytes: b[n:]}, nil
}

// EncodeHoldings returns the body that answers GetHoldings: for each blob that was asked for
// the parts that can be given.
func EncodeHoldings(held []PartSet) []byte {
	sets := make([][]byte, len(held))
	for i, s := range held {
		sets[i] = s.bytes()
	}
	return Marshal(sets)
}

// DecodeHoldings decodes the answer about so many blobs.
func DecodeHoldings(b []byte, asked int) ([]PartSet, error) {
	if len(b) > maxHoldingsBody {
		return nil, fmt.Errorf("decode holdings: %w: %d bytes, at most %d", ErrSize, len(b), maxHoldingsBody)
	}
	var sets [][]byte
	if err := Unmarshal(b, &sets); err != nil {
		return nil, fmt.Errorf("decode holdings: %w", err)
	}
	if len(sets) != asked {
		return nil, fmt.Errorf("decode holdings: %w: %d sets for %d blobs", ErrSize, len(sets), asked)
	}
	held := make([]PartSet, len(sets))
	for i, set := range sets {
		var err error
		if held[i], err = partSet(set); err != nil {
			return nil, fmt.Errorf("decode holdings: %w", err)
		}
	}
	return held, nil
}
