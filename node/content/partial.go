package content

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
	"atoll/node/files"
)

// partial is a file of which parts are here. Behind its bytes stand the tree, the set of its
// parts, and its size:
//
//	bytes || tree || bitmap of wire.MaxParts bits || u64le size
type partial struct {
	size int64
	tree []byte
	has  wire.PartSet
}

const (
	bitmapSize = wire.MaxParts / 8
	sizeSize   = 8
)

// tail is what stands behind the bytes.
func (p *partial) tail() []byte {
	b := append([]byte(nil), p.tree...)
	for _, word := range p.has {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return binary.LittleEndian.AppendUint64(b, uint64(p.size))
}

// openPartial reads what an earlier process left. Parts that are not what the file's digest says
// are missing again: the machine may have lost its power.
func openPartial(path string, d wire.Digest) (*partial, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := readTail(f)
	if err != nil {
		return nil, err
	}
	said := p.has
	p.has = wire.PartSet{}
	for _, i := range said.Indexes() {
		if i >= wire.PartCount(p.size) {
			continue
		}
		part := wire.Part{Index: i, Tree: p.tree, Bytes: make([]byte, wire.PartLen(p.size, i))}
		if _, err := f.ReadAt(part.Bytes, int64(i)*wire.PartSize); err != nil {
			return nil, err
		}
		if _, err := wire.OpenPart(d, part.Encode()); err == nil {
			p.has.Add(i)
		}
	}
	if p.has.Empty() {
		return nil, errors.New("it has no part that holds")
	}
	return p, nil
}

// readTail reads what stands behind the bytes.
func readTail(f *os.File) (*partial, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var b [sizeSize]byte
	if _, err := f.ReadAt(b[:], info.Size()-sizeSize); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint64(b[:])
	if size == 0 || size > wire.MaxBlob {
		return nil, fmt.Errorf("it is of %d bytes", size)
	}
	p := &partial{size: int64(size)}
	tree := info.Size() - p.size - bitmapSize - sizeSize
	if tree < sizeSize || tree > wire.MaxBlob/wire.PartSize*64 {
		return nil, errors.New("it is cut off")
	}
	tail := make([]byte, tree+bitmapSize)
	if _, err := f.ReadAt(tail, p.size); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	p.tree = tail[:tree]
	for i := range p.has {
		p.has[i] = binary.LittleEndian.Uint64(tail[tree+int64(8*i):])
	}
	return p, nil
}

// PutPart keeps a verified part. The file is in the content store once it is whole.
func (s *Content) PutPart(d wire.Digest, part wire.Part) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole[d] != nil {
		return nil
	}
	path, p := s.partPath(d), s.partly[d]
	if p == nil {
		p = &partial{size: part.Size(), tree: append([]byte(nil), part.Tree...)}
	}
	next := *p
	next.has.Add(part.Index)
	err := s.before(path)
	if err == nil {
		err = writePart(path, &next, part)
	}
	if err != nil {
		if s.partly[d] == nil {
			err = errors.Join(err, removed(path)) // it has nothing, and may take room
		}
		return fmt.Errorf("keep part %d of %v: %w", part.Index, d, err)
	}
	s.partly[d] = &next
	if !next.complete() {
		return nil
	}
	return s.finish(d, &next)
}

// complete tells whether all parts are there.
func (p *partial) complete() bool { return p.has.Len() == wire.PartCount(p.size) }

// removed removes a file that may not be there.
func removed(path string) error {
	if err := files.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writePart writes a part, and that it is there.
func writePart(path string, p *partial, part wire.Part) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(part.Bytes, int64(part.Index)*wire.PartSize)
	if err == nil {
		_, err = f.WriteAt(p.tail(), p.size)
	}
	return errors.Join(err, f.Close())
}

// finish makes a file whole whose parts are all there.
func (s *Content) finish(d wire.Digest, p *partial) error {
	from, to := s.partPath(d), filepath.Join(s.dir, name(d)+wholeEnd)
	err := s.before(to)
	if err == nil {
		err = cutAndSync(from, p.size)
	}
	if err == nil {
		err = files.Rename(from, to)
	}
	if err != nil {
		return fmt.Errorf("keep %v: %w", d, err)
	}
	delete(s.partly, d)
	s.clock++
	s.whole[d] = &file{path: to, size: p.size, own: true, used: s.clock}
	if len(s.trees) < maxTrees {
		s.trees[d] = p.tree
	}
	return nil
}

// cutAndSync cuts a file to a size and brings it to the disk.
func cutAndSync(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Sync(), f.Close())
}
