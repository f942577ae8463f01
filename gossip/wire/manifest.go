package wire

import (
	"crypto/ed25519"
	"fmt"
)

// Manifest lists the tips that a node serves, all of one chain.
type Manifest struct {
	_ struct{} `cbor:",toarray"`

	Author    PeerID
	Fragments []FragmentManifest // in order of fragment
}

// FragmentManifest is the tip of one fragment. At round 0 it may have no
// chunks: everybody can make that tip from genesis.
type FragmentManifest struct {
	_ struct{} `cbor:",toarray"`

	Round  uint32   // the tip's round
	Closed uint32   // last round that the author had closed; at least Round
	Chain  Digest   // chain digest at Round
	State  Digest   // state digest at Round
	Size   uint64   // bytes of the encoded tip
	Chunks []Digest // BLAKE3 of each ChunkSize bytes of it
}

// ManifestSize is the most bytes of a manifest of so many fragments with tips of so many bytes each.
// It is what a node reads at most: a run of small tips has small manifests.
func ManifestSize(fragments int, tip uint64) int {
	return min(MaxManifest, manifestHead+fragments*(fragmentHead+digestItem*chunkCount(min(tip, MaxChunks*ChunkSize))))
}

// EncodeManifest signs m, whose Author it sets to the name of key, and returns
// the body that answers GetManifest. A manifest whose body is longer than
// MaxManifest, or that fails Validate, is refused by each receiver.
func EncodeManifest(key ed25519.PrivateKey, run RunID, m Manifest) []byte {
	m.Author = PeerIDOf(key)
	return seal(nil, key, domainManifest, run, m)
}

// OpenManifest decodes a manifest, validates it and verifies its signature.
func OpenManifest(run RunID, b []byte) (Manifest, error) {
	if len(b) > MaxManifest {
		return Manifest{}, fmt.Errorf("open manifest: %w: %d bytes, at most %d", ErrSize, len(b), MaxManifest)
	}
	var m Manifest
	signed, sig, err := unseal(b, &m)
	if err == nil {
		err = m.Validate()
	}
	if err == nil {
		err = Verify(m.Author, domainManifest, run, signed, sig)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("open manifest: %w", err)
	}
	return m, nil
}

// Validate checks counts and sizes. Its error names the field.
func (m Manifest) Validate() error {
	if len(m.Fragments) == 0 || len(m.Fragments) > MaxFragments {
		return invalid("fragments", len(m.Fragments), "1..%d", MaxFragments)
	}
	for i, f := range m.Fragments {
		if err := f.validate(); err != nil {
			return fmt.Errorf("fragment %d: %w", i, err)
		}
	}
	return nil
}

func (f FragmentManifest) validate() error {
	switch {
	case f.Closed < f.Round:
		return invalid("closed", f.Closed, "at least the tip's round %d", f.Round)
	case f.Round > 0 && f.Size == 0:
		return invalid("size", f.Size, "above 0 at round %d", f.Round)
	case f.Size > MaxChunks*ChunkSize:
		return invalid("size", f.Size, "at most %d", MaxChunks*ChunkSize)
	case len(f.Chunks) != chunkCount(f.Size):
		return invalid("chunks", len(f.Chunks), "%d for %d bytes", chunkCount(f.Size), f.Size)
	}
	return nil
}

func chunkCount(size uint64) int { return int((size + ChunkSize - 1) / ChunkSize) }

// ChunkLen is the length in bytes of chunk i: ChunkSize for all but the last.
func (f FragmentManifest) ChunkLen(i int) int {
	return int(min(ChunkSize, f.Size-uint64(i)*ChunkSize))
}

// CheckChunk refuses what is not the chunk of that length and digest.
func CheckChunk(size int, digest Digest, b []byte) error {
	if len(b) != size {
		return fmt.Errorf("chunk %v: %w: %d bytes, the manifest says %d", digest, ErrSize, len(b), size)
	}
	if d := Sum(b); d != digest {
		return fmt.Errorf("chunk %v: %w: digest %v", digest, ErrInvalid, d)
	}
	return nil
}

// ChunkDigests returns the digest of each ChunkSize bytes of an encoded tip.
func ChunkDigests(tip []byte) []Digest {
	digests := make([]Digest, 0, chunkCount(uint64(len(tip))))
	for len(tip) > 0 {
		n := min(ChunkSize, len(tip))
		digests = append(digests, Sum(tip[:n]))
		tip = tip[n:]
	}
	return digests
}
