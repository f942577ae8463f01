package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"atoll/testnet/sim"
)

// Error says what of a script cannot be understood, and what to write instead.
type Error struct {
	File string
	Line int    // from 1; 0 if it is about the whole script
	Word string // "" if one is missing
	Text string
}

func (e *Error) Error() string {
	where := e.File
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", e.File, e.Line)
	}
	if e.Word == "" {
		return where + ": " + e.Text
	}
	return fmt.Sprintf("%s: %q: %s", where, e.Word, e.Text)
}

// Limits of a script. They keep a slip of the pen from making a world that takes
// hours.
const (
	maxNodes  = 100
	maxFaults = 10_000
	maxTime   = sim.Time(24 * time.Hour / time.Millisecond)
)

// reader takes the words of one line. The first thing that it cannot take is the
// error; after that it takes nothing.
type reader struct {
	file  string
	line  int
	words []string
	err   *Error
}

func (r *reader) fail(word, format string, args ...any) {
	if r.err == nil {
		r.err = &Error{r.file, r.line, word, fmt.Sprintf(format, args...)}
		r.words = nil
	}
}

// more says that words are left, and all before them were understood.
func (r *reader) more() bool { return r.err == nil && len(r.words) > 0 }

// took takes a word if it is the next one.
func (r *reader) took(word string) bool {
	if !r.more() || r.words[0] != word {
		return false
	}
	r.words = r.words[1:]
	return true
}

// tookAll takes several words if they are the next ones.
func (r *reader) tookAll(text string) bool {
	words := strings.Fields(text)
	if r.err != nil || len(r.words) < len(words) {
		return false
	}
	for i, w := range words {
		if r.words[i] != w {
			return false
		}
	}
	r.words = r.words[len(words):]
	return true
}

// next takes a word; what says which.
func (r *reader) next(what string) string {
	if !r.more() {
		r.fail("", "the line ends where %s should stand", what)
		return ""
	}
	word := r.words[0]
	r.words = r.words[1:]
	return word
}

// need takes a word that must be there.
func (r *reader) need(word string) {
	if got := r.next(fmt.Sprintf("the word %q", word)); r.err == nil && got != word {
		r.fail(got, "the word %q should stand here", word)
	}
}

// end fails if words are left.
func (r *reader) end() {
	if r.more() {
		r.fail(r.words[0], "the line should end before this word")
	}
}

// rest takes all words that are left, as text.
func (r *reader) rest(what string) string {
	if !r.more() {
		r.fail("", "the line ends where %s should stand", what)
		return ""
	}
	text := strings.Join(r.words, " ")
	r.words = nil
	return text
}

func (r *reader) integer(what string, lo, hi int64) int64 {
	word := r.next(what + ", a whole number,")
	n, err := strconv.ParseInt(word, 10, 64)
	if r.err == nil && (err != nil || n < lo || n > hi) {
		r.fail(word, "%s is a whole number from %d to %d", what, lo, hi)
	}
	return n
}

func (r *reader) float(what string, lo, hi float64) float64 {
	word := r.next(what + ", a number,")
	x, err := strconv.ParseFloat(word, 64)
	if r.err == nil && (err != nil || !(x >= lo && x <= hi)) {
		r.fail(word, "%s is a number from %g to %g", what, lo, hi)
	}
	return x
}

// duration takes a time in whole milliseconds, such as 40s or 250ms.
func (r *reader) duration(what string) sim.Time { return r.durationFrom(what, 0) }

func (r *reader) durationFrom(what string, least sim.Time) sim.Time {
	word := r.next(what + ", a time such as 40s,")
	t, ok := parseDuration(word)
	if r.err == nil && (!ok || t < least || t > maxTime) {
		r.fail(word, "%s is a time from %s to %s such as 40s, 1.5s or 250ms", what, time.Duration(least)*time.Millisecond, "24h")
	}
	return t
}

func parseDuration(word string) (sim.Time, bool) {
	d, err := time.ParseDuration(word)
	return d.Milliseconds(), err == nil && d%time.Millisecond == 0
}

// percent takes a share such as 1.5%.
func (r *reader) percent(what string) float64 {
	word := r.next(what + ", a share such as 1.5%,")
	x, ok := parsePercent(word)
	if r.err == nil && (!ok || x < 0 || x >= 1) {
		r.fail(word, "%s is a share from 0%% up to, but not, 100%%", what)
	}
	return x
}

func parsePercent(word string) (float64, bool) {
	number, ok := strings.CutSuffix(word, "%")
	x, err := strconv.ParseFloat(number, 64)
	return x / 100, ok && err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// byteUnits are the units of amounts, longest name first.
var byteUnits = []struct {
	name string
	size float64
}{{"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

func parseBytes(word string) (float64, bool) {
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(word, u.name); ok {
			x, err := strconv.ParseFloat(number, 64)
			return x * u.size, err == nil && x >= 0 && !math.IsInf(x, 0)
		}
	}
	return 0, false
}

// rate takes bytes per second, and returns bytes per millisecond.
func (r *reader) rate(what string) float64 {
	word := r.next(what + ", a rate such as 100kB/s,")
	amount, found := strings.CutSuffix(word, "/s")
	x, ok := parseBytes(amount)
	if r.err == nil && (!found || !ok || x < 1000) {
		r.fail(word, "%s is a rate of at least 1kB/s, such as 100kB/s or 1MB/s", what)
	}
	return x / 1000
}

// nodes takes one or more of N, N-M and all; all are those below known.
func (r *reader) nodes(known int) (nodes []int) {
	if r.took("all") {
		for i := range known {
			nodes = append(nodes, i)
		}
		return nodes
	}
	for r.more() && isNodes(r.words[0]) {
		nodes = append(nodes, r.nodeRange()...)
	}
	if len(nodes) == 0 && r.err == nil {
		word := ""
		if r.more() {
			word = r.words[0]
		}
		r.fail(word, "a node should stand here: a number from 0, a range such as 1-4, or all")
	}
	return nodes
}

func isNodes(word string) bool { return word[0] >= '0' && word[0] <= '9' }

func (r *reader) nodeRange() (nodes []int) {
	word := r.next("a node")
	from, to, isRange := strings.Cut(word, "-")
	first, errFirst := strconv.Atoi(from)
	last, errLast := first, error(nil)
	if isRange {
		last, errLast = strconv.Atoi(to)
	}
	if errFirst != nil || errLast != nil || last < first || last >= maxNodes {
		r.fail(word, "this is no node; use a number from 0 to %d, or a range such as 1-4", maxNodes-1)
		return nil
	}
	for i := first; i <= last; i++ {
		nodes = append(nodes, i)
	}
	return nodes
}
