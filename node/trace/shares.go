package trace

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// stage is what a delta waits for before something happens to it at another node.
type stage struct {
	until string // the name of the time that ends it
	what  string // for people
	end   func(*Times) int64
}

// stages are the stages on the way of a delta, in order. One whose end is not known, as
// nobody has the giver's file, counts towards the next.
var stages = []stage{
	{"announced", "made durable by its author", func(t *Times) int64 { return t.Announced }},
	{"heard", "header on its way", func(t *Times) int64 { return t.Heard }},
	{"asked", "waits until it is asked for", func(t *Times) int64 { return t.Asked }},
	{"requested", "asked for in vain", func(t *Times) int64 { return t.Requested }},
	{"reached", "request on its way", func(t *Times) int64 { return t.Reached }},
	{"begun", "waits at its giver", func(t *Times) int64 { return t.Begun }},
	{"first_byte", "first byte on its way", func(t *Times) int64 { return t.FirstByte }},
	{"last_byte", "payload on its way", func(t *Times) int64 { return t.LastByte }},
	{"held", "checked and stored", func(t *Times) int64 { return t.Held }},
	{"closed", "waits until its round closes", func(t *Times) int64 { return t.Closed }},
	{"folded", "waits for the fold", func(t *Times) int64 { return t.Folded }},
	{"adopted", "waits for the learner", func(t *Times) int64 { return t.Adopted }},
}

// elapsed are the milliseconds from the draft to the end of each stage. What happened
// before an earlier stage ended, as the close of a round to a late delta, took no time.
func (l *Line) elapsed() (at []int64) {
	last := l.Drafted
	for _, s := range stages {
		last = max(last, s.end(&l.Times))
		at = append(at, last-l.Drafted)
	}
	return at
}

// Shares says where the time of deltas went, from the draft to the model of another node.
type Shares struct {
	Deltas   int        `json:"deltas"`    // in the model of another node, each counted at each of these
	Late     int        `json:"late"`      // of them, held after their round had closed
	ByAuthor int        `json:"by_author"` // of them, whose payload the author gave
	Requests int        `json:"requests"`
	Busy     int        `json:"busy"`   // of the requests
	Failed   int        `json:"failed"` // of the requests
	Again    int        `json:"again"`  // of the requests: they brought a payload that was there
	MeanS    float64    `json:"mean_s"` // from draft to adoption, as the two below
	MedianS  float64    `json:"median_s"`
	P95S     float64    `json:"p95_s"`
	Stages   []StageSum `json:"stages"`

	Own    map[End]int    `json:"own"`              // how deltas ended at their authors
	Others map[End]int    `json:"others"`           // how deltas ended at other nodes
	Closed map[string]int `json:"closed,omitempty"` // rounds at all nodes, by why they closed: see Close
}

// StageSum is one stage of all deltas.
type StageSum struct {
	Until   string  `json:"until"` // the time that ends it, as lines name it
	Share   float64 `json:"share"` // of the time of all stages
	MedianS float64 `json:"median_s"`
	P95S    float64 `json:"p95_s"`
}

// way says that a line has a whole way of a delta: to another node, into its model, with
// the author's line at hand.
func (l *Line) way() bool { return !l.Own() && l.End == Adopted && l.Drafted != 0 }

// Sum adds up a merged trace.
func Sum(t Trace) Shares {
	s := Shares{Own: map[End]int{}, Others: map[End]int{}, Closed: map[string]int{}}
	for _, c := range t.Closes {
		s.Closed[c.Why]++
	}
	lines := t.Lines
	took := make([][]int64, len(stages)+1) // in all last
	for i := range lines {
		l := &lines[i]
		s.count(l)
		if !l.way() {
			continue
		}
		before := int64(0)
		for k, at := range l.elapsed() {
			took[k] = append(took[k], at-before)
			before = at
		}
		took[len(stages)] = append(took[len(stages)], before)
	}
	s.time(took)
	return s
}

func (s *Shares) count(l *Line) {
	if l.Own() {
		s.Own[l.End]++
		return
	}
	s.Others[l.End]++
	s.Requests += l.Requests
	s.Busy += l.Busy
	s.Failed += l.Failed
	s.Again += l.Again
	if l.way() {
		s.Deltas++
		s.Late += one(l.Late)
		s.ByAuthor += one(l.Gave == l.Author || l.Inline && l.Brought == l.Author)
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func (s *Shares) time(took [][]int64) {
	all := took[len(stages)]
	whole := sum(all)
	for k, t := range took[:len(stages)] {
		slices.Sort(t)
		e := StageSum{Until: stages[k].until, MedianS: quantile(t, 0.5), P95S: quantile(t, 0.95)}
		if whole > 0 {
			e.Share = float64(sum(t)) / float64(whole)
		}
		s.Stages = append(s.Stages, e)
	}
	slices.Sort(all)
	s.MedianS, s.P95S = quantile(all, 0.5), quantile(all, 0.95)
	if len(all) > 0 {
		s.MeanS = float64(whole) / 1000 / float64(len(all))
	}
}

func sum(ms []int64) (s int64) {
	for _, x := range ms {
		s += x
	}
	return s
}

// quantile of sorted milliseconds, in seconds; 0 where there are none.
func quantile(ms []int64, q float64) float64 {
	if len(ms) == 0 {
		return 0
	}
	return float64(ms[min(int(q*float64(len(ms))), len(ms)-1)]) / 1000
}

// WriteText writes the shares for people, in lines of less than 80 characters.
func (s Shares) WriteText(w io.Writer) error {
	const format = "  %-34s %8s %9s %9s\n"
	if _, err := fmt.Fprintf(w, format, "a delta, from draft to other models", "share", "median", "95 %"); err != nil {
		return err
	}
	for k, e := range s.Stages {
		fmt.Fprintf(w, format, stages[k].what, percentText(e.Share), secondsText(e.MedianS), secondsText(e.P95S))
	}
	_, err := fmt.Fprintf(w, format, "in all", "", secondsText(s.MedianS), secondsText(s.P95S))
	return err
}

// Text says in words what the stages do not; whose says which deltas they are, such as " of lab"; "" is of all.
func (s Shares) Text(whose string) string {
	text := fmt.Sprintf("%d deltas%s in other nodes' models, %s of them late, %s given by their author",
		s.Deltas, whose, percentText(ratio(s.Late, s.Deltas)), percentText(ratio(s.ByAuthor, s.Deltas)))
	if s.Requests > 0 {
		text += fmt.Sprintf("; %d requests, %s busy, %s failed, %s for what was there",
			s.Requests, percentText(ratio(s.Busy, s.Requests)), percentText(ratio(s.Failed, s.Requests)), percentText(ratio(s.Again, s.Requests)))
	}
	return text + lost("their authors", s.Own) + lost("other nodes", s.Others) + s.closedText()
}

// closedText says why rounds closed, the most frequent reason first.
func (s Shares) closedText() string {
	if len(s.Closed) == 0 {
		return ""
	}
	whys := slices.Collect(maps.Keys(s.Closed))
	slices.SortFunc(whys, func(a, b string) int { return cmp.Or(cmp.Compare(s.Closed[b], s.Closed[a]), cmp.Compare(a, b)) })
	for i, why := range whys {
		whys[i] = fmt.Sprintf("%d %s", s.Closed[why], why)
	}
	return "; rounds closed: " + strings.Join(whys, ", ")
}

// lost says which deltas did not come into the model, and where.
func lost(where string, ends map[End]int) string {
	var parts []string
	for _, how := range slices.Sorted(maps.Keys(ends)) {
		if how != Adopted {
			parts = append(parts, fmt.Sprintf("%d %s", ends[how], how))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("; at %s %s", where, strings.Join(parts, ", "))
}

func ratio(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func percentText(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func secondsText(s float64) string { return fmt.Sprintf("%.2f s", s) }
