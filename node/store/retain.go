package store

import (
	"cmp"
	"encoding/binary"
	"slices"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Kept is what the payloads and bases of a folder take, in bytes.
type Kept struct {
	Payloads, Bases int64
	Dropped         int // payloads that Retain has just dropped
}

// Total is the bytes of both.
func (k Kept) Total() int64 { return k.Payloads + k.Bases }

// oldPayload is a payload that may go.
type oldPayload struct {
	id    wire.Digest
	round uint32
	size  int64
}

// Retain drops payloads of rounds up to limit[fragment], oldest first, until payloads and
// bases take at most keep bytes. It returns what they take then. Headers, records and marks
// stay, and the payloads that are needed all the same. keep 0 drops nothing.
func (s *Store) Retain(keep int64, limit []uint32, needed map[wire.Digest]bool) (Kept, error) {
	kept, old, err := s.usage(limit, needed)
	if err != nil || keep == 0 {
		return kept, err
	}
	slices.SortStableFunc(old, func(a, b oldPayload) int { return cmp.Compare(a.round, b.round) })
	for _, p := range old {
		if kept.Total() <= keep {
			break
		}
		if err := s.DropPayload(p.id); err != nil {
			return kept, err
		}
		kept.Payloads -= p.size
		kept.Dropped++
	}
	return kept, nil
}

// usage adds up what is kept, and lists the payloads that may go.
func (s *Store) usage(limit []uint32, needed map[wire.Digest]bool) (kept Kept, old []oldPayload, err error) {
	for fragment := range limit {
		err := s.scan(bucketHeaders, fragmentKey(fragment), fragmentKey(fragment+1), func(k, v []byte) error {
			id := wire.Digest(k[len(k)-len(wire.Digest{}):])
			h, held, err := parseEntry(id, v)
			if err != nil || !held {
				return err
			}
			kept.Payloads += int64(h.Header.Size)
			if round := h.Header.Round; round <= limit[fragment] && !needed[id] {
				old = append(old, oldPayload{id, round, int64(h.Header.Size)})
			}
			return nil
		})
		if err != nil {
			return Kept{}, nil, err
		}
	}
	err = s.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketBases).ForEach(func(k, v []byte) error {
			kept.Bases += int64(binary.BigEndian.Uint64(checked(k, v)[len(wire.Digest{}):]))
			return nil
		})
	})
	return kept, old, err
}
