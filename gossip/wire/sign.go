package wire

import (
	"crypto/ed25519"
	"hash"
	"slices"

	"github.com/zeebo/blake3"
)

// Domains keep what is signed or hashed for one purpose from passing for
// another. The digit of one changes when the meaning of what it is signed or hashed for
// does.
const (
	domainHeader    = "atoll header 1"
	domainHeaderID  = "atoll header id 1"
	domainHeartbeat = "atoll heartbeat 2"
	domainManifest  = "atoll manifest 1"
	domainSet       = "atoll set 1"
)

// Sum is the hash of the project: BLAKE3, 256 bits.
func Sum(b []byte) Digest { return blake3.Sum256(b) }

// NewHash is Sum of what is written to it.
func NewHash() hash.Hash { return blake3.New() }

// Sign signs bytes for one purpose (domain, under 256 bytes) in one run.
func Sign(key ed25519.PrivateKey, domain string, run RunID, b []byte) Signature {
	return Signature(ed25519.Sign(key, Statement(domain, run, b)))
}

// Verify checks a signature made by Sign. Its error is ErrSignature.
func Verify(author PeerID, domain string, run RunID, b []byte, sig Signature) error {
	if !ed25519.Verify(author[:], Statement(domain, run, b), sig[:]) {
		return ErrSignature
	}
	return nil
}

// Statement is what is signed or hashed: the domain with its length before it
// (so that no domain is a prefix of another), the run, the bytes.
func Statement(domain string, run RunID, b []byte) []byte {
	s := make([]byte, 0, 1+len(domain)+len(run)+len(b))
	s = append(s, byte(len(domain)))
	s = append(s, domain...)
	s = append(s, run[:]...)
	return append(s, b...)
}

// SetDigest is the digest by which two nodes compare the deltas they hold for
// one round: BLAKE3 over the sorted ids, zero for none. ids is not modified.
func SetDigest(ids []Digest) Digest {
	if len(ids) == 0 {
		return Digest{}
	}
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, Digest.Compare)
	b := []byte(domainSet)
	for _, id := range sorted {
		b = append(b, id[:]...)
	}
	return Sum(b)
}
