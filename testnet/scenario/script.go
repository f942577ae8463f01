package scenario

import (
	"fmt"
	"strings"
	"unicode"

	"atoll/testnet/sim"
)

// Script is a file that was read: a world, what happens to it, what is expected
// of it, and what came of it when it was last written down.
type Script struct {
	Name    string
	World   sim.Scenario
	Expects []Expectation
	Breaks  string // the checker that is known to find a broken promise; "" = all are kept
	Outcome string // what stands after the marker
	lines   []line // what stands before it
}

// outcomeMarker parts what people write from what -update writes.
const outcomeMarker = "-- outcome --"

// line is one line of a script: words, a comment, both or neither.
type line struct {
	words   []string
	comment string
	noted   bool // there is a comment, if only an empty one
}

func parseLine(text string) (l line) {
	code := text
	if i := commentAt(text); i >= 0 {
		code, l.comment, l.noted = text[:i], strings.TrimSpace(text[i+1:]), true
	}
	l.words = strings.Fields(code)
	return l
}

// commentAt is where a comment begins: at a # that begins a word. It is -1 if
// there is none.
func commentAt(text string) int {
	begins := true
	for i, r := range text {
		if r == '#' && begins {
			return i
		}
		begins = unicode.IsSpace(r)
	}
	return -1
}

func (l line) String() string {
	parts := l.words
	text := strings.Join(parts, " ")
	if !l.noted {
		return text
	}
	comment := strings.TrimRightFunc("# "+l.comment, unicode.IsSpace)
	if text == "" {
		return comment
	}
	return text + "  " + comment
}

// Format writes a script as scripts are written: single spaces, and the outcome
// last. What it writes is read as the same script.
func (s *Script) Format() []byte {
	var b strings.Builder
	lines := s.lines
	for len(lines) > 0 && lines[len(lines)-1].String() == "" {
		lines = lines[:len(lines)-1]
	}
	for _, l := range lines {
		b.WriteString(l.String() + "\n")
	}
	if s.Outcome != "" {
		fmt.Fprintf(&b, "\n%s\n%s", outcomeMarker, s.Outcome)
	}
	return []byte(b.String())
}

// split parts a file at its marker.
func split(text string) (code []string, outcome string) {
	for text != "" {
		head, tail, _ := strings.Cut(text, "\n")
		if strings.TrimSpace(head) == outcomeMarker {
			return code, tail
		}
		code, text = append(code, head), tail
	}
	return code, ""
}
