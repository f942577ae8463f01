// Package pages looks for damage in an index of bbolt by its bytes alone: nothing of it is mapped into memory or trusted.
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
)

// bbolt's file format, in the machine's own byte order. Every page, and every
// bucket kept inline, begins with id u64, flags u16, number of elements u16 and
// overflow u32, which is how many pages it goes on for.
const (
	pageHeader = 16
	// In the first two pages follow magic, version, page size and flags u32, root
	// page, sequence, free list, number of pages and transaction u64, and a checksum
	// of these.
	headSize = 56
	// An element of a branch is position and key length u32, child u64; one of a
	// leaf is flags, position, key length and value length u32. The position of the
	// key counts from the element; the value follows the key.
	elementSize = 16
	// The value of a bucket's element is root page and sequence u64. A root of zero
	// says that its only page follows.
	bucketSize = 16

	branchPage = 0x01
	leafPage   = 0x02
	headPage   = 0x04
	freePage   = 0x10

	bucketElement = 0x01

	// manyFree as the free list's number of elements says that the first u64 is it.
	manyFree = 0xffff
)

var native = binary.NativeEndian

// pages walks over an index as plain bytes. bbolt trusts the lengths and positions
// in its map, and its own check runs on its own goroutine, where a fault ends the
// process. What has passed here leads nowhere outside its page. bbolt's check would
// not do in a child process either. It passes an index with one damaged head, which
// may lack the marks of the last commit, values that end outside their page, and
// damage in buckets kept inline.
type pages struct {
	file     io.ReaderAt
	pageSize int
	used     []bool // by page: the walk has come to it
}

// Check looks for damage in the structure of an index of size bytes. Both
// heads must be whole, every page free or used exactly once, and keys in order.
// It reads the file once.
func Check(file io.ReaderAt, pageSize int, size int64) error {
	p := &pages{file: file, pageSize: pageSize}
	head, err := p.head()
	if err != nil {
		return err
	}
	root, free, count := native.Uint64(head[16:]), native.Uint64(head[32:]), native.Uint64(head[40:])
	if whole := uint64(size) / uint64(pageSize); count > whole {
		return fmt.Errorf("it has %d bytes, %d of %d pages", size, whole, count)
	}
	p.used = make([]bool, count)
	if err := errors.Join(p.use(0), p.use(1)); err != nil {
		return err
	}
	if err := p.walkFree(free); err != nil {
		return err
	}
	if err := p.walk(root, nil, nil); err != nil {
		return err
	}
	if lost := slices.Index(p.used, false); lost >= 0 {
		return fmt.Errorf("page %d is neither used nor free", lost)
	}
	return nil
}

// head returns the newer of the two heads. bbolt is content with one whole head,
// but the older one knows nothing of the last commit or its marks. A head fits a
// sector, so that a loss of power tears none.
func (p *pages) head() ([]byte, error) {
	var newest []byte
	for id := range 2 {
		page := make([]byte, pageHeader+headSize+8)
		if _, err := p.file.ReadAt(page, int64(id)*int64(p.pageSize)); err != nil {
			return nil, fmt.Errorf("page %d: %w", id, err)
		}
		if own, flags := native.Uint64(page), native.Uint16(page[8:]); own != uint64(id) || flags != headPage {
			return nil, fmt.Errorf("page %d says that it is %d, of kind %#x", id, own, flags)
		}
		head := page[pageHeader:]
		h := fnv.New64a()
		h.Write(head[:headSize])
		if h.Sum64() != native.Uint64(head[headSize:]) {
			return nil, fmt.Errorf("page %d does not match its checksum", id)
		}
		if size := native.Uint32(head[8:]); size != uint32(p.pageSize) {
			return nil, fmt.Errorf("page %d says that pages have %d bytes, not %d", id, size, p.pageSize)
		}
		if newest == nil || native.Uint64(head[48:]) > native.Uint64(newest[48:]) {
			newest = head
		}
	}
	return newest, nil
}

// use records that the walk has come to a page.
func (p *pages) use(id uint64) error {
	if id >= uint64(len(p.used)) {
		return fmt.Errorf("page %d is beyond the last of %d", id, len(p.used))
	}
	if p.used[id] {
		return fmt.Errorf("page %d is in two places", id)
	}
	p.used[id] = true
	return nil
}

// read records a page as used and returns it with the pages that it goes on for.
func (p *pages) read(id uint64) ([]byte, error) {
	if err := p.use(id); err != nil {
		return nil, err
	}
	header := make([]byte, pageHeader)
	at := int64(id) * int64(p.pageSize)
	if _, err := p.file.ReadAt(header, at); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	if own := native.Uint64(header); own != id {
		return nil, fmt.Errorf("page %d says that it is %d", id, own)
	}
	more := uint64(native.Uint32(header[12:]))
	for next := id + 1; next <= id+more; next++ {
		if err := p.use(next); err != nil {
			return nil, fmt.Errorf("page %d goes on for %d pages: %w", id, more, err)
		}
	}
	page := make([]byte, (1+int(more))*p.pageSize)
	if _, err := p.file.ReadAt(page, at); err != nil {
		return nil, fmt.Errorf("page %d: %w", id, err)
	}
	return page, nil
}

// walkFree walks over the free list, whose pages are used and which lists those
// that are not.
func (p *pages) walkFree(id uint64) error {
	page, err := p.read(id)
	if err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	if flags := native.Uint16(page[8:]); flags != freePage {
		return fmt.Errorf("page %d is of kind %#x, not the free list", id, flags)
	}
	count, list := uint64(native.Uint16(page[10:])), page[pageHeader:]
	if count == manyFree {
		count, list = native.Uint64(list), list[8:]
	}
	if room := uint64(len(list) / 8); count > room {
		return fmt.Errorf("page %d lists %d free pages and has room for %d", id, count, room)
	}
	for i := range count {
		if err := p.use(native.Uint64(list[8*i:])); err != nil {
			return fmt.Errorf("free list: %w", err)
		}
	}
	return nil
}

// walk walks over a page of a bucket and those below it, whose keys are from and
// above, and below to; nil says any.
func (p *pages) walk(id uint64, from, to []byte) error {
	page, err := p.read(id)
	if err != nil {
		return err
	}
	switch flags := native.Uint16(page[8:]); flags {
	case branchPage:
		err = p.walkBranch(page, from, to)
	case leafPage:
		err = p.walkLeaf(page, from, to)
	default:
		err = fmt.Errorf("it is of kind %#x", flags)
	}
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	return nil
}

func (p *pages) walkBranch(page, from, to []byte) error {
	elements, err := elementsOf(page)
	if err != nil {
		return err
	}
	if elements == 0 {
		return errors.New("a branch with nothing below it")
	}
	keys := make([][]byte, elements, elements+1)
	for i := range elements {
		e := element(page, i)
		if keys[i], err = inPage(e, native.Uint32(e), uint64(native.Uint32(e[4:]))); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	if err := inOrder(keys, from, to); err != nil {
		return err
	}
	keys = append(keys, to)
	for i := range elements {
		if err := p.walk(native.Uint64(element(page, i)[8:]), keys[i], keys[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (p *pages) walkLeaf(page, from, to []byte) error {
	elements, err := elementsOf(page)
	if err != nil {
		return err
	}
	keys := make([][]byte, elements)
	for i := range elements {
		e := element(page, i)
		pos, key, value := native.Uint32(e[4:]), native.Uint32(e[8:]), native.Uint32(e[12:])
		both, err := inPage(e, pos, uint64(key)+uint64(value))
		if err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
		keys[i] = both[:key]
		if native.Uint32(e)&bucketElement == 0 {
			continue
		}
		if err := p.walkBucket(both[key:]); err != nil {
			return fmt.Errorf("bucket %q: %w", keys[i], err)
		}
	}
	return inOrder(keys, from, to)
}

// walkBucket walks over the bucket that is an element's value.
func (p *pages) walkBucket(value []byte) error {
	if len(value) < bucketSize {
		return fmt.Errorf("it has %d bytes", len(value))
	}
	if root := native.Uint64(value); root != 0 {
		return p.walk(root, nil, nil)
	}
	page := value[bucketSize:]
	if len(page) < pageHeader || native.Uint16(page[8:]) != leafPage {
		return errors.New("what it has inline is no leaf")
	}
	return p.walkLeaf(page, nil, nil)
}

// elementsOf is the number of a page's elements, which fit it.
func elementsOf(page []byte) (int, error) {
	n := int(native.Uint16(page[10:]))
	if room := (len(page) - pageHeader) / elementSize; n > room {
		return 0, fmt.Errorf("it has %d elements and room for %d", n, room)
	}
	return n, nil
}

// element is a page from its i-th element on.
func element(page []byte, i int) []byte { return page[pageHeader+i*elementSize:] }

// inPage is size bytes at pos of what is left of a page.
func inPage(rest []byte, pos uint32, size uint64) ([]byte, error) {
	end := uint64(pos) + size
	if end > uint64(len(rest)) {
		return nil, fmt.Errorf("it ends at %d of %d bytes", end, len(rest))
	}
	return rest[pos:end], nil
}

// inOrder makes sure that keys ascend, from from and above to below to.
func inOrder(keys [][]byte, from, to []byte) error {
	for i, k := range keys {
		switch {
		case i == 0 && from != nil && bytes.Compare(k, from) < 0,
			i > 0 && bytes.Compare(k, keys[i-1]) <= 0,
			to != nil && bytes.Compare(k, to) >= 0:
			return fmt.Errorf("key %x is out of order", k)
		}
	}
	return nil
}
