package top

import (
	"cmp"
	"slices"
	"time"

	"atoll/node/status"
)

// Bounds on what a history keeps.
const (
	maxPoints = 1024 // of a curve: more than the widest terminal has dots
	maxEvents = 100
	// rateOver is the time over which traffic is measured.
	rateOver = 10 * time.Second
	// freshFor is how long a round counts as just closed.
	freshFor = 3 * time.Second
)

// History is what polls have found so far.
type History struct {
	now    time.Time
	nodes  []Node
	curves [curveKinds]curve
	closed []closing // by fragment
	events []event
	meters map[string]*meter // by node id
}

// closing is when the newest round of a fragment was seen to close.
type closing struct {
	round uint32
	at    time.Time
}

// event is one of a node.
type event struct {
	status.Event
	node string // that told of it; "" if only one is shown
}

// meter measures the traffic of a node.
type meter struct{ samples []sample }

type sample struct {
	at             time.Time
	sent, received uint64
}

// Add takes in what a poll found.
func (h *History) Add(now time.Time, nodes []Node) {
	h.now, h.nodes = now, nodes
	lead := h.lead()
	if lead == nil {
		return
	}
	h.addRounds(lead.Status.Fragments)
	for k := range h.curves {
		at, value := curveKind(k).of(nodes, lead.Status)
		h.curves[k].add(at, value)
	}
	h.addEvents()
	for _, n := range nodes {
		if n.Running {
			h.meterOf(n.Status.Self).add(n.Status)
		}
	}
}

// lead is the node that has folded most: its view of the run is the newest. A node that runs goes before
// one that does not.
func (h *History) lead() *Node {
	var best *Node
	for i := range h.nodes {
		n := &h.nodes[i]
		if best == nil || n.Running && !best.Running || n.Running == best.Running && n.Status.TokensFolded > best.Status.TokensFolded {
			best = n
		}
	}
	return best
}

func (h *History) addRounds(fragments []status.Fragment) {
	if len(h.closed) != len(fragments) {
		h.closed = make([]closing, len(fragments))
		for p, f := range fragments {
			h.closed[p].round = f.Closed
		}
		return
	}
	for p, f := range fragments {
		if f.Closed != h.closed[p].round {
			h.closed[p] = closing{f.Closed, h.now}
		}
	}
}

// fresh reports whether a fragment has just closed a round.
func (h *History) fresh(p int) bool {
	return p < len(h.closed) && !h.closed[p].at.IsZero() && h.now.Sub(h.closed[p].at) < freshFor
}

// addEvents puts the events of all nodes in one order.
func (h *History) addEvents() {
	h.events = h.events[:0]
	for _, n := range h.nodes {
		name := n.Name
		if len(h.nodes) == 1 {
			name = ""
		}
		for _, e := range n.Status.Events {
			h.events = append(h.events, event{e, name})
		}
	}
	slices.SortStableFunc(h.events, func(a, b event) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	h.events = h.events[max(0, len(h.events)-maxEvents):]
}

func (h *History) meterOf(id string) *meter {
	if h.meters == nil {
		h.meters = map[string]*meter{}
	}
	m := h.meters[id]
	if m == nil {
		m = &meter{}
		h.meters[id] = m
	}
	return m
}

func (m *meter) add(s status.Snapshot) {
	if n := len(m.samples); n > 0 {
		last := m.samples[n-1]
		if !s.At.After(last.at) {
			return // the status is the same
		}
		if s.Net.SentBytes < last.sent || s.Net.ReceivedBytes < last.received {
			m.samples = nil // it has started again
		}
	}
	m.samples = append(m.samples, sample{s.At, s.Net.SentBytes, s.Net.ReceivedBytes})
	for len(m.samples) > 2 && s.At.Sub(m.samples[1].at) >= rateOver {
		m.samples = m.samples[1:]
	}
}

// rates are the recent bytes a second; known is false where there were too few polls.
func (m *meter) rates() (up, down float64, known bool) {
	if m == nil || len(m.samples) < 2 {
		return 0, 0, false
	}
	first, last := m.samples[0], m.samples[len(m.samples)-1]
	seconds := last.at.Sub(first.at).Seconds()
	return float64(last.sent-first.sent) / seconds, float64(last.received-first.received) / seconds, true
}
