package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"atoll/gossip/wire"
	"atoll/node/files"

	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

const (
	// lockTimeout bounds the wait for the folder's lock: long enough for a
	// process that is just exiting, short enough not to look like a hang.
	lockTimeout = 500 * time.Millisecond

	// format is the version of the folder's layout.
	format = "3"

	indexFile = "index.db"
)

// Buckets of the index. Integers in keys are big-endian, so that keys sort.
var (
	bucketFolder       = []byte("folder")       // "format", "run"
	bucketIDs          = []byte("ids")          // id -> fragment round author
	bucketHeaders      = []byte("headers")      // fragment round author id -> held flag, signed header
	bucketOwn          = []byte("own")          // fragment round -> id, meta
	bucketMarks        = []byte("marks")        // fragment -> round
	bucketRounds       = []byte("rounds")       // fragment round -> chain, state, folded ids
	bucketBases        = []byte("bases")        // fragment round -> digest, size
	bucketEquivocation = []byte("equivocation") // fragment round author -> two signed headers
	bucketMembers      = []byte("members")      // digest of a certificate -> certificate
	bucketMeta         = []byte("meta")         // the caller's keys
	bucketHeld         = []byte("held")         // fragment round layer -> bytes of payloads; of a segment, which of its headers have them
	bucketUsage        = []byte("usage")        // fragment -> bytes of payloads
	bucketSegments     = []byte("segments")     // fragment number -> first, last and last valid round, size, digest
	bucketAuthors      = []byte("authors")      // fragment -> round counted through; fragment author -> deltas, tokens, tokens as a guest
)

var buckets = [][]byte{
	bucketFolder, bucketIDs, bucketHeaders, bucketOwn, bucketMarks,
	bucketRounds, bucketBases, bucketEquivocation, bucketMembers, bucketMeta,
	bucketHeld, bucketUsage, bucketSegments, bucketAuthors,
}

// Store is an open folder. Its methods may be called concurrently.
type Store struct {
	dir  string
	run  wire.RunID
	disk Disk
	db   *bbolt.DB
	file *os.File // of the index; it belongs to bbolt, except in letGo

	own sync.Mutex // held by PutOwn and RaiseMark from the check of the mark to its commit

	truncations atomic.Uint64 // counts the times that records were truncated
	segments    openSegments
	scraps      sync.Map // of *Scrap, those that are open

	perSegment uint32 // segmentRounds, except in tests

	mu      sync.Mutex
	tx      *bbolt.Tx // the open transaction; nil once closed or failed
	pending []change  // made in tx; done again in the next one if its commit fails
	stale   []file    // files whose entry went away; removed after the next commit
	failed  error     // why tx is nil
	lent    int       // indexes that others read by: nothing is removed meanwhile

	made map[string]bool // folders that are there and durable

	lastSealedRound map[int]uint32 // by fragment, see sealedTo

	ended func() error // of a store that another process lent; nil for others
}

// Open opens the folder of a run and creates it if need be. The error is
// ErrLocked if another process has it open, ErrOtherRun if it holds another run,
// ErrIndex if the index is damaged or gone.
func Open(dir string, run wire.RunID) (*Store, error) { return Disk{}.Open(dir, run) }

// Open is the function Open on this disk.
func (d Disk) Open(dir string, run wire.RunID) (*Store, error) {
	for _, sub := range []string{tmpDir, deltasDir, basesDir, chunksDir, segmentsDir} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	if err := d.Probe(dir); err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if err := checkLeftover(dir); err != nil {
		return nil, err
	}
	db, file, err := openIndex(dir, false)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, run: run, disk: d, db: db, file: file, perSegment: segmentRounds, lastSealedRound: map[int]uint32{}}
	err = s.locked(s.start)
	if err == nil {
		err = d.syncDir(dir) // the index's name
	}
	if err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// OpenReadOnly opens an existing folder for reading: several processes may, but
// not while a node runs on it (ErrLocked).
func OpenReadOnly(dir string) (*Store, error) {
	if _, err := os.Stat(filepath.Join(dir, indexFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("open store %s: %w: no node has run there: check the folder", dir, ErrNotFound)
	}
	return openToRead(dir, dir)
}

// openToRead opens a folder by the index in another one, or its own.
func openToRead(dir, index string) (*Store, error) {
	db, file, err := openIndex(index, true)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, db: db, file: file, lastSealedRound: map[int]uint32{}}
	if err := s.locked(s.startReading); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// Run is the run that the folder belongs to.
func (s *Store) Run() wire.RunID { return s.run }

// Dir is the folder.
func (s *Store) Dir() string { return s.dir }

// Close commits what is pending and lets go of the folder. A second call does
// nothing.
func (s *Store) Close() error {
	if s.isClosed() {
		return nil
	}
	err := s.locked(func() error {
		if s.tx != nil && s.tx.Writable() && len(s.pending) > 0 {
			return s.commit()
		}
		return nil
	})
	err = errors.Join(err, s.dropScraps(), s.abandon())
	if s.ended != nil {
		err = errors.Join(err, s.ended())
	}
	return err
}

func (s *Store) isClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Is(s.failed, ErrClosed)
}

// abandon lets go of the folder and gives up what is not committed.
func (s *Store) abandon() error {
	err := s.locked(func() error {
		if s.tx == nil {
			return nil
		}
		return s.tx.Rollback()
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return err // broken has let go of it
	}
	s.tx, s.failed = nil, fmt.Errorf("store %s: %w", s.dir, ErrClosed)
	return errors.Join(err, s.db.Close())
}

// openIndex opens index.db under the folder's lock, which is the lock that
// bbolt takes on that file.
func openIndex(dir string, readOnly bool) (db *bbolt.DB, opened *os.File, err error) {
	err = guard(func() error {
		db, err = bbolt.Open(filepath.Join(dir, indexFile), 0o600, &bbolt.Options{
			Timeout:  lockTimeout,
			ReadOnly: readOnly,
			// The list that is an array gives the first free pages. The one that is a map gives any,
			// so that no long run of pages is left for the list itself, and the file grows without end.
			FreelistType: bbolt.FreelistArrayType,
			NoStatistics: true,

			PreLoadFreelist: true,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				opened, err = os.OpenFile(name, flag, mode)
				return opened, err
			},
		})
		return err
	}, func(why error) error { return errors.Join(indexError(dir, why), letGo(opened)) })
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, nil, fmt.Errorf("open store %s: %w by another atoll process: wait if it is one that only reads, like `atoll doctor`, else stop it or choose another folder", dir, ErrLocked)
	case errors.Is(err, ErrIndex):
		return nil, nil, err
	case err != nil && opened != nil:
		return nil, nil, indexError(dir, err)
	case err != nil:
		return nil, nil, fmt.Errorf("open store %s: index: %w", dir, err)
	}
	return db, opened, nil
}

// letGo gives the lock of an index back that bbolt cannot close any more,
// because bbolt left it open or holds its own locks. The map stays and would
// keep the lock.
func letGo(f *os.File) error {
	return errors.Join(files.Unlock(f), f.Close())
}

// startReading begins to read an existing folder.
func (s *Store) startReading() (err error) {
	if s.tx, err = s.db.Begin(false); err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	if err := s.checkIndex(); err != nil {
		return err
	}
	return s.readFolder()
}

// start makes the buckets, checks or sets whose folder it is, and removes what
// a crash left behind.
func (s *Store) start() error {
	if err := s.beginTx(); err != nil {
		return err
	}
	if err := s.checkIndex(); err != nil {
		return err
	}
	if err := s.startIn(); err != nil {
		return err
	}
	if err := s.commit(); err != nil {
		return err
	}
	return s.sweep()
}

func (s *Store) startIn() error {
	if s.tx.Bucket(bucketFolder) != nil {
		return s.checkRun()
	}
	for _, name := range buckets {
		if _, err := s.tx.CreateBucket(name); err != nil {
			return fmt.Errorf("open store %s: %w", s.dir, err)
		}
	}
	folder := s.tx.Bucket(bucketFolder)
	if err := folder.Put([]byte("format"), []byte(format)); err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	return folder.Put([]byte("run"), s.run[:])
}

// checkRun compares the folder's run with the wanted one.
func (s *Store) checkRun() error {
	want := s.run
	if err := s.readFolder(); err != nil {
		return err
	}
	if s.run != want {
		return fmt.Errorf("open store %s: %w: it has %x, wanted is %x: choose another folder", s.dir, ErrOtherRun, s.run[:], want[:])
	}
	return nil
}

// readFolder sets s.run from the index.
func (s *Store) readFolder() error {
	folder := s.tx.Bucket(bucketFolder)
	if folder == nil {
		return s.broken(errors.New("it is empty"))
	}
	if have := folder.Get([]byte("format")); string(have) != format {
		return fmt.Errorf("open store %s: folder format %q where this atoll knows %q: use the atoll that made it", s.dir, have, format)
	}
	run := folder.Get([]byte("run"))
	if len(run) != len(s.run) {
		return s.broken(fmt.Errorf("run id of %d bytes", len(run)))
	}
	s.run = wire.RunID(run)
	return nil
}
