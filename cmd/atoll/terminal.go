package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal tells whether somebody watches.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && takesEscapes(f)
}

// terminalSize returns what tells the size of a terminal, which is zero where
// the system does not know it; nil if w is none.
func terminalSize(w io.Writer) func() (columns, lines int) {
	if !isTerminal(w) {
		return nil
	}
	fd := int(w.(*os.File).Fd())
	return func() (columns, lines int) {
		columns, lines, err := term.GetSize(fd)
		if err != nil {
			return 0, 0
		}
		return columns, lines
	}
}
