package store

import (
	"errors"
	"fmt"
	"syscall"
)

// Trouble is what is wrong with a disk.
type Trouble string

// Kinds of trouble.
const (
	Well     Trouble = ""
	Full     Trouble = "full"
	ReadOnly Trouble = "read-only"
	Failing  Trouble = "failing"
	Denied   Trouble = "closed to this user"
)

// sign is an error of the system that says what is wrong.
type sign struct {
	errno syscall.Errno
	is    Trouble
}

// TroubleOf is what an error says about the disk; Well if it says nothing.
func TroubleOf(err error) Trouble {
	for _, t := range troubles {
		if errors.Is(err, t.errno) {
			return t.is
		}
	}
	if errors.Is(err, ErrWaiting) {
		return Full // of changes that a disk in trouble did not take
	}
	return Well
}

// Remedy says what to do about trouble with the disk of a folder.
func (t Trouble) Remedy(dir string) string {
	switch t {
	case Full:
		return fmt.Sprintf("free space on the disk of %s, write elsewhere, or give a node less to keep with --keep", dir)
	case ReadOnly:
		return fmt.Sprintf("make the file system of %s writable again (mount -o remount,rw), or choose another folder", dir)
	case Failing:
		return fmt.Sprintf("the device of %s does not read or write what it is told: copy the folder to another disk, its key first", dir)
	case Denied:
		return fmt.Sprintf("give this user the right to write to %s, or choose another folder", dir)
	}
	return ""
}

// explained is an error that says already what to do.
type explained struct{ error }

func (e explained) Unwrap() error { return e.error }

// Explain adds to an error what is wrong with the disk of a folder and what to
// do about it, if that is what it says and nobody has yet.
func Explain(err error, dir string) error {
	t := TroubleOf(err)
	if t == Well || errors.As(err, new(explained)) {
		return err
	}
	return explained{fmt.Errorf("%w: the disk is %s: %s", err, t, t.Remedy(dir))}
}
