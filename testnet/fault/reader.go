package fault

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Error says what cannot be understood, and what to write instead.
type Error struct {
	File string // the event in quotes, or a file
	Line int    // from 1; 0 if there are no lines, or it is about all of them
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

// Reader takes the words of one line or event. The first thing that it cannot take is the
// error; after that it takes nothing.
type Reader struct {
	File  string
	Line  int
	Words []string
	Err   *Error

	Verbs    []Verb        // that errors list
	Longest  time.Duration // of all times; 0 = a year
	MaxNodes int           // numbers of nodes are below; 0 = 20,000
}

// What a Reader allows that does not say.
const (
	year     = 365 * 24 * time.Hour
	maxNodes = 20_000
)

func (r *Reader) longest() time.Duration {
	if r.Longest > 0 {
		return r.Longest
	}
	return year
}

func (r *Reader) maxNodes() int {
	if r.MaxNodes > 0 {
		return r.MaxNodes
	}
	return maxNodes
}

// Fail records the first error.
func (r *Reader) Fail(word, format string, args ...any) {
	if r.Err == nil {
		r.Err = &Error{r.File, r.Line, word, fmt.Sprintf(format, args...)}
		r.Words = nil
	}
}

// More says that words are left, and all before them were understood.
func (r *Reader) More() bool { return r.Err == nil && len(r.Words) > 0 }

// Took takes words if they are the next ones.
func (r *Reader) Took(words ...string) bool {
	if !r.More() || len(r.Words) < len(words) || !slices.Equal(r.Words[:len(words)], words) {
		return false
	}
	r.Words = r.Words[len(words):]
	return true
}

// Next takes a word; what says which.
func (r *Reader) Next(what string) string {
	if !r.More() {
		r.Fail("", "the line ends where %s should stand", what)
		return ""
	}
	word := r.Words[0]
	r.Words = r.Words[1:]
	return word
}

// Need takes a word that must be there.
func (r *Reader) Need(word string) {
	if got := r.Next(fmt.Sprintf("the word %q", word)); r.Err == nil && got != word {
		r.Fail(got, "the word %q should stand here", word)
	}
}

// End fails if words are left.
func (r *Reader) End() {
	if r.More() {
		r.Fail(r.Words[0], "the line should end before this word")
	}
}

// Rest takes all words that are left, as text.
func (r *Reader) Rest(what string) string {
	if !r.More() {
		r.Fail("", "the line ends where %s should stand", what)
		return ""
	}
	text := strings.Join(r.Words, " ")
	r.Words = nil
	return text
}

// Integer takes a whole number.
func (r *Reader) Integer(what string, lo, hi int64) int64 {
	word := r.Next(what + ", a whole number,")
	n, err := strconv.ParseInt(word, 10, 64)
	if r.Err == nil && (err != nil || n < lo || n > hi) {
		r.Fail(word, "%s is a whole number from %d to %d", what, lo, hi)
	}
	return n
}

// Float takes a number.
func (r *Reader) Float(what string, lo, hi float64) float64 {
	word := r.Next(what + ", a number,")
	return r.float(word, word, what, lo, hi)
}

func (r *Reader) float(word, number, what string, lo, hi float64) float64 {
	x, err := strconv.ParseFloat(number, 64)
	if r.Err == nil && (err != nil || !(x >= lo && x <= hi)) {
		r.Fail(word, "%s is a number from %g to %g", what, lo, hi)
	}
	return x
}

// Duration takes a time in whole milliseconds of at least so long, such as 40s or 250ms.
func (r *Reader) Duration(what string, least time.Duration) time.Duration {
	word := r.Next(what + ", a time such as 40s,")
	return r.duration(word, word, what, least)
}

func (r *Reader) duration(word, text, what string, least time.Duration) time.Duration {
	d, ok := ParseDuration(text)
	if r.Err == nil && (!ok || d < least || d > r.longest()) {
		r.Fail(word, "%s is a time from %s to %s such as 40s, 1.5s or 250ms", what, least, hours(r.longest()))
	}
	return d
}

func hours(d time.Duration) string { return strings.TrimSuffix(d.String(), "0m0s") }

// ParseDuration reads a time in whole milliseconds.
func ParseDuration(word string) (time.Duration, bool) {
	d, err := time.ParseDuration(word)
	return d, err == nil && d%time.Millisecond == 0
}

// Percent takes a share below 1, such as 1.5%.
func (r *Reader) Percent(what string) float64 {
	word := r.Next(what + ", a share such as 1.5%,")
	x, ok := ParsePercent(word)
	if r.Err == nil && (!ok || x < 0 || x >= 1) {
		r.Fail(word, "%s is a share of at least 0%% and below 100%%", what)
	}
	return x
}

// ParsePercent reads a share.
func ParsePercent(word string) (float64, bool) {
	number, ok := strings.CutSuffix(word, "%")
	x, err := strconv.ParseFloat(number, 64)
	return x / 100, ok && err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// byteUnits are the units of amounts, longest name first.
var byteUnits = []struct {
	name string
	size float64
}{{"MB", 1e6}, {"kB", 1e3}, {"B", 1}}

// ParseBytes reads an amount such as 100kB.
func ParseBytes(word string) (float64, bool) {
	for _, u := range byteUnits {
		if number, ok := strings.CutSuffix(word, u.name); ok {
			x, err := strconv.ParseFloat(number, 64)
			return x * u.size, err == nil && x >= 0 && !math.IsInf(x, 0)
		}
	}
	return 0, false
}

// Rate takes bytes per second, and returns bytes per millisecond.
func (r *Reader) Rate(what string) float64 {
	word := r.Next(what + ", a rate such as 100kB/s,")
	amount, found := strings.CutSuffix(word, "/s")
	x, ok := ParseBytes(amount)
	if r.Err == nil && (!found || !ok || x < 1000) {
		r.Fail(word, "%s is a rate of at least 1kB/s, such as 100kB/s or 1MB/s", what)
	}
	return x / 1000
}

// OneOf takes one of some words.
func (r *Reader) OneOf(what string, words []string) string {
	word := r.Next(what)
	if r.Err == nil && !slices.Contains(words, word) {
		r.Fail(word, "%s is one of %v", what, words)
	}
	return word
}

// Nodes takes one or more of N, N-M and all, with commas, plus signs or spaces between them.
func (r *Reader) Nodes() (nodes []int) {
	for r.More() && isNodes(r.Words[0]) {
		for word := range strings.SplitSeq(strings.ReplaceAll(r.Next("a node"), "+", ","), ",") {
			nodes = append(nodes, r.nodeRange(word)...)
		}
		if len(nodes) > r.maxNodes() {
			r.Fail("", "these are more than %d nodes", r.maxNodes())
		}
	}
	if len(nodes) == 0 && r.Err == nil {
		word := ""
		if r.More() {
			word = r.Words[0]
		}
		r.Fail(word, "a node should stand here: a number from 0, a range such as 1-4, or all")
	}
	return nodes
}

// NodesOf takes nodes of a world of so many that start together.
func (r *Reader) NodesOf(start int) []int { return resolve(r.Nodes(), start) }

// isNumber says whether a text begins with a digit.
func isNumber(text string) bool { return text[0] >= '0' && text[0] <= '9' }

// isNodes says whether a text begins with a node's number, or with all of them.
func isNodes(text string) bool {
	return (isNumber(text) || strings.HasPrefix(text, "all")) && !strings.HasSuffix(text, "%")
}

func (r *Reader) nodeRange(word string) (nodes []int) {
	if word == "all" {
		return []int{All}
	}
	from, to, isRange := strings.Cut(word, "-")
	first, errFirst := strconv.Atoi(from)
	last, errLast := first, error(nil)
	if isRange {
		last, errLast = strconv.Atoi(to)
	}
	if errFirst != nil || errLast != nil || last < first || last >= r.maxNodes() {
		r.Fail(word, "this is no node; use a number from 0 to %d, or a range such as 1-4", r.maxNodes()-1)
		return nil
	}
	for i := first; i <= last; i++ {
		nodes = append(nodes, i)
	}
	return nodes
}
