package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
)

// Chunks of a snapshot stay on disk while it is fetched, so that a join that is
// cut off goes on where it was. They need no index: their names are hashes.

// PutChunk keeps a chunk, which must hash to d. Not synced.
func (s *Store) PutChunk(d wire.Digest, b []byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	if got := wire.Sum(b); got != d {
		return fmt.Errorf("put chunk %v: %w: it hashes to %v", d, ErrCorrupt, got)
	}
	if err := s.disk.writeFile(s.dir, filepath.Join(chunksDir, hexName(d)), b, unsynced); err != nil {
		return fmt.Errorf("put chunk %v: %w", d, err)
	}
	return nil
}

// HasChunk reports whether a chunk is here, damaged or not.
func (s *Store) HasChunk(d wire.Digest) bool {
	_, err := os.Stat(s.path(file{chunksDir, hexName(d)}))
	return err == nil
}

// Chunk returns a chunk after checking it against its hash. The error is
// ErrNotFound, or ErrCorrupt: fetch it again and put it.
func (s *Store) Chunk(d wire.Digest) ([]byte, error) {
	path := s.path(file{chunksDir, hexName(d)})
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotFound
	}
	if err == nil && info.Size() > wire.ChunkSize {
		err = fmt.Errorf("%w: file has %d bytes, more than %d", ErrCorrupt, info.Size(), wire.ChunkSize)
	}
	if err != nil {
		return nil, fmt.Errorf("chunk %v: %w", d, err)
	}
	b, err := readVerified(path, info.Size(), d)
	if err != nil {
		return nil, fmt.Errorf("chunk %v: %w", d, err)
	}
	return b, nil
}

// DropChunk removes a chunk that is damaged: it is fetched again.
func (s *Store) DropChunk(d wire.Digest) error {
	if err := s.writable(); err != nil {
		return err
	}
	if err := s.disk.remove(s.path(file{chunksDir, hexName(d)})); err != nil {
		return fmt.Errorf("drop chunk %v: %w", d, err)
	}
	return nil
}

// DropChunks removes all chunks: the snapshot is installed or given up.
func (s *Store) DropChunks() error {
	if err := s.writable(); err != nil {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(s.dir, chunksDir))
	for _, e := range entries {
		err = errors.Join(err, s.disk.remove(s.path(file{chunksDir, e.Name()})))
	}
	if err != nil {
		return fmt.Errorf("drop chunks: %w", err)
	}
	return nil
}
