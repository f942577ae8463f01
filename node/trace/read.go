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

// Trace is what nodes wrote, in its order.
type Trace struct {
	Lines  []Line
	Served []Served
	Closes []Close
}

// entry is one line of a file: a Line, what a giver knows, or a round that closed.
type entry struct {
	*Line
	Served *Served `json:"served,omitempty"`
	Close  *Close  `json:"close,omitempty"`
}

// Read adds the lines of a file. A last line that is cut, as a process that was killed
// leaves it, is left out. Fields that this version does not know are passed over.
func (t *Trace) Read(in io.Reader) error {
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLine)
	s.Split(wholeLines)
	for n := 1; s.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if e.Served != nil {
			t.Served = append(t.Served, *e.Served)
		}
		if e.Close != nil {
			t.Closes = append(t.Closes, *e.Close)
		}
		if e.Line != nil {
			t.Lines = append(t.Lines, *e.Line)
		}
	}
	return s.Err()
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

// Write writes a merged trace as a Recorder does.
func Write(out io.Writer, t Trace) error {
	w := bufio.NewWriter(out)
	e := json.NewEncoder(w)
	for _, l := range t.Lines {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	for i := range t.Closes {
		if err := e.Encode(entry{Close: &t.Closes[i]}); err != nil {
			return err
		}
	}
	return w.Flush()
}

// Merge makes one trace of what several nodes wrote. It keeps the last line of each delta
// and node. The line learns from the author's when the delta was drafted and announced, and
// from the giver when the request was there. The oldest delta comes first, its author's line
// before the others. Where a node closed a round several times, the last one counts.
func (t Trace) Merge() Trace {
	type key struct {
		delta wire.Digest
		node  wire.PeerID
	}
	last, authors := map[key]int{}, map[wire.Digest]Times{}
	for i, l := range t.Lines {
		last[key{l.Delta, l.Node}] = i
		if l.Own() {
			authors[l.Delta] = l.Times
		}
	}
	type way struct {
		key
		giver wire.PeerID
	}
	gave := map[way][]Served{}
	for _, s := range t.Served {
		w := way{key{s.Delta, s.To}, s.Node}
		gave[w] = append(gave[w], s)
	}
	out := Trace{Closes: t.mergeCloses()}
	for i, l := range t.Lines {
		k := key{l.Delta, l.Node}
		if last[k] != i {
			continue
		}
		author, giver := authors[l.Delta], broughtBy(gave[way{k, l.Gave}], l.LastByte)
		l.Drafted, l.Announced = cmp.Or(l.Drafted, author.Drafted), cmp.Or(l.Announced, author.Announced)
		l.Reached, l.Begun = cmp.Or(l.Reached, giver.Reached), cmp.Or(l.Begun, giver.Begun)
		out.Lines = append(out.Lines, l)
	}
	slices.SortStableFunc(out.Lines, compareLines)
	return out
}

// mergeCloses keeps the last close of each round and node, the oldest first.
func (t Trace) mergeCloses() (out []Close) {
	type key struct {
		node     wire.PeerID
		fragment int
		round    uint32
	}
	last := map[key]int{}
	for i, c := range t.Closes {
		last[key{c.Node, c.Fragment, c.Round}] = i
	}
	for i, c := range t.Closes {
		if last[key{c.Node, c.Fragment, c.Round}] == i {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Close) int { return cmp.Or(cmp.Compare(a.At, b.At), bytes.Compare(a.Node[:], b.Node[:])) })
	return out
}

// broughtBy is the answer of a giver whose last byte came at a time: the last that had begun
// by then, or where the clocks do not fit the last of all.
func broughtBy(answers []Served, lastByte int64) (s Served) {
	for i, a := range answers {
		if a.Begun <= lastByte || i == 0 || s.Begun > lastByte {
			s = a
		}
	}
	return s
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
