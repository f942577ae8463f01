package build

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"atoll/optimizer/trainer/corpus/shards"
)

// Documents wait in buckets for their order: bucket n has those whose hash begins with the
// byte n. One bucket at a time is sorted in memory, which is why there are so many.
const bucketCount = 256

// bucketBuffer is what is kept of each bucket before it is written.
const bucketBuffer = 32 << 10

// buckets are files of records that grow. One without records has no file.
type buckets struct {
	dir     string
	files   [bucketCount]*os.File
	writers [bucketCount]*bufio.Writer
	sizes   [bucketCount]int64
	changed [bucketCount]bool // since the last sync
}

func bucketFile(dir string, n int) string { return filepath.Join(dir, fmt.Sprintf("%02x", n)) }

// openBuckets opens the buckets of a folder as they were at these sizes. What was added
// later goes: it comes again.
func openBuckets(dir string, sizes [bucketCount]int64) (*buckets, error) {
	b := &buckets{dir: dir, sizes: sizes}
	for n, size := range sizes {
		err := os.Truncate(bucketFile(dir, n), size)
		if err != nil && !(size == 0 && errors.Is(err, os.ErrNotExist)) {
			return nil, err
		}
	}
	return b, nil
}

func (b *buckets) open(n int) error {
	f, err := os.OpenFile(bucketFile(b.dir, n), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	b.files[n], b.writers[n] = f, bufio.NewWriterSize(f, bucketBuffer)
	return nil
}

func (b *buckets) close() error {
	var errs []error
	for _, f := range b.files {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func (b *buckets) add(r record) error {
	n := int(r.hash[0])
	if b.files[n] == nil {
		if err := b.open(n); err != nil {
			return err
		}
	}
	encoded := r.append(nil)
	b.sizes[n] += int64(len(encoded))
	b.changed[n] = true
	_, err := b.writers[n].Write(encoded)
	return err
}

// sync brings what was added to the disk.
func (b *buckets) sync() error {
	for n, changed := range b.changed {
		if !changed {
			continue
		}
		if err := errors.Join(b.writers[n].Flush(), b.files[n].Sync()); err != nil {
			return err
		}
		b.changed[n] = false
	}
	return nil
}

// record is a document in tokens, as the bytes of a shard have them.
type record struct {
	hash   shards.Digest
	text   uint32 // bytes of text
	tokens []byte
}

const recordHeader = len(shards.Digest{}) + 4 + 4

func (r record) append(b []byte) []byte {
	b = append(b, r.hash[:]...)
	b = binary.LittleEndian.AppendUint32(b, r.text)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(r.tokens)))
	return append(b, r.tokens...)
}

// readBucket returns the documents of a bucket in order, each once.
func readBucket(dir string, n int) ([]record, error) {
	b, err := os.ReadFile(bucketFile(dir, n))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []record
	for len(b) > 0 {
		if len(b) < recordHeader {
			return nil, fmt.Errorf("%s ends within a record", bucketFile(dir, n))
		}
		r := record{hash: shards.Digest(b), text: binary.LittleEndian.Uint32(b[32:])}
		length := int(binary.LittleEndian.Uint32(b[36:]))
		if b = b[recordHeader:]; length > len(b) {
			return nil, fmt.Errorf("%s ends within a record", bucketFile(dir, n))
		}
		r.tokens, b = b[:length:length], b[length:]
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b record) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	return slices.CompactFunc(all, func(a, b record) bool { return a.hash == b.hash }), nil
}
