package content

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"atoll/gossip/wire"
	"atoll/node/files"
)

// Errors of a content store.
var (
	// ErrMissing says that a file is not in the content store, or not whole.
	ErrMissing = errors.New("it is not here yet")
	// ErrDamaged says that a file was not what its name says. It is no longer in the content store.
	ErrDamaged = errors.New("it is damaged")
)

const (
	wholeEnd = ".bin"
	partEnd  = ".part"
	// maxTrees bounds the hash trees in memory: 2 KiB for a shard of 8 MiB, made anew in some ms.
	maxTrees = 1024
)

// Content is a folder of files. Its methods may be called from any goroutine.
type Content struct {
	dir   string
	limit int64 // bytes that files of its own may take; 0 = any

	mu     sync.Mutex
	whole  map[wire.Digest]*file
	partly map[wire.Digest]*partial
	trees  map[wire.Digest][]byte
	needed map[wire.Digest]bool // never dropped
	clock  uint64               // counts uses
	before func(path string) error
}

// file is one that is whole.
type file struct {
	path string
	size int64
	own  bool   // of the content store, not of the user
	used uint64 // when last
}

// Open opens a content store in a folder, which it makes. limit is how many bytes its files may take, 0
// for any number. before, if it is not nil, is called before each change of a file, and its error takes
// the place of the change: so tests fill a disk, or end a process between two changes.
func Open(dir string, limit int64, before func(path string) error) (*Content, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	s := &Content{
		dir: dir, limit: limit, whole: map[wire.Digest]*file{}, partly: map[wire.Digest]*partial{},
		trees: map[wire.Digest][]byte{}, needed: map[wire.Digest]bool{}, before: before,
	}
	if before == nil {
		s.before = func(string) error { return nil }
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if err := s.find(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// find takes a file that an earlier process left.
func (s *Content) find(e fs.DirEntry) error {
	name, end := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
	raw, err := hex.DecodeString(name)
	if err != nil || len(raw) != len(wire.Digest{}) || e.IsDir() {
		return nil
	}
	d, path := wire.Digest(raw), filepath.Join(s.dir, e.Name())
	info, err := e.Info()
	if err != nil {
		return err
	}
	switch {
	case end == wholeEnd && info.Size() > 0 && info.Size() <= wire.MaxBlob:
		s.whole[d] = &file{path: path, size: info.Size(), own: true}
	case end == partEnd:
		p, err := openPartial(path, d)
		switch {
		case err != nil:
			return files.Remove(path) // it was begun and has nothing, or nothing that holds
		case p.complete():
			return s.finish(d, p) // the process ended before it got its name
		}
		s.partly[d] = p
	}
	return nil
}

// Link puts in a file of the user, which says that it has that digest. It is verified
// when it is read.
func (s *Content) Link(d wire.Digest, path string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole[d] == nil {
		s.whole[d] = &file{path: path, size: size}
	}
}

// Has reports whether a file is whole.
func (s *Content) Has(d wire.Digest) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole[d] != nil
}

// HasPart reports whether a part of a file is here, with or without the others.
func (s *Content) HasPart(d wire.Digest, index int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.partly[d]; p != nil {
		return p.has.Has(index)
	}
	return s.whole[d] != nil
}

// Whole calls f with each file that is whole, its path and its size.
func (s *Content) Whole(f func(d wire.Digest, path string, size int64)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, w := range s.whole {
		f(d, w.path, w.size)
	}
}

// Partly calls f with each file of which parts are here.
func (s *Content) Partly(f func(d wire.Digest, parts wire.PartSet)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d, p := range s.partly {
		f(d, p.has)
	}
}

// Usage is how many bytes the content store's own files take, and how many they may (0 = any).
func (s *Content) Usage() (used, limit int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used(), s.limit
}

// Files is how many files of its own the content store has, whole or not.
func (s *Content) Files() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.whole {
		if w.own {
			n++
		}
	}
	return n + len(s.partly)
}

func (s *Content) used() (used int64) {
	for _, w := range s.whole {
		if w.own {
			used += w.size
		}
	}
	for _, p := range s.partly {
		used += p.size
	}
	return used
}

// Path is where a file is that is whole.
func (s *Content) Path(d wire.Digest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.whole[d]
	if w == nil {
		return "", ErrMissing
	}
	s.clock++
	w.used = s.clock
	return w.path, nil
}

// Read reads a file and compares it with its digest. A damaged one is dropped.
func (s *Content) Read(d wire.Digest) ([]byte, error) {
	path, err := s.Path(d)
	if err != nil {
		return nil, err
	}
	var b []byte
	err = reading(path, func(f *os.File) (err error) {
		b, err = io.ReadAll(io.LimitReader(f, wire.MaxBlob+1))
		return err
	})
	if err == nil && wire.Sum(b) == d {
		return b, nil
	}
	return nil, s.takeOut(d, path, err)
}

// reading opens a file and closes it again: Windows removes none that is open.
func reading(path string, read func(*os.File) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return read(f)
}

// takeOut drops a file that is not what its name says.
func (s *Content) takeOut(d wire.Digest, path string, why error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.whole[d]
	if w == nil || w.path != path {
		return fmt.Errorf("%s: %w", path, ErrDamaged)
	}
	delete(s.whole, d)
	delete(s.trees, d)
	if why == nil {
		why = errors.New("its bytes have another digest")
	}
	if w.own && !errors.Is(why, fs.ErrNotExist) {
		why = errors.Join(why, files.Remove(path))
	}
	return fmt.Errorf("%s: %w: %w", path, ErrDamaged, why)
}

// Need says which files must stay, however little room there is; all others may go.
func (s *Content) Need(digests []wire.Digest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.needed)
	for _, d := range digests {
		s.needed[d] = true
	}
}

// Trim drops files until there is room for so many bytes more: those that nobody needs, longest
// unused first. It returns what it dropped.
func (s *Content) Trim(coming int64) (dropped []wire.Digest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.limit == 0 {
		return nil, nil
	}
	return s.dropUntil(func(used int64) bool { return used+coming <= s.limit })
}

// Shed drops all files that nobody needs. It returns what it dropped.
func (s *Content) Shed() (dropped []wire.Digest, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropUntil(func(int64) bool { return false })
}

// dropUntil drops files that nobody needs, longest unused first, until what all take is little enough.
func (s *Content) dropUntil(enough func(used int64) bool) (dropped []wire.Digest, err error) {
	used := s.used()
	for _, m := range s.idle() {
		if enough(used) {
			break
		}
		if e := s.drop(m.d); e != nil {
			err = errors.Join(err, e)
			continue
		}
		used -= m.size
		dropped = append(dropped, m.d)
	}
	return dropped, err
}

// idle is a file that may be dropped.
type idle struct {
	d    wire.Digest
	size int64
	used uint64
}

// idle are the files that nobody needs, longest unused first.
func (s *Content) idle() (may []idle) {
	for d, w := range s.whole {
		if w.own && !s.needed[d] {
			may = append(may, idle{d, w.size, w.used})
		}
	}
	for d, p := range s.partly {
		if !s.needed[d] {
			may = append(may, idle{d, p.size, 0})
		}
	}
	slices.SortFunc(may, func(a, b idle) int {
		return cmp.Or(cmp.Compare(a.used, b.used), a.d.Compare(b.d))
	})
	return may
}

// drop deletes an own file.
func (s *Content) drop(d wire.Digest) error {
	path := s.partPath(d)
	if w := s.whole[d]; w != nil {
		path = w.path
	}
	if err := removed(path); err != nil {
		return err
	}
	delete(s.whole, d)
	delete(s.partly, d)
	delete(s.trees, d)
	return nil
}

func (s *Content) partPath(d wire.Digest) string { return filepath.Join(s.dir, name(d)+partEnd) }

// name is what a file is called.
func name(d wire.Digest) string { return hex.EncodeToString(d[:]) }

// Part is a part of a file as it travels, whether the file is whole or not.
func (s *Content) Part(d wire.Digest, index int) ([]byte, error) {
	p, path, err := s.source(d, index)
	if err != nil {
		return nil, fmt.Errorf("part %d of %v: %w", index, d, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p.Bytes = make([]byte, wire.PartLen(p.Size(), index))
	_, err = f.ReadAt(p.Bytes, int64(index)*wire.PartSize)
	f.Close() // Windows removes no file that is open
	if err != nil {
		return nil, s.damagedPart(d, path, err)
	}
	b := p.Encode()
	if _, err := wire.OpenPart(d, b); err != nil {
		return nil, s.damagedPart(d, path, err)
	}
	return b, nil
}

// source is a part without its bytes, and the file that has them.
func (s *Content) source(d wire.Digest, index int) (wire.Part, string, error) {
	s.mu.Lock()
	p, w, tree := s.partly[d], s.whole[d], s.trees[d]
	s.mu.Unlock()
	switch {
	case w != nil && index >= wire.PartCount(w.size):
		return wire.Part{}, "", ErrMissing
	case w == nil && (p == nil || !p.has.Has(index)):
		return wire.Part{}, "", ErrMissing
	case w == nil:
		return wire.Part{Index: index, Tree: p.tree}, s.partPath(d), nil
	case tree == nil:
		var err error
		if tree, err = s.grow(d, w); err != nil {
			return wire.Part{}, "", err
		}
	}
	return wire.Part{Index: index, Tree: tree}, w.path, nil
}

// grow makes the tree of a file that is whole.
func (s *Content) grow(d wire.Digest, w *file) ([]byte, error) {
	var tree []byte
	var got wire.Digest
	err := reading(w.path, func(f *os.File) (err error) {
		tree, got, err = wire.TreeOf(f, w.size)
		return err
	})
	if err != nil || got != d {
		return nil, s.takeOut(d, w.path, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.trees) >= maxTrees {
		clear(s.trees)
	}
	s.trees[d] = tree
	return tree, nil
}

// damagedPart drops a file of which a part cannot be read.
func (s *Content) damagedPart(d wire.Digest, path string, why error) error {
	if s.Has(d) {
		return s.takeOut(d, path, why)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%s: %w: %w", path, ErrDamaged, errors.Join(why, s.drop(d)))
}

// Own makes sure that a file of the user is in the content store's folder as well, for programs that
// read it there: by a link where that is possible, otherwise as a copy.
func (s *Content) Own(d wire.Digest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.whole[d]
	switch {
	case w == nil:
		return ErrMissing
	case w.own:
		return nil
	}
	path := filepath.Join(s.dir, name(d)+wholeEnd)
	if err := linkOrCopy(w.path, path); err != nil {
		return fmt.Errorf("have %s in the content store's folder: %w", w.path, err)
	}
	w.path, w.own = path, true
	return nil
}

func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+partEnd, b, 0o644)
	}
	if err == nil {
		err = files.Rename(to+partEnd, to)
	}
	return err
}

// Put puts in a whole file that came otherwise than in parts. It refuses one of another digest.
func (s *Content) Put(d wire.Digest, b []byte) error {
	if wire.Sum(b) != d {
		return fmt.Errorf("%w: %d bytes have the digest %v, want %v", ErrDamaged, len(b), wire.Sum(b), d)
	}
	tree, _, err := wire.TreeOf(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for i := range wire.PartCount(int64(len(b))) {
		part := wire.Part{Index: i, Tree: tree, Bytes: b[i*wire.PartSize:][:wire.PartLen(int64(len(b)), i)]}
		if err := s.PutPart(d, part); err != nil {
			return err
		}
	}
	return nil
}
