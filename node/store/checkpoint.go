package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
)

const checkpointFile = "checkpoint"

// PutCheckpoint keeps the inner optimizer's state in place of the one before.
// Durable when it returns.
func (s *Store) PutCheckpoint(b []byte) error {
	if err := s.writable(); err != nil {
		return err
	}
	sum := wire.Sum(b)
	if err := s.disk.writeParts(s.dir, checkpointFile, synced, sum[:], b); err != nil {
		return fmt.Errorf("put checkpoint: %w", err)
	}
	return nil
}

// Checkpoint returns what PutCheckpoint kept last. The error is ErrNotFound or
// ErrCorrupt: start with fresh optimizer state.
func (s *Store) Checkpoint() ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(s.dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("checkpoint: %w", ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	const head = len(wire.Digest{})
	if len(b) < head || wire.Sum(b[head:]) != wire.Digest(b) {
		return nil, fmt.Errorf("checkpoint: %w: %d bytes do not match their hash", ErrCorrupt, len(b))
	}
	return b[head:], nil
}
