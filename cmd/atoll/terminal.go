package main

import (
	"io"
	"os"

	"golang.org/x/term"

	"atoll/cmd/atoll/internal/cli"
)

// isTerminal tells whether somebody watches.
func isTerminal(w io.Writer) bool {
	f := fileOf(w)
	return f != nil && term.IsTerminal(int(f.Fd())) && takesEscapes(f)
}

// fileOf is the file that is written to, nil if it is none.
func fileOf(w io.Writer) *os.File {
	if a, ok := w.(interface{ Under() io.Writer }); ok {
		w = a.Under()
	}
	f, _ := w.(*os.File)
	return f
}

// withLine is a console whose last line is drawn anew, nil where the console is no terminal. What else is said stands above it.
func withLine(out *cli.Console) (*cli.Console, *cli.Line) {
	size := terminalSize(out.Err)
	if size == nil {
		return out, nil
	}
	line, c := cli.NewLine(out.Err, size), *out
	c.Err = line.Above(out.Err)
	if isTerminal(out.Out) {
		c.Out = line.Above(out.Out)
	}
	return &c, line
}

// terminalSize returns what tells the size of a terminal, which is zero where
// the system does not know it; nil if w is none.
func terminalSize(w io.Writer) func() (columns, lines int) {
	if !isTerminal(w) {
		return nil
	}
	fd := int(fileOf(w).Fd())
	return func() (columns, lines int) {
		columns, lines, err := term.GetSize(fd)
		if err != nil {
			return 0, 0
		}
		return columns, lines
	}
}
