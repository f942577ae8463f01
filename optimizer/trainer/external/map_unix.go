//go:build unix

package external

import (
	"os"
	"syscall"
)

// mapFile maps so many bytes of a file for reading and writing, shared with all that map it.
func mapFile(f *os.File, size int64) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapFile(b []byte) error { return syscall.Munmap(b) }
