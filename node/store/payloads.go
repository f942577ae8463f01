package store

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// blockRounds is how many rounds of a fragment share a folder of payloads. With 16 deltas a
// round it has 1,024 files, which no file system minds.
const blockRounds = 64

// payloadFile is where the payload of a delta is.
func payloadFile(id wire.Digest, h wire.Header) file {
	return file{deltasDir, blockName(int(h.Fragment), h.Round/blockRounds) + "/" + hexName(id)}
}

// blockName is the folder, in that of the payloads, of a block of rounds.
func blockName(fragment int, block uint32) string { return fmt.Sprintf("%03d/%08d", fragment, block) }

// parseBlock is the inverse of blockName.
func parseBlock(name string) (fragment int, block uint32, ok bool) {
	n, err := fmt.Sscanf(name, "%d/%d", &fragment, &block)
	ok = err == nil && n == 2 && checkFragment(fragment) == nil && block <= MaxRound/blockRounds
	return fragment, block, ok && blockName(fragment, block) == name
}

// roundsOf are the first and the last round of a block.
func roundsOf(block uint32) (first, last uint32) {
	return block * blockRounds, block*blockRounds + blockRounds - 1
}

// payloadNamed reports whether a file is the payload of a delta, where it is expected. Where
// a segment is damaged that may name it, it is.
func (s *Store) payloadNamed(tx *bbolt.Tx, name string) bool {
	dir, base := filepath.Split(filepath.ToSlash(name))
	fragment, block, ok := parseBlock(strings.TrimSuffix(dir, "/"))
	id, isHex := parseHexName(base)
	if !ok || !isHex {
		return false
	}
	if v := entryOf(tx, id); v != nil {
		h, held, err := parseEntry(id, v)
		return err != nil || held && payloadFile(id, h.Header).name == filepath.ToSlash(name)
	}
	first, last := roundsOf(block)
	at, err := s.sealedIn(tx, fragment, first, last, id)
	return err != nil || at != nil && at.holds(tx)
}

// blockHeld reports whether a block has payloads.
func blockHeld(tx *bbolt.Tx, fragment int, block uint32) bool {
	first, last := roundsOf(block)
	return firstHeld(tx, fragment, first, last) != none
}

// sweepDeltas removes payloads that are not named. A block is looked at if a crash may have left something there. That is so in
// those from the oldest kept base on, where payloads come, and in those up to the oldest
// payload, where they go.
func (s *Store) sweepDeltas() error {
	top, err := os.ReadDir(filepath.Join(s.dir, deltasDir))
	if err != nil {
		return err
	}
	for _, e := range top {
		if e.IsDir() {
			err = s.sweepFragment(e.Name())
		} else {
			err = s.removeUnnamed(file{deltasDir, e.Name()})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) sweepFragment(name string) error {
	blocks, err := os.ReadDir(s.path(file{deltasDir, name}))
	if err != nil {
		return err
	}
	for _, b := range blocks {
		in := name + "/" + b.Name()
		fragment, block, ok := parseBlock(in)
		if ok && !s.mayHaveLitter(fragment, block) {
			continue
		}
		if err := s.sweepFiles(deltasDir, in); err != nil {
			return err
		}
		if ok && !blockHeld(s.tx, fragment, block) {
			s.dropFolder(file{deltasDir, in})
		}
	}
	return nil
}

// mayHaveLitter says whether a crash may have left a payload in a block that is not named.
func (s *Store) mayHaveLitter(fragment int, block uint32) bool {
	from := uint32(0)
	if k, _ := entriesOf(s.tx, bucketBases).Cursor().Seek(fragmentKey(fragment)); len(k) == roundKeySize && int(k[0])<<8|int(k[1]) == fragment {
		from = roundOf(k)
	}
	oldest := firstHeld(s.tx, fragment, 0, MaxRound)
	return !blockHeld(s.tx, fragment, block) || block >= from/blockRounds || uint64(block) <= oldest/blockRounds
}

// sweepFiles removes the files of a folder that are not named.
func (s *Store) sweepFiles(sub, name string) error {
	entries, err := os.ReadDir(s.path(file{sub, name}))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := s.removeUnnamed(file{sub, path.Join(name, e.Name())}); err != nil {
			return err
		}
	}
	return nil
}

// makeFolder makes the folder that a file is to be in, and its name durable, unless
// this process has done so.
func (s *Store) makeFolder(f file) error {
	dir := filepath.Dir(s.path(f))
	if s.made[dir] {
		return nil
	}
	at := filepath.Join(s.dir, f.sub)
	for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(f.name)), "/") {
		next := filepath.Join(at, part)
		if err := errors.Join(s.disk.mkdir(next), s.disk.syncDir(at)); err != nil {
			return err
		}
		at = next
	}
	if s.made == nil {
		s.made = map[string]bool{}
	}
	s.made[dir] = true
	return nil
}

// dropFolder removes a folder if it is empty. One that stays is removed another time.
func (s *Store) dropFolder(f file) {
	if s.disk.rmdir(s.path(f)) == nil {
		delete(s.made, s.path(f))
	}
}
