package store

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
)

const checkpointFile = "checkpoint"

// A checkpoint is this magic, the state, and the digest of both. Those of builds before began with
// the digest, of the state alone: they could not be written part by part.
const checkpointMagic = "atollC\x00\x02"

// checkpointPart is how much is written and read at a time, in bytes.
const checkpointPart = 1 << 20

// PutCheckpoint keeps what state gives in place of the inner optimizer's state before. It reads part by part, so
// the whole is never in memory. An error of state keeps the one before. Durable when it returns.
func (s *Store) PutCheckpoint(state io.Reader) error {
	if err := s.writable(); err != nil {
		return err
	}
	tmp, err := s.disk.streamTemp(s.dir, state)
	if err == nil {
		err = s.disk.install(tmp, filepath.Join(s.dir, checkpointFile), synced)
	}
	if err != nil {
		return fmt.Errorf("put checkpoint: %w", errors.Join(err, s.disk.removeAny(tmp)))
	}
	return nil
}

// streamTemp writes a checkpoint to a new file under dir/tmp, durable, and returns its path, "" where there is none.
func (d Disk) streamTemp(dir string, state io.Reader) (path string, err error) {
	f, err := os.CreateTemp(filepath.Join(dir, tmpDir), "")
	if err != nil {
		return "", err
	}
	h := wire.NewHash()
	put := func(b []byte) error {
		h.Write(b)
		return d.write(f, b)
	}
	err = put([]byte(checkpointMagic))
	for part := make([]byte, checkpointPart); err == nil; {
		n, end := io.ReadFull(state, part)
		if n > 0 {
			err = put(part[:n])
		}
		if errors.Is(end, io.EOF) || errors.Is(end, io.ErrUnexpectedEOF) {
			break
		}
		err = errors.Join(err, end)
	}
	if err == nil {
		err = d.write(f, h.Sum(nil))
	}
	if err == nil {
		err = d.sync(f)
	}
	return f.Name(), errors.Join(err, f.Close())
}

// removeAny removes a file unless it has no name.
func (d Disk) removeAny(path string) error {
	if path == "" {
		return nil
	}
	return d.remove(path)
}

// Checkpoint is a state that was kept, to be read and closed.
type Checkpoint struct {
	io.Reader
	file *os.File
}

// Close implements io.Closer.
func (c *Checkpoint) Close() error { return c.file.Close() }

// Checkpoint returns what PutCheckpoint kept last, after reading it once to compare it with its digest. The error is
// ErrNotFound or ErrCorrupt: start with fresh optimizer state.
func (s *Store) Checkpoint() (*Checkpoint, error) {
	f, err := os.Open(filepath.Join(s.dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	state, err := checkedState(f)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", errors.Join(err, f.Close()))
	}
	return &Checkpoint{state, f}, nil
}

// checkedState is the part of a checkpoint that is the state, after comparing it with its digest.
func checkedState(f *os.File) (*io.SectionReader, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	const digest, magic = int64(len(wire.Digest{})), int64(len(checkpointMagic))
	size := info.Size()
	if size < digest {
		return nil, fmt.Errorf("%w: %d bytes are no checkpoint", ErrCorrupt, size)
	}
	hashed, want := io.NewSectionReader(f, digest, size-digest), io.NewSectionReader(f, 0, digest)
	state := hashed
	begin := make([]byte, magic)
	if _, err := f.ReadAt(begin, 0); err != nil {
		return nil, err
	}
	if string(begin) == checkpointMagic && size >= magic+digest {
		hashed, want = io.NewSectionReader(f, 0, size-digest), io.NewSectionReader(f, size-digest, digest)
		state = io.NewSectionReader(f, magic, size-digest-magic)
	}
	h := wire.NewHash()
	if _, err := io.CopyBuffer(h, struct{ io.Reader }{hashed}, make([]byte, checkpointPart)); err != nil {
		return nil, err
	}
	sum, err := io.ReadAll(want)
	if err != nil || !bytes.Equal(sum, h.Sum(nil)) {
		return nil, errors.Join(fmt.Errorf("%w: %d bytes do not match their hash", ErrCorrupt, size), err)
	}
	_, err = state.Seek(0, io.SeekStart)
	return state, err
}
