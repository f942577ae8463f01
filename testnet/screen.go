package testnet

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// How often the screen shows a view.
const (
	redrawEvery = time.Second     // of a terminal
	lineEvery   = 5 * time.Second // of anything else, which keeps every line
)

// Escape sequences of terminals, by ECMA-48: the cursor up and to the first
// column, clear to the end of the line or of the screen, clear all and put the
// cursor at the top.
const (
	cursorUp  = "\x1b[%dF"
	clearLine = "\x1b[K"
	clearEnd  = "\x1b[J"
	clearAll  = "\x1b[H\x1b[2J"
)

// Size of a terminal that does not tell its own.
const (
	usualColumns = 80
	usualLines   = 24
)

// screen is where a world shows itself. Writing to it never fails the world.
type screen struct {
	out     io.Writer
	size    func() (columns, lines int) // of the terminal; nil where out is none
	lines   int                         // of the block that is drawn now
	columns int                         // of the terminal when it was drawn
	shown   time.Duration
	due     bool // whatever the time
	curve   lossCurve
}

func newScreen(out io.Writer, size func() (columns, lines int)) *screen {
	return &screen{out: out, size: size, due: true}
}

// measure is how large the terminal is now.
func (s *screen) measure() (columns, lines int) {
	columns, lines = s.size()
	if columns < 1 || lines < 1 {
		return usualColumns, usualLines
	}
	return columns, lines
}

// say tells of an event; it stays above the block.
func (s *screen) say(format string, args ...any) {
	s.clear()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.due = s.due || s.size != nil
}

// show draws a view when it is time to: at once at first, and whenever the
// nodes have something new.
func (s *screen) show(v view) {
	every := lineEvery
	if s.size != nil {
		every = redrawEvery
	}
	if !s.due && v.elapsed-s.shown < every {
		return
	}
	s.due, s.shown = false, v.elapsed
	if s.size == nil {
		fmt.Fprintln(s.out, v.line())
		return
	}
	s.draw(v)
}

// draw puts a view where the last one is, in one write: what does not change
// does not flicker.
func (s *screen) draw(v view) {
	columns, height := s.measure()
	block := fit(v.block(columns), height-1)
	var b strings.Builder
	b.WriteString(s.back(columns))
	for _, l := range block {
		b.WriteString(l + clearLine + "\n")
	}
	b.WriteString(clearEnd)
	fmt.Fprint(s.out, b.String())
	s.lines, s.columns = len(block), columns
}

// fit leaves out the last lines of a block that is taller than the terminal:
// the cursor does not get back to what has scrolled away.
func fit(block []string, height int) []string {
	if len(block) <= height || height < 2 {
		return block
	}
	more := plural(len(block)-height+1, "more line")
	return append(block[:height-1:height-1], more)
}

// back takes the cursor to the start of the block. A terminal whose width has
// changed may have broken its lines anew, in its own way: all that it shows goes.
func (s *screen) back(columns int) string {
	switch {
	case s.lines == 0:
		return ""
	case columns != s.columns:
		return clearAll
	}
	return fmt.Sprintf(cursorUp, s.lines)
}

// clear takes the block off a terminal.
func (s *screen) clear() {
	if s.lines > 0 {
		columns, _ := s.measure()
		fmt.Fprint(s.out, s.back(columns)+clearEnd)
		s.lines = 0
	}
}
