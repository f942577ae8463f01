package scenario

import (
	"slices"
	"strings"

	"atoll/testnet/sim"
)

// verbs are what events begin with. All but one are the simulator's own names.
var verbs = func() map[string]sim.Kind {
	m := map[string]sim.Kind{}
	for _, k := range sim.Kinds {
		m[verbOf(k)] = k
	}
	return m
}()

// verbOf is what scripts call a kind of fault.
func verbOf(k sim.Kind) string {
	if k == sim.Restart {
		return "start"
	}
	return string(k)
}

// event is what happens at one moment, or again and again.
type event struct {
	fault  sim.Fault // all but the time and the node
	nodes  []int     // whom it befalls, each by a fault of its own; nil for what befalls the world
	turns  bool      // only one of them each time
	times  int       // how often at once, for joins
	length sim.Time  // after which it is undone; 0 = it is not
}

// at reads `at TIME EVENT`.
func (c *compiler) at(r *reader) {
	when := r.duration("when")
	verb := ""
	if r.more() {
		verb = r.words[0]
	}
	e := r.event(c)
	if r.end(); r.err == nil {
		if e.turns {
			r.fail("in", "`in turn` is for what happens every so often; use `every D from TIME to TIME ...`")
			return
		}
		c.happens(r, verb, when, e, 0)
	}
}

// every reads `every D from TIME to TIME EVENT`: at the first time, and then
// again and again before the second.
func (c *compiler) every(r *reader) {
	period := r.durationFrom("how often", 1)
	r.need("from")
	from := r.duration("when it begins")
	r.need("to")
	to := r.durationFrom("when it ends", from)
	verb := ""
	if r.more() {
		verb = r.words[0]
	}
	e := r.event(c)
	r.end()
	for k := 0; r.err == nil && from < to; k++ {
		c.happens(r, verb, from, e, k)
		from += period
	}
}

// happens adds the faults of an event, the kth time that it happens.
func (c *compiler) happens(r *reader, verb string, when sim.Time, e event, k int) {
	befallen := e.nodes
	switch {
	case e.turns:
		befallen = e.nodes[k%len(e.nodes):][:1]
	case e.nodes == nil:
		befallen = make([]int, max(e.times, 1))
	}
	for _, n := range befallen {
		f := e.fault
		f.At = when
		if e.nodes != nil {
			f.Node = n
		}
		c.dated = append(c.dated, dated{f, r.line, verb})
		if e.length > 0 {
			c.dated = append(c.dated, dated{c.undone(f, e.length), r.line, verb})
		}
	}
	if len(c.dated) > maxFaults {
		r.fail(verb, "this makes more than %d events", maxFaults)
	}
}

// undoing is what ends a kind of fault.
var undoing = map[sim.Kind]sim.Kind{
	sim.Crash: sim.Restart, sim.PowerCut: sim.Restart, sim.Wipe: sim.Restart, sim.Pause: sim.Resume,
	sim.Partition: sim.Heal, sim.Cut: sim.Mend, sim.DiskFull: sim.DiskFree, sim.Slow: sim.Slow, sim.Weather: sim.Weather,
}

// undone is the fault that ends another after so long.
func (c *compiler) undone(f sim.Fault, length sim.Time) sim.Fault {
	end := sim.Fault{At: f.At + length, Kind: undoing[f.Kind], Node: f.Node}
	switch f.Kind {
	case sim.Cut:
		end.Others = f.Others
	case sim.Slow:
		end.Factor = 1
	case sim.Weather:
		end.Link = c.script.World.Link
	}
	return end
}

// event reads `VERB ... [in turn] [for D]`.
func (r *reader) event(c *compiler) (e event) {
	verb := r.next("an event")
	kind, ok := verbs[verb]
	if r.err == nil && !ok {
		r.fail(verb, "there is no such event; use one of %s", strings.Join(verbNames(), ", "))
	}
	e.fault.Kind = kind
	e.aim(r, len(c.script.World.Founders))
	if r.tookAll("in turn") {
		e.turns = true
		if len(e.nodes) == 0 {
			r.fail(verb, "this befalls no nodes that could take turns")
		}
	}
	if r.took("for") {
		e.length = r.durationFrom("how long", 1)
		if _, ends := undoing[kind]; r.err == nil && !ends {
			r.fail(verb, "this has no end, so `for` makes no sense")
		}
	}
	return e
}

func verbNames() (names []string) {
	for _, k := range sim.Kinds {
		names = append(names, verbOf(k))
	}
	slices.Sort(names)
	return names
}

// aim reads whom an event befalls, and how.
func (e *event) aim(r *reader, founders int) {
	f := &e.fault
	switch f.Kind {
	case sim.Heal:
	case sim.Join:
		e.times = 1
		if r.more() && isNodes(r.words[0]) {
			e.times = int(r.integer("how many join", 1, maxNodes))
		}
		f.Spec = r.traits(sim.NodeSpec{})
	case sim.Partition:
		f.Parts = r.parts(founders)
	case sim.Cut:
		e.nodes, f.Others = r.fromTo(founders)
	case sim.Mend:
		if r.more() && !r.closing() {
			e.nodes, f.Others = r.fromTo(founders)
		}
	case sim.Weather:
		f.Link = r.link()
	default:
		e.nodes = r.nodes(founders)
		e.extent(r)
	}
}

// extent reads how much of it befalls a node.
func (e *event) extent(r *reader) {
	f := &e.fault
	switch f.Kind {
	case sim.Slow:
		r.need("times")
		f.Factor = r.integer("how much slower", 1, 1e6)
	case sim.Skew:
		r.need("by")
		f.Factor = r.signed("the skew")
	case sim.Upgrade:
		r.need("to")
		f.Spec = r.traits(sim.NodeSpec{})
	}
}

// parts reads groups of nodes with | between them.
func (r *reader) parts(founders int) (parts [][]int) {
	for {
		parts = append(parts, r.nodes(founders))
		if !r.took("|") {
			return parts
		}
		if len(parts) >= 60 {
			r.fail("|", "a partition has at most 60 parts")
			return nil
		}
	}
}

// fromTo reads `NODES > NODES`.
func (r *reader) fromTo(founders int) (from, to []int) {
	from = r.nodes(founders)
	r.need(">")
	return from, r.nodes(founders)
}
