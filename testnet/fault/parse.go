package fault

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits on what people write by hand.
const (
	maxLength  = 1 << 16 // bytes of a schedule
	maxGroups  = 60      // of a partition
	maxFactor  = 1e6     // times slower
	maxRank    = 1000    // of a data-parallel group's processes; one that is not there is never killed
	leastEvery = time.Second
)

// usualEvery is the mean time between two events of random chaos that does not
// say: long enough for what one broke to matter before the next.
const usualEvery = 10 * time.Second

// Parse reads a schedule. The error names the event and says what to write.
func Parse(text string) (Schedule, error) { return parse(text, Verbs()) }

// Parse reads a schedule that can be executed.
func (c Can) Parse(text string) (Schedule, error) {
	s, err := parse(text, c.Verbs)
	if err != nil {
		return nil, err
	}
	return s, c.Check(s)
}

// parse reads a schedule. An error about an unknown verb lists some.
func parse(text string, known []Verb) (Schedule, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("a schedule of %d bytes: use at most %d", len(text), maxLength)
	}
	text = strings.NewReplacer(";", ",", "_", " ").Replace(text)
	var s Schedule
	for _, part := range split(text) {
		r := &Reader{File: strconv.Quote(part), Words: strings.Fields(part), Verbs: known}
		e := ReadEvent(r)
		if r.Err != nil {
			return nil, r.Err
		}
		s = append(s, e)
	}
	return s, nil
}

// split splits at commas; a part that begins with a node or a trait of a link goes on with the
// event before, because lists of them have commas of their own.
func split(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	var events []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if len(events) == 0 || part == "" || !goesOn(strings.Fields(part)[0]) {
			events = append(events, part)
		} else {
			events[len(events)-1] += "," + part
		}
	}
	return events
}

// goesOn says whether an event cannot begin with a word.
func goesOn(word string) bool { return isNodes(word) || strings.Contains(word, "=") }

// ReadEvent takes the words of an event.
func ReadEvent(r *Reader) (e Event) {
	r.Words = spaced(r.Words)
	moments := r.timing(&e)
	word := r.Next("an event")
	var ok bool
	if e.Verb, ok = known(word); !ok {
		r.Fail(word, "there is no such event; use one of %s", list(r.Verbs))
	}
	if e.Verb == Kill && r.Took("learner") {
		e.Verb = KillLearner
	}
	r.how(&e)
	for before := -1; r.More() && before != len(r.Words); {
		before = len(r.Words)
		moments += r.timing(&e)
	}
	if moments == 0 && e.Verb == Random {
		e.Every, moments = usualEvery, 1
	}
	r.check(&e, word, moments)
	return e
}

// spaced has spaces around what parts groups of nodes, and none inside.
func spaced(words []string) (out []string) {
	for _, w := range words {
		if !strings.ContainsAny(w, "|>") || strings.HasPrefix(w, "@") {
			out = append(out, w)
			continue
		}
		out = append(out, strings.Fields(strings.NewReplacer("|", " | ", ">", " > ").Replace(w))...)
	}
	return out
}

// timing takes one thing that is said of when, if it comes next. It returns 1 if that is a
// moment or a rate, else 0.
func (r *Reader) timing(e *Event) int {
	switch {
	case !r.More():
	case strings.HasPrefix(r.Words[0], "@"):
		word := r.Next("when")
		from, until, ranged := strings.Cut(word[1:], "..")
		e.At = r.when(word, from)
		if ranged {
			w := r.when(word, until)
			e.Until = &w
		}
		return 1
	case r.Took("at"):
		word := r.Next("when, a time such as 40s,")
		e.At = r.when(word, word)
		return 1
	case r.Took("every"):
		r.every(e)
		return 1
	case r.Took("for"):
		e.For = r.Duration("how long", time.Millisecond)
	case r.Took("in", "turn"):
		e.InTurn = true
	}
	return 0
}

func (r *Reader) every(e *Event) {
	e.Every = r.Duration("how often", time.Millisecond)
	if r.Took("from") {
		e.At = At(r.Duration("when it begins", 0))
		r.Need("to")
		end := At(r.Duration("when it ends", e.At.After))
		e.Until = &end
	}
}

// when is a moment that stands in a word.
func (r *Reader) when(word, text string) When {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		return When{ByShare: true, Percent: r.float(word, percent, "a share of the tokens", 0, 100)}
	}
	return At(r.duration(word, text, "when", 0))
}

// how takes what stands between a verb and when.
func (r *Reader) how(e *Event) {
	switch e.Verb {
	case Merge, Random:
	case Join:
		e.Count = 1
		if r.More() && isNumber(r.Words[0]) {
			e.Count = int(r.Integer("how many join", 1, int64(r.maxNodes())))
		}
		e.Detail = r.detail()
	case Network:
		if e.Detail = r.detail(); len(e.Detail) == 0 {
			r.Fail("", "the line ends where a trait of links should stand")
		}
	case Partition:
		e.Groups = r.groups()
	case Cut:
		e.Nodes, e.To = r.fromTo()
	case Mend:
		if r.More() && !r.closing() {
			e.Nodes, e.To = r.fromTo()
		}
	case Attack:
		e.Kind = r.kind()
		e.Nodes = r.whom()
	default:
		e.Nodes = r.whom()
		r.extent(e)
	}
}

// extent takes how much of it befalls a node.
func (r *Reader) extent(e *Event) {
	switch e.Verb {
	case Slow:
		e.Factor = r.factor()
	case Loss:
		word := r.Next("a share of the packets such as 1%")
		number, ok := strings.CutSuffix(word, "%")
		if !ok {
			r.Fail(word, "the share of the packets does not end in %%: write %s", Loss.usage())
		}
		e.Percent = r.float(word, number, "the share of the packets in percent", 0, 100)
	case Link:
		e.Detail = r.traits()
	case KillLearner:
		if r.Took("rank") {
			e.Detail = []string{"rank", strconv.FormatInt(r.Integer("a process of the data-parallel group", 0, maxRank), 10)}
		}
	case Skew:
		r.Need("by")
		e.By = r.Duration("the skew", -r.longest())
	case Upgrade:
		r.Need("to")
		if e.Detail = r.detail(); len(e.Detail) == 0 {
			r.Fail("", "the line ends where a trait of programs should stand")
		}
	}
}

// factor takes xN.
func (r *Reader) factor() float64 {
	word := r.Next("a factor such as x4")
	number, ok := strings.CutPrefix(word, "x")
	if !ok {
		r.Fail(word, "a factor such as x4 should stand here")
	}
	return r.float(word, number, "how much slower", 1, maxFactor)
}

// kind takes the name of an attack.
func (r *Reader) kind() string {
	word := r.Next("the kind of attack")
	for _, c := range word {
		if (c < 'a' || c > 'z') && c != '-' {
			r.Fail(word, "the kind of attack is a word of small letters: write %s", Attack.usage())
		}
	}
	return word
}

// whom takes nodes, or any.
func (r *Reader) whom() []int {
	if r.Took("any") {
		return []int{Any}
	}
	return r.Nodes()
}

// groups takes groups of nodes with | between them, or any.
func (r *Reader) groups() (groups [][]int) {
	if r.Took("any") {
		return nil
	}
	for {
		groups = append(groups, r.Nodes())
		if !r.Took("|") {
			return groups
		}
		if len(groups) >= maxGroups {
			r.Fail("|", "a partition has at most %d groups", maxGroups)
			return nil
		}
	}
}

// fromTo takes `NODES > NODES`.
func (r *Reader) fromTo() (from, to []int) {
	from = r.Nodes()
	r.Need(">")
	return from, r.Nodes()
}

// closing says that what is said of when comes next.
func (r *Reader) closing() bool {
	return slices.Contains([]string{"for", "down", "in", "every", "at"}, r.Words[0]) || strings.HasPrefix(r.Words[0], "@")
}

// detail takes traits up to the words that say when. A comma ends an event, so none has one.
func (r *Reader) detail() []string {
	words := r.rest()
	for _, word := range words {
		if strings.Contains(word, ",") {
			r.Fail(word, "a trait has no comma: write a blank between two traits")
		}
	}
	return words
}

// rest takes words up to those that say when.
func (r *Reader) rest() (words []string) {
	for r.More() && !r.closing() {
		words = append(words, r.Next("a trait"))
	}
	return words
}

// traits takes what a link becomes, such as rate=5mbit,delay=40ms.
func (r *Reader) traits() (traits []string) {
	for _, word := range r.rest() {
		for trait := range strings.SplitSeq(word, ",") {
			switch {
			case strings.Contains(trait, "="):
				traits = append(traits, trait)
			case trait != "":
				r.Fail(trait, "this is no trait of a link: write %s", Link.usage())
			}
		}
	}
	if len(traits) == 0 {
		r.Fail("", "it does not say what the link becomes: write %s", Link.usage())
	}
	return traits
}

// check fails where what is said of when makes no sense.
func (r *Reader) check(e *Event, word string, moments int) {
	usage := e.Verb.usage()
	switch {
	case r.Err != nil:
	case r.More():
		r.Fail(r.Words[0], "the line should end before this word; write %s", usage)
	case moments == 0:
		r.Fail("", "it does not say when: write %s", usage)
	case moments > 1:
		r.Fail(word, "it says twice when: write %s", usage)
	case e.Every > 0:
		r.checkRate(e, word)
	case e.InTurn:
		r.Fail("in", "`in turn` is for what happens every so often; use `every D from TIME to TIME ...`")
	case e.Verb == Random:
		r.Fail(word, "this happens again and again: write %s", usage)
	case e.For > 0 && e.Until != nil:
		r.Fail(word, "it says twice when this ends; remove `for`")
	case e.For > 0 && e.At.ByShare:
		r.Fail(word, "after a share of the tokens, end it at another: write @%v..40%%", e.At)
	case e.For > 0 || e.Until != nil:
		r.checkEnd(e, word)
	}
}

// checkRate is the part of check for what happens again and again.
func (r *Reader) checkRate(e *Event, word string) {
	usage, open := e.Verb.usage(), e.Until == nil
	switch {
	case e.InTurn && (len(e.Nodes) == 0 || open):
		r.Fail(word, "this befalls no nodes that could take turns")
	case e.Verb == Random && (!open || e.For > 0):
		r.Fail(word, "this goes on to the end: write %s", usage)
	case open && e.Every < leastEvery:
		r.Fail(e.Every.String(), "how often is a time of at least %v", leastEvery)
	case open && e.Verb != Random && (e.For == 0 || e.For >= e.Every):
		r.Fail(word, "say how long it lasts each time, shorter than every %v: write %s", e.Every, usage)
	case e.For > 0:
		r.checkEnd(e, word)
	}
}

func (r *Reader) checkEnd(e *Event, word string) {
	if e.Verb.undo() == "" {
		r.Fail(word, "this has no end, so `for` makes no sense; write %s", e.Verb.usage())
	}
}
