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

// Escape sequences of terminals, as of ECMA-48: the cursor up and to the first
// column, clear to the end of the screen, and DEC's automatic wrapping, without
// which every line stays one line.
const (
	cursorUp = "\x1b[%dF"
	clearEnd = "\x1b[J"
	wrapOff  = "\x1b[?7l"
	wrapOn   = "\x1b[?7h"
)

// screen is where a world shows itself. Writing to it never fails the world.
type screen struct {
	out      io.Writer
	terminal bool
	lines    int // of the block that is drawn now
	shown    time.Duration
	due      bool // whatever the time
	curve    lossCurve
}

func newScreen(out io.Writer, terminal bool) *screen {
	return &screen{out: out, terminal: terminal, due: true}
}

// say tells of an event; it stays above the block.
func (s *screen) say(format string, args ...any) {
	s.clear()
	fmt.Fprintf(s.out, format+"\n", args...)
	s.due = s.due || s.terminal
}

// show draws a view when it is time to: at once at first, and whenever the
// nodes have something new.
func (s *screen) show(v view) {
	every := lineEvery
	if s.terminal {
		every = redrawEvery
	}
	if !s.due && v.elapsed-s.shown < every {
		return
	}
	s.due, s.shown = false, v.elapsed
	if !s.terminal {
		fmt.Fprintln(s.out, v.line())
		return
	}
	block := v.block()
	s.clear()
	fmt.Fprint(s.out, wrapOff+block+wrapOn)
	s.lines = strings.Count(block, "\n")
}

// clear takes the block off a terminal.
func (s *screen) clear() {
	if s.lines > 0 {
		fmt.Fprintf(s.out, cursorUp+clearEnd, s.lines)
		s.lines = 0
	}
}

// close leaves the last block where it is.
func (s *screen) close() { s.lines = 0 }
