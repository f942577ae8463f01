package trace

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"sync"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// maxOpen bounds the deltas that a Recorder follows at once. A run has some for each
// learner and fragment under way, so hundreds; headers that nobody folds must not fill the
// memory. The oldest is written as it stands.
const maxOpen = 1 << 14

// writeAt is how many bytes wait to be written at most: a node flushes twice a second, and
// then has some hundred lines.
const writeAt = 256 << 10

// sweepEvery is how many rounds of a fragment pass between two looks for deltas that
// can be folded no more.
const sweepEvery = 16

// Config is what a Recorder is made of.
type Config struct {
	Self   wire.PeerID
	Run    wire.RunID
	Window uint32       // rounds after which the set of a round is final
	Now    func() int64 // Unix milliseconds
	Out    io.Writer    // takes the lines
}

// Recorder follows deltas through one node. Any goroutine may call it.
type Recorder struct {
	cfg Config

	mu     sync.Mutex
	out    bytes.Buffer // whole lines that are not written yet
	err    error        // the first of writing
	open   map[wire.Digest]*Line
	order  []wire.Digest // of open, by arrival; what was closed since stays until it is met
	calls  map[uint64]request
	drafts map[uint64]int64   // when own drafts that have no name yet were made, by number
	own    map[uint64]*Line   // own deltas whose end may still change, by number
	closes []map[uint32]int64 // by fragment and round
	folds  []fold             // that nobody stands on yet, by fragment in order
}

// fold is what a fold put into its tip.
type fold struct {
	fragment int
	tip      *outer.Tip
	deltas   []wire.Digest
}

// New returns a Recorder that has seen nothing.
func New(cfg Config) *Recorder {
	return &Recorder{
		cfg: cfg, open: map[wire.Digest]*Line{}, calls: map[uint64]request{},
		drafts: map[uint64]int64{}, own: map[uint64]*Line{},
	}
}

// at runs f on what is recorded, with the time.
func (r *Recorder) at(f func(now int64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(r.cfg.Now())
}

// begin follows a delta, if it is not followed yet.
func (r *Recorder) begin(id wire.Digest, h wire.Header) *Line {
	if l := r.open[id]; l != nil {
		return l
	}
	r.makeRoom()
	l := &Line{Delta: id, Node: r.cfg.Self, What: What{
		Author: h.Author, Fragment: int(h.Fragment), Round: h.Round, Size: int(h.Size), Steps: h.Steps, Tokens: h.Tokens,
	}}
	l.Closed = r.closedAt(l.Fragment, l.Round)
	r.open[id] = l
	r.order = append(r.order, id)
	return l
}

// makeRoom writes the oldest deltas as they stand where there are too many.
func (r *Recorder) makeRoom() {
	for len(r.open) >= maxOpen {
		if l := r.open[r.order[0]]; l != nil {
			r.end(l, Open)
		}
		r.order = r.order[1:]
	}
	if len(r.order) >= 2*maxOpen {
		r.order = slices.DeleteFunc(r.order, func(id wire.Digest) bool { return r.open[id] == nil })
	}
}

// end writes the line of a delta and follows it no more.
func (r *Recorder) end(l *Line, how End) {
	delete(r.open, l.Delta)
	r.write(l, how)
}

func (r *Recorder) write(l *Line, how End) {
	if l.End == how {
		return // it was written so before
	}
	l.End = how
	r.put(l)
}

func (r *Recorder) put(v any) {
	if err := json.NewEncoder(&r.out).Encode(v); err != nil && r.err == nil {
		r.err = err
	}
	if r.out.Len() >= writeAt {
		r.flush()
	}
}

// flush writes whole lines, so that a process that is killed leaves no half of one.
func (r *Recorder) flush() {
	if _, err := r.out.WriteTo(r.cfg.Out); err != nil && r.err == nil {
		r.err = err
	}
	r.out.Reset() // what the disk does not take is lost: a trace must not fill the memory
}

// Flush hands what is written so far to the writer.
func (r *Recorder) Flush() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flush()
	err := r.err
	r.err = nil
	return err
}

// Close writes what is still open.
func (r *Recorder) Close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	for _, id := range r.order {
		if l := r.open[id]; l != nil && l.End == "" {
			r.end(l, Open)
		}
	}
	r.mu.Unlock()
	return r.Flush()
}

// closedAt is when a round closed, 0 if it did not, or long ago.
func (r *Recorder) closedAt(fragment int, round uint32) int64 {
	if fragment >= len(r.closes) {
		return 0
	}
	return r.closes[fragment][round]
}

// closed records that a round closed.
func (r *Recorder) closed(now int64, e rounds.Closed) {
	for len(r.closes) <= e.Fragment {
		r.closes = append(r.closes, map[uint32]int64{})
	}
	round := e.Link.Round
	r.put(entry{Close: &Close{
		Node: r.cfg.Self, Fragment: e.Fragment, Round: round, At: now,
		Why: e.Why.String(), For: wire.PeerID(e.Why.For), WaitedMs: e.Why.Waited,
	}})
	r.closes[e.Fragment][round] = now
	delete(r.closes[e.Fragment], round-r.cfg.Window-1) // no delta comes later than that
	for _, l := range r.open {
		if l.Fragment == e.Fragment && l.Round == round && l.Closed == 0 { // a snapshot may close it once more
			l.Closed = now
		}
	}
	if round%sweepEvery == 0 {
		r.sweep(e.Fragment, round)
	}
}

// sweep ends the deltas of a fragment that no fold will take any more.
func (r *Recorder) sweep(fragment int, closed uint32) {
	for _, id := range r.order {
		l := r.open[id]
		if l != nil && l.Fragment == fragment && l.Folded == 0 && !l.Own() && uint64(l.Round)+uint64(r.cfg.Window) <= uint64(closed) {
			r.end(l, Missed)
		}
	}
}

// folded records what a fold took.
func (r *Recorder) folded(now int64, e replica.TipFolded) {
	f := fold{fragment: e.Want.Fragment, tip: e.Tip}
	for _, link := range e.Links {
		for _, id := range link.Folded {
			if l := r.open[wire.Digest(id)]; l != nil && l.Folded == 0 {
				l.Folded = now
				l.Late = l.Late || l.Closed == 0 && !l.Own() // its round closed before this process began
				f.deltas = append(f.deltas, l.Delta)
			}
		}
	}
	r.folds = append(r.folds, f)
}

// adopted ends what the tip that is adopted folded, or a tip before it.
func (r *Recorder) adopted(now int64, a outer.Adopt) {
	last := -1
	for i, f := range r.folds {
		if f.tip == a.Tip && f.fragment == a.Fragment {
			last = i
		}
	}
	kept := r.folds[:0]
	for i, f := range r.folds {
		if f.fragment != a.Fragment || i > last {
			kept = append(kept, f)
			continue
		}
		for _, id := range f.deltas {
			if l := r.open[id]; l != nil {
				l.Adopted = now
				r.end(l, Adopted)
			}
		}
	}
	clear(r.folds[len(kept):])
	r.folds = kept
}

// installed ends what a snapshot has overtaken. What becomes of own
// deltas is told when they are adopted.
func (r *Recorder) installed(e replica.Installed) {
	r.folds = nil
	for _, id := range r.order {
		l := r.open[id]
		if l != nil && !l.Own() && l.Fragment < len(e.Tips) && l.Round <= e.Tips[l.Fragment].Round {
			r.end(l, Installed)
		}
	}
}

// refused ends a delta that breaks the rules.
func (r *Recorder) refused(e core.Refused) {
	if l := r.open[e.ID]; l != nil {
		r.end(l, Refused)
	}
}
