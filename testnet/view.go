package testnet

import (
	"time"

	"atoll/node/status"
	"atoll/testnet/fault"
)

// view is what the screen shows of a world at one moment.
type view struct {
	elapsed time.Duration
	model   string
	budget  uint64
	folded  uint64
	perS    float64 // folded tokens per second over the last minute; 0 = not known
	average float64 // since the start
	left    time.Duration
	val     float64 // newest bits per byte of the model; 0 = not known
	valAt   uint64  // tokens folded into that model
	curve   []float64
	rows    []row
}

// row is one node.
type row struct {
	name   string
	state  string
	s      status.Snapshot
	share  float64 // of the folded tokens
	seen   bool
	closed uint32 // rounds, of the fragment that is furthest behind
	up     float64
	down   float64 // bytes per second since the start of the process
}

// view puts together what was polled last.
func (w *world) view(now time.Time) view {
	v := view{elapsed: now.Sub(w.began), model: w.cfg.Model, budget: w.genesis.Outer.Budget}
	lead := w.lead()
	if lead != nil {
		s := lead.last
		v.folded, v.perS = s.TokensFolded, s.TokensPerS
		v.left = time.Duration(s.ETASeconds * float64(time.Second))
		v.average = float64(v.folded) / v.elapsed.Seconds()
	}
	for _, m := range w.members {
		v.rows = append(v.rows, m.row(lead, now))
		if l := m.newest(); l != nil && l.last.ValBPB > 0 && l.last.ValAtTokens >= v.valAt {
			v.val, v.valAt = l.last.ValBPB, l.last.ValAtTokens
		}
	}
	w.screen.curve.add(v.valAt, v.val)
	v.curve = w.screen.curve.Value
	return v
}

// lead is the newest status of the node that has folded most.
func (w *world) lead() *life {
	var best *life
	for _, m := range w.members {
		for _, l := range m.lives {
			if l.seen && (best == nil || l.last.TokensFolded > best.last.TokensFolded) {
				best = l
			}
		}
	}
	return best
}

// row is how the node looks in the table.
func (m *member) row(lead *life, now time.Time) row {
	r := row{name: m.name(), state: "starting"}
	l := m.newest()
	if l == nil {
		return r
	}
	if r.seen = l.seen; l.seen {
		r.s, r.state, r.closed = l.last, l.last.State, leastClosed(l.last)
		seconds := max(now.Sub(l.began).Seconds(), 1)
		r.up, r.down = float64(l.last.Net.SentBytes)/seconds, float64(l.last.Net.ReceivedBytes)/seconds
		r.share = shareOf(lead, l.last.Self)
	}
	switch end := l.end(); {
	case end != "":
		r.state = end
	case l.paused:
		r.state = "paused"
	case m.slow > 1 && r.seen:
		r.state += ", " + fault.Number(m.slow) + "x slower"
	}
	return r
}

func leastClosed(s status.Snapshot) uint32 {
	var least uint32
	for i, f := range s.Fragments {
		if i == 0 || f.Closed < least {
			least = f.Closed
		}
	}
	return least
}

// shareOf is a node's share of the folded tokens, as the leading node has it.
func shareOf(lead *life, id string) float64 {
	if lead == nil {
		return 0
	}
	for _, p := range lead.last.Peers {
		if p.ID == id {
			return p.Share
		}
	}
	return 0
}

// curvePoints is how many values the loss curve keeps; when they are full every
// other one goes.
const curvePoints = 128

// lossCurve is the model's bits per byte over the run, thinned evenly.
type lossCurve struct{ status.Curve }

// add notes a value unless there is none or it is known already.
func (c *lossCurve) add(at uint64, bits float64) {
	if bits != 0 {
		c.Add(at, bits, curvePoints)
	}
}
