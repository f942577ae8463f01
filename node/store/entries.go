package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// entries is a bucket of the index whose values carry a checksum of key and
// value: bbolt finds damage to its pages' structure, not to what is in them. A
// mark that reads lower than it was put would let a round be signed twice.
type entries struct{ *bbolt.Bucket }

// tailFill is how full pages are left of buckets that grow at the tail of each fragment, where
// the default, half, would stay half.
const tailFill = 0.9

// entriesOf is a bucket of checked entries.
func entriesOf(tx *bbolt.Tx, name []byte) entries {
	b := tx.Bucket(name)
	if bytes.Equal(name, bucketHeaders) || bytes.Equal(name, bucketRounds) {
		b.FillPercent = tailFill
	}
	return entries{b}
}

// sumSize is the length of the checksum, which ends the stored value.
const sumSize = crc32.Size

var sumTable = crc32.MakeTable(crc32.Castagnoli)

// Put enters a value under a key.
func (e entries) Put(k, v []byte) error {
	return e.Bucket.Put(k, binary.BigEndian.AppendUint32(bytes.Clone(v), entrySum(k, v)))
}

// Get returns the value of a key, nil if there is none. It panics if the entry
// is damaged, which is the end of the index: see Store.locked.
func (e entries) Get(k []byte) []byte {
	v := e.Bucket.Get(k)
	if v == nil {
		return nil
	}
	return checked(k, v)
}

// checked is a stored value without its checksum.
func checked(k, stored []byte) []byte {
	if n := len(stored) - sumSize; n >= 0 {
		if v := stored[:n:n]; binary.BigEndian.Uint32(stored[n:]) == entrySum(k, v) {
			return v
		}
	}
	panic(fmt.Sprintf("the entry of key %x does not match its checksum", k))
}

func entrySum(k, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(k, sumTable), sumTable, v)
}

// checkEntries looks every entry up; it panics like Get.
func checkEntries(tx *bbolt.Tx) error {
	if tx.Bucket(bucketFolder) == nil {
		return nil // it is new
	}
	for _, name := range buckets {
		if bytes.Equal(name, bucketFolder) {
			continue
		}
		b := tx.Bucket(name)
		if b == nil {
			return fmt.Errorf("it has no bucket %s", name)
		}
		seek := b.Cursor()
		err := b.ForEach(func(k, v []byte) error {
			checked(k, v)
			if found, _ := seek.Seek(k); !bytes.Equal(found, k) {
				return fmt.Errorf("the entry of key %x cannot be found", k)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return errors.Join(checkIDs(tx), checkMarks(tx))
}

// checkIDs makes sure that there are as many headers as ids, and each has its own.
func checkIDs(tx *bbolt.Tx) error {
	ids, headers := tx.Bucket(bucketIDs), tx.Bucket(bucketHeaders)
	n := 0
	err := ids.ForEach(func(id, _ []byte) error {
		n++
		if entryOf(tx, wire.Digest(id)) == nil {
			return fmt.Errorf("delta %x has no header", id)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return headers.ForEach(func(k, _ []byte) error {
		if n--; n < 0 {
			return fmt.Errorf("the header of key %x has no id", k)
		}
		return nil
	})
}

// checkMarks makes sure that no mark is missing: no own delta is above one.
func checkMarks(tx *bbolt.Tx) error {
	own := tx.Bucket(bucketOwn)
	marks := entriesOf(tx, bucketMarks)
	return own.ForEach(func(k, _ []byte) error {
		mark := marks.Get(k[:2])
		if len(mark) != 4 || binary.BigEndian.Uint32(mark) < roundOf(k) {
			return fmt.Errorf("an own delta of round %d is above its mark", roundOf(k))
		}
		return nil
	})
}
