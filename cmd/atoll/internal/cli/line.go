package cli

import (
	"io"
	"sync"

	"github.com/charmbracelet/x/ansi"
)

// Line is the last line of a terminal, which is drawn anew in its place. What is written by Above stands above it, whoever writes.
type Line struct {
	mu   sync.Mutex
	to   io.Writer
	size func() (columns, lines int)
	text string // what is drawn, "" for nothing
}

// NewLine draws on a terminal of this size.
func NewLine(to io.Writer, size func() (columns, lines int)) *Line { return &Line{to: to, size: size} }

// Escape sequences of ECMA-48.
const clearLine = "\r\x1b[K"

// Draw shows a text in place of the last one; "" shows none.
func (l *Line) Draw(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text != "" {
		columns, _ := l.size()
		if columns < 2 {
			columns = 80 // the terminal does not tell
		}
		text = ansi.Truncate(text, columns-1, "…")
	}
	if text != l.text {
		_, _ = io.WriteString(l.to, clearLine+text) // the reader may have gone; the work goes on
		l.text = text
	}
}

// Above is a writer to the same terminal.
func (l *Line) Above(w io.Writer) io.Writer { return above{l, w} }

type above struct {
	line *Line
	to   io.Writer
}

// Write puts lines above the one that is drawn.
func (a above) Write(p []byte) (int, error) {
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	if a.line.text == "" {
		return a.to.Write(p)
	}
	_, _ = io.WriteString(a.line.to, clearLine)
	n, err := a.to.Write(p)
	_, _ = io.WriteString(a.line.to, a.line.text)
	return n, err
}

// Under is the file that is written to.
func (a above) Under() io.Writer { return a.to }
