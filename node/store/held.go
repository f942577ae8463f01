package store

import (
	"bytes"
	"encoding/binary"
	"math"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// What payloads take is added up as they come and go, by round and by fragment, so
// that retention reads no header of what it keeps.

// inIndex is the layer of the headers that are in the index itself.
const inIndex = 0

// heldKey is the key of what payloads of a round take whose headers are in a layer.
func heldKey(fragment int, round, layer uint32) []byte {
	return binary.BigEndian.AppendUint32(roundKey(fragment, round), layer)
}

// weigh adds bytes, which may be negative, to what the payloads of a round take whose
// headers are in the index.
func weigh(tx *bbolt.Tx, fragment int, round uint32, more int64) error {
	if more == 0 {
		return nil
	}
	held, key := entriesOf(tx, bucketHeld), heldKey(fragment, round, inIndex)
	sum := more
	if v := held.Get(key); v != nil {
		sum += heldBytes(v)
	}
	var err error
	if sum == 0 {
		err = held.Delete(key)
	} else {
		err = held.Put(key, binary.BigEndian.AppendUint64(nil, uint64(sum)))
	}
	if err != nil {
		return err
	}
	return use(tx, fragment, more)
}

// use adds bytes to what the payloads of a fragment take.
func use(tx *bbolt.Tx, fragment int, more int64) error {
	usage, key := entriesOf(tx, bucketUsage), fragmentKey(fragment)
	sum := more
	if v := usage.Get(key); v != nil {
		sum += heldBytes(v)
	}
	return usage.Put(key, binary.BigEndian.AppendUint64(nil, uint64(sum)))
}

// heldBytes are the bytes in an entry of the buckets held and usage.
func heldBytes(v []byte) int64 { return int64(binary.BigEndian.Uint64(v)) }

// payloadBytes is what the payload of an entry of the headers bucket takes.
func payloadBytes(id wire.Digest, v []byte) int64 {
	if v == nil {
		return 0
	}
	h, held, err := parseEntry(id, v)
	if err != nil || !held {
		return 0
	}
	return int64(h.Header.Size)
}

// usage is what payloads and bases take.
func usage(tx *bbolt.Tx) (kept Kept, err error) {
	err = tx.Bucket(bucketUsage).ForEach(func(k, v []byte) error {
		kept.Payloads += heldBytes(checked(k, v))
		return nil
	})
	if err != nil {
		return kept, err
	}
	return kept, tx.Bucket(bucketBases).ForEach(func(k, v []byte) error {
		kept.Bases += int64(binary.BigEndian.Uint64(checked(k, v)[len(wire.Digest{}):]))
		return nil
	})
}

// none is a round beyond the last.
const none = math.MaxUint32 + 1

// firstHeld is the first round of a fragment from one on, up to a last one, that has
// payloads; none if there is none.
func firstHeld(tx *bbolt.Tx, fragment int, from, last uint32) uint64 {
	k, _ := entriesOf(tx, bucketHeld).Cursor().Seek(roundKey(fragment, from))
	if !bytes.HasPrefix(k, fragmentKey(fragment)) || roundOf(k) > last {
		return none
	}
	return uint64(roundOf(k))
}
