package status

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Bounds on a History.
const (
	historyPoints = 160  // as many as a curve on a wide screen can show
	historyGapMs  = 1000 // least time between two of them, which is that between two statuses
)

// Point is one moment of a run, for curves. Absent numbers were not measured.
type Point struct {
	AtMs   int64   `json:"at_ms"`            // unix milliseconds
	Tokens uint64  `json:"tokens"`           // folded
	PerS   float32 `json:"per_s,omitempty"`  // folded tokens per second
	Val    float32 `json:"val,omitempty"`    // of the global parameters on held-out text: bits per byte, or nats per token where tokens are no bytes
	ValAt  uint64  `json:"val_at,omitempty"` // tokens folded by these global parameters
	Loss   float32 `json:"loss,omitempty"`   // of this node's own training, nats per token
}

// PointOf is the moment of a status.
func PointOf(s Snapshot) Point {
	p := Point{
		AtMs: s.At.UnixMilli(), Tokens: s.TokensFolded, PerS: float32(s.TokensPerS),
		ValAt: s.ValAtTokens, Val: float32(s.ValBPB), Loss: float32(s.TrainLoss),
	}
	if s.ValBPB == 0 {
		p.Val = float32(s.ValLoss)
	}
	return p
}

// History is how a run went, as one node saw it. It keeps a constant number of
// points: when they are full every other one goes, and new ones come half as often.
// The zero value is empty. It is not safe for concurrent use.
type History struct {
	points []Point
	gapMs  int64 // least time between two points
}

// RestoreHistory is the history that a node left, to go on with.
func RestoreHistory(points []Point) (h History) {
	for i := 2; i < len(points); i++ { // the last one may have come before its time
		if gap := points[i-1].AtMs - points[i-2].AtMs; h.gapMs == 0 || gap < h.gapMs {
			h.gapMs = gap
		}
	}
	for _, p := range points {
		h.Add(p)
	}
	return h
}

// Add records a moment, unless it is too close to the one before or earlier than it.
func (h *History) Add(p Point) {
	h.gapMs = max(h.gapMs, historyGapMs)
	n := len(h.points)
	if n > 0 && p.AtMs-h.points[n-1].AtMs < h.gapMs {
		return
	}
	still := func(q Point) bool { return q.Tokens == p.Tokens && q.ValAt == p.ValAt && q.Loss == p.Loss }
	if n > 1 && still(h.points[n-1]) && still(h.points[n-2]) {
		h.points = h.points[:n-1] // nothing happens: the first and the last point of that time say it
	}
	if len(h.points) == historyPoints {
		h.points, h.gapMs = everyOther(h.points), 2*h.gapMs
	}
	h.points = append(h.points, p)
}

// Points are a copy of all points.
func (h *History) Points() []Point { return slices.Clone(h.points) }

// Until adds a moment and returns a copy of all points, of which it is the last one.
func (h *History) Until(p Point) []Point {
	h.Add(p)
	points := slices.Clone(h.points)
	if last := points[len(points)-1]; last.AtMs < p.AtMs {
		points = append(points, p)
	}
	return points
}

// Span is what was known first, and the moment at which the last tokens were folded that were.
func Span(points []Point) (began, ended Point) {
	if len(points) == 0 {
		return began, ended
	}
	last := points[len(points)-1]
	return points[0], points[slices.IndexFunc(points, func(p Point) bool { return p.Tokens == last.Tokens })]
}

// Kept is what a process of a node tells the next one: no ledger has a clock.
type Kept struct {
	History []Point          `json:"history"`
	Heard   map[string]Heard `json:"heard"` // of those that trained, by id in hex
}

// clockSlack is how much later than another machine's a clock may be.
const clockSlack = time.Minute

// Between is what is kept of the time from the making of a run until now. A clock that was far off kept points that no later one
// can follow.
func (k Kept) Between(made, now time.Time) Kept {
	outside := func(atMs int64) bool { return atMs < made.Add(-clockSlack).UnixMilli() || atMs > now.UnixMilli() }
	k.History = slices.DeleteFunc(slices.Clone(k.History), func(p Point) bool { return outside(p.AtMs) })
	k.Heard = maps.Clone(k.Heard)
	maps.DeleteFunc(k.Heard, func(_ string, h Heard) bool { return outside(h.AtMs) })
	return k
}

// Heard is when a peer was last heard, and whether it said then that it leaves.
type Heard struct {
	AtMs   int64 `json:"at_ms"` // unix milliseconds
	Leaves bool  `json:"leaves,omitempty"`

	Name string `json:"name,omitempty"` // of its machine
}

// KeptOf is what there is to keep of a status.
func KeptOf(s Snapshot) Kept {
	k := Kept{History: s.History, Heard: map[string]Heard{}}
	for _, p := range s.Peers {
		if p.Trained && !p.Self && (p.LagS > 0 || !p.Away()) {
			k.Heard[p.ID] = Heard{s.At.UnixMilli() - int64(1000*p.LagS), p.State == Left || p.State == "leaving", p.Name}
		}
	}
	return k
}

// ReadFinal reads the last status that a node left in its folder.
func ReadFinal(dir string) (s Snapshot, err error) {
	b, err := os.ReadFile(filepath.Join(dir, FinalFile))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("last status in %s: %w", dir, err)
	}
	return s, nil
}
