package main

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// isTerminal tells whether somebody watches.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// terminalSize returns what tells the size of a terminal, which is zero where
// the system does not know it; nil if w is none.
func terminalSize(w io.Writer) func() (columns, lines int) {
	if !isTerminal(w) {
		return nil
	}
	fd := w.(*os.File).Fd()
	return func() (columns, lines int) {
		var size struct{ lines, columns, x, y uint16 } // struct winsize
		_, _, err := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCGWINSZ, uintptr(unsafe.Pointer(&size)))
		if err != 0 {
			return 0, 0
		}
		return int(size.columns), int(size.lines)
	}
}
