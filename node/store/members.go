package store

import (
	"bytes"
	"fmt"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// maxMember bounds what is kept of a member: a certificate, or an owner's statement with its reason.
const maxMember = max(wire.MaxCertificate, wire.SignedHeaderSize+wire.MaxReason)

// PutMember keeps a certificate or an owner's statement about a member, which the caller has checked. Not
// durable before a commit.
func (s *Store) PutMember(certificate []byte) error {
	if n := len(certificate); n == 0 || n > maxMember {
		return fmt.Errorf("put member: a certificate of %d bytes, want 1 to %d", n, maxMember)
	}
	key := wire.Sum(certificate)
	return s.update(func(tx *bbolt.Tx) error {
		return entriesOf(tx, bucketMembers).Put(key[:], certificate)
	})
}

// Members returns all that was put of members.
func (s *Store) Members() (certificates [][]byte, err error) {
	first, last := make([]byte, len(wire.Digest{})), bytes.Repeat([]byte{0xff}, len(wire.Digest{})+1)
	err = s.scan(bucketMembers, first, last, func(_, v []byte) error {
		certificates = append(certificates, bytes.Clone(v))
		return nil
	})
	return certificates, err
}
