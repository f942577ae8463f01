package store

import (
	"errors"
	"fmt"
	"path/filepath"
)

// Errors that callers decide on.
var (
	// ErrNotFound says that the folder does not have the thing.
	ErrNotFound = errors.New("not found")
	// ErrCorrupt says that what the folder has does not match its hash.
	ErrCorrupt = errors.New("corrupt")
	// ErrIndex says that the index of the folder cannot be used.
	ErrIndex = errors.New("the index is damaged")
	// ErrWaiting says that too much waits for a commit of the index: free space
	// on the disk.
	ErrWaiting = errors.New("too many changes wait for the disk")
	// ErrMark says that a round at or below the mark would be signed again.
	ErrMark = errors.New("round is signed already")
	// ErrLocked says that another process has the folder open.
	ErrLocked = errors.New("folder is in use")
	// ErrOtherRun says that the folder belongs to another run.
	ErrOtherRun = errors.New("folder belongs to another run")
	// ErrReadOnly says that a store from OpenReadOnly was written to.
	ErrReadOnly = errors.New("store is open for reading only")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store is closed")
)

// IndexError says what is wrong with the index of a folder. It is ErrIndex.
type IndexError struct {
	Dir string
	Why error
}

func indexError(dir string, why error) error { return &IndexError{dir, why} }

// Error names the file, the damage and the remedy.
func (e *IndexError) Error() string {
	return fmt.Sprintf("%s: %v: %v: stop the node and run `atoll doctor %s --fix`, which sets the index aside; the node then takes the run from its peers again and keeps its key",
		filepath.Join(e.Dir, indexFile), ErrIndex, e.Why, e.Dir)
}

// Unwrap returns ErrIndex and the cause.
func (e *IndexError) Unwrap() []error { return []error{ErrIndex, e.Why} }
