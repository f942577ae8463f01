package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// baseSize is the length of an entry of the bases bucket: digest and size.
const baseSize = len(wire.Digest{}) + 8

// PutBase keeps the tip of a fragment after a round, as tip writes it, in place of the one
// kept for that round before. Bases are a cache and not synced; after a crash
// there are those that were put before the last commit.
func (s *Store) PutBase(fragment int, round uint32, tip io.WriterTo) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("put base of round %d: %w", round, err)
	}
	if err := s.putBase(roundKey(fragment, round), tip); err != nil {
		return fmt.Errorf("put base of fragment %d round %d: %w", fragment, round, err)
	}
	return nil
}

func (s *Store) putBase(key []byte, tip io.WriterTo) error {
	if err := s.writable(); err != nil {
		return err
	}
	tmp, entry, err := s.writeBase(unsynced, tip)
	if err != nil {
		return err
	}
	return s.placeTemp(tmp, baseFile(key, entry), unsynced, func(place func() error) error {
		return s.updateAfter(place, func(tx *bbolt.Tx) error {
			b := entriesOf(tx, bucketBases)
			s.retireBase(b, key)
			return b.Put(key, entry)
		})
	})
}

// writeBase writes a tip to a file that has no name yet, and returns its entry: the digest and the size. The
// bytes are never in memory as a whole.
func (s *Store) writeBase(sync bool, tip io.WriterTo) (tmp string, entry []byte, err error) {
	h, size := wire.NewHash(), int64(0)
	tmp, err = s.disk.fillTemp(s.dir, sync, func(w io.Writer) error {
		var err error
		size, err = tip.WriteTo(io.MultiWriter(w, h))
		return err
	})
	return tmp, binary.BigEndian.AppendUint64(h.Sum(nil), uint64(size)), err
}

// Base returns a kept base after checking it against its hash. The error is
// ErrNotFound or ErrCorrupt.
func (s *Store) Base(fragment int, round uint32) ([]byte, error) {
	if err := checkFragment(fragment); err != nil {
		return nil, fmt.Errorf("base of round %d: %w", round, err)
	}
	var entry []byte
	key := roundKey(fragment, round)
	err := s.view(func(tx *bbolt.Tx) error {
		entry = bytes.Clone(entriesOf(tx, bucketBases).Get(key))
		return nil
	})
	if err == nil && len(entry) != baseSize {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("base of fragment %d round %d: %w", fragment, round, err)
	}
	size := int64(binary.BigEndian.Uint64(entry[len(wire.Digest{}):]))
	b, err := readVerified(s.path(baseFile(key, entry)), size, wire.Digest(entry))
	if err != nil {
		return nil, fmt.Errorf("base of fragment %d round %d: %w", fragment, round, err)
	}
	return b, nil
}

// Bases returns the rounds of the kept bases of a fragment, ascending.
func (s *Store) Bases(fragment int) ([]uint32, error) {
	if err := checkFragment(fragment); err != nil {
		return nil, fmt.Errorf("bases: %w", err)
	}
	var rounds []uint32
	err := s.view(func(tx *bbolt.Tx) error {
		for _, k := range keysBetween(entriesOf(tx, bucketBases), fragmentKey(fragment), fragmentKey(fragment+1)) {
			rounds = append(rounds, roundOf(k))
		}
		return nil
	})
	return rounds, err
}

// BaseDigest returns the digest of a kept base without reading it, or
// ErrNotFound.
func (s *Store) BaseDigest(fragment int, round uint32) (d wire.Digest, err error) {
	if err := checkFragment(fragment); err != nil {
		return d, fmt.Errorf("base of round %d: %w", round, err)
	}
	err = s.view(func(tx *bbolt.Tx) error {
		entry := entriesOf(tx, bucketBases).Get(roundKey(fragment, round))
		if len(entry) != baseSize {
			return fmt.Errorf("base of fragment %d round %d: %w", fragment, round, ErrNotFound)
		}
		d = wire.Digest(entry[:len(d)])
		return nil
	})
	return d, err
}

// DropBase forgets a base. The file goes with the next commit. Dropping one that
// is not here does nothing.
func (s *Store) DropBase(fragment int, round uint32) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("drop base of round %d: %w", round, err)
	}
	return s.update(func(tx *bbolt.Tx) error {
		b := entriesOf(tx, bucketBases)
		s.retireBase(b, roundKey(fragment, round))
		return b.Delete(roundKey(fragment, round))
	})
}

// retireBase puts the file of a base on the list of those that may go.
func (s *Store) retireBase(b entries, key []byte) {
	if old := b.Get(key); len(old) == baseSize {
		s.stale = append(s.stale, baseFile(key, old))
	}
}

// baseFile is where a base is. The digest in the name lets a new base for the
// same round stand beside the old one until the index has changed over.
func baseFile(key, entry []byte) file {
	const digits = 8
	return file{basesDir, fmt.Sprintf("%d-%d-%x", binary.BigEndian.Uint16(key), roundOf(key), entry[:digits])}
}

// baseInIndex reports whether the index has the base of that file name.
func baseInIndex(tx *bbolt.Tx, name string) bool {
	var fragment int
	var round uint32
	if _, err := fmt.Sscanf(name, "%d-%d-", &fragment, &round); err != nil || checkFragment(fragment) != nil {
		return false
	}
	key := roundKey(fragment, round)
	entry := entriesOf(tx, bucketBases).Get(key)
	return len(entry) == baseSize && baseFile(key, entry).name == name
}
