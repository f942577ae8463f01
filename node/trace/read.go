package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"atoll/gossip/wire"
)

// maxLine bounds one line: names of 64 digits and numbers, with room for fields of
// later versions.
const maxLine = 1 << 16

// Read returns the lines of a trace. A last line that is cut, as a process that was killed
// leaves it, is left out. Fields that this version does not know are passed over.
func Read(in io.Reader) (lines []Line, err error) {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	s.Split(wholeLines)
	for n := 1; s.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		lines = append(lines, l)
	}
	return lines, s.Err()
}

// wholeLines splits at line ends and leaves out what follows the last.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// Write writes lines as a Recorder does.
func Write(out io.Writer, lines []Line) error {
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Merge makes one trace of what several nodes wrote. Of each delta and node it keeps the
// last line; lines of others learn from the author's when the delta was drafted and
// announced. The oldest delta comes first, its author's line before the others.
func Merge(lines []Line) []Line {
	type key struct{ delta, node [32]byte }
	last, authors := map[key]int{}, map[wire.Digest]Line{}
	for i, l := range lines {
		last[key{l.Delta, l.Node}] = i
		if l.Own() {
			authors[l.Delta] = l
		}
	}
	var out []Line
	for i, l := range lines {
		if last[key{l.Delta, l.Node}] == i {
			author := authors[l.Delta]
			l.Drafted, l.Announced = cmp.Or(l.Drafted, author.Drafted), cmp.Or(l.Announced, author.Announced)
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, compareLines)
	return out
}

func compareLines(a, b Line) int {
	return cmp.Or(
		cmp.Compare(cmp.Or(a.Drafted, a.Announced, a.Heard), cmp.Or(b.Drafted, b.Announced, b.Heard)),
		bytes.Compare(a.Delta[:], b.Delta[:]),
		cmp.Compare(order(a), order(b)),
		bytes.Compare(a.Node[:], b.Node[:]),
	)
}

func order(l Line) int {
	if l.Own() {
		return 0
	}
	return 1
}
