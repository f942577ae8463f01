package testnet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"atoll/testnet/fault"
)

// drawStream is the random sequence that chaos is drawn from, apart from the one
// that picks nodes while the world runs: the plan depends on the seed alone.
const drawStream = 1

// mendAt is the share of the budget in percent at which chance ends: what it
// broke is mended, and the rest of the run shows that the nodes agree.
const mendAt = 80

// untilTrains is how long a node that comes back counts as away.
const untilTrains = 5 * time.Second

// Random chaos: how long what it does lasts, and how much slower a node gets.
const (
	leastDown, mostDown     = 2 * time.Second, 15 * time.Second
	leastFactor, mostFactor = 2, 8
)

// randomVerbs are what random chaos does, as often as they are listed. A leave
// is only drawn for a node that can be spared: as many join as leave.
var randomVerbs = []fault.Verb{fault.Kill, fault.Kill, fault.Kill, fault.Kill, fault.Pause, fault.Pause, fault.Pause, fault.Slow, fault.Slow, fault.Partition, fault.Partition, fault.Join, fault.Leave}

// draw turns events of chance into events at moments. It follows what they do to
// the nodes, so that one is always there that chance has left alone.
type draw struct {
	nodes  int // that start together
	joined int // so many more, by now; at first those that are said to join
	named  []int
	rng    *rand.Rand
	plan   []*scheduled

	away      map[int]time.Duration // until when a node is not there
	slow      map[int]time.Duration // until when it is slower
	parted    time.Duration         // until when the network is parted
	newcomers int                   // by chance
	leavers   int
}

// moment is when an event of chance is due.
type moment struct {
	at time.Duration
	fault.Event
}

// forever is later than any run ends.
const forever = time.Duration(1<<63 - 1)

// all draws until the horizon. Nodes that are spoken of by number are left to
// what is said of them.
func (d *draw) all(said, chance chaos, horizon time.Duration) []*scheduled {
	d.away, d.slow = map[int]time.Duration{}, map[int]time.Duration{}
	for _, e := range said {
		d.named = append(d.named, e.Named()...)
	}
	for n := d.nodes; n < d.count(); n++ {
		d.away[n] = forever // when those come that are said to join is not known
	}
	var due []moment
	for _, e := range chance {
		for at := d.next(e, 0); at < horizon; at = d.next(e, at) {
			due = append(due, moment{at, e})
		}
	}
	slices.SortStableFunc(due, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	for _, m := range due {
		d.one(m)
	}
	return d.plan
}

// next is when an event happens again: random chaos at half to one and a half
// times its mean distance.
func (d *draw) next(e fault.Event, last time.Duration) time.Duration {
	if e.Verb == fault.Random {
		return last + e.Every/2 + d.duration(0, e.Every)
	}
	return last + e.Every
}

func (d *draw) one(m moment) {
	if m.Verb == fault.Random {
		m.Nodes, m.For = []int{fault.Any}, d.duration(leastDown, mostDown)
		m.Factor = float64(leastFactor + d.rng.IntN(mostFactor-leastFactor+1))
		m.Verb = randomVerbs[d.rng.IntN(len(randomVerbs))]
	}
	until := m.at + m.For
	switch m.Verb {
	case fault.Kill, fault.Pause:
		d.harm(m, until)
	case fault.Slow, fault.Link:
		d.slower(m, until)
	case fault.Partition:
		d.part(m, until)
	case fault.Join:
		d.join(m.at)
	case fault.Leave:
		d.leave(m.at)
	}
}

// harm takes a node away and brings it back.
func (d *draw) harm(m moment, until time.Duration) {
	node, ok := d.spare(m)
	if !ok {
		return
	}
	d.away[node] = until + untilTrains
	back := fault.Start
	if m.Verb == fault.Pause {
		back = fault.Resume
	}
	d.add(fault.Event{Verb: m.Verb, Nodes: []int{node}, At: fault.At(m.at)}, fault.Event{Verb: back, Nodes: []int{node}, At: fault.At(until)})
}

// slower makes a node or its link slower, and fast again.
func (d *draw) slower(m moment, until time.Duration) {
	fit := slices.DeleteFunc(d.fit(m), func(n int) bool { return d.slow[n] > m.at })
	if len(fit) == 0 {
		return
	}
	node := fit[d.rng.IntN(len(fit))]
	d.slow[node] = until
	e := fault.Event{Verb: m.Verb, Nodes: []int{node}, Factor: m.Factor, Detail: m.Detail, At: fault.At(m.at), For: m.For}
	begin, end := e.Undone()
	d.add(begin, *end)
}

// part splits all nodes, those that may join meanwhile included.
func (d *draw) part(m moment, until time.Duration) {
	if d.parted > m.at || d.count() < 2 {
		return
	}
	d.parted = until
	end := fault.At(until)
	d.add(fault.Event{Verb: fault.Partition, Groups: d.sides(), At: fault.At(m.at), Until: &end})
}

// sides is a random split.
func (d *draw) sides() [][]int {
	order := d.rng.Perm(d.count())
	cut := 1 + d.rng.IntN(len(order)-1)
	sides := [][]int{order[:cut], order[cut:]}
	for _, s := range sides {
		slices.Sort(s)
	}
	return sides
}

// join adds a node: at most as many as there were, which the machine was
// calibrated for.
func (d *draw) join(when time.Duration) {
	if d.newcomers >= (d.nodes+1)/2 {
		return
	}
	d.away[d.count()] = when + untilTrains
	d.newcomers++
	d.joined++
	d.add(fault.Event{Verb: fault.Join, Count: 1, At: fault.At(when)})
}

func (d *draw) leave(when time.Duration) {
	node, ok := d.spare(moment{when, fault.Event{Nodes: []int{fault.Any}}})
	if !ok || d.leavers >= d.newcomers {
		return
	}
	d.leavers++
	d.away[node] = forever
	d.add(fault.Event{Verb: fault.Leave, Nodes: []int{node}, At: fault.At(when)})
}

// add plans an event, and those that mend what it does.
func (d *draw) add(e fault.Event, mends ...fault.Event) {
	harm := &scheduled{Event: e, drawn: true}
	d.plan = append(d.plan, harm)
	for _, m := range mends {
		d.plan = append(d.plan, &scheduled{Event: m, drawn: true, mends: harm})
	}
}

// decided is a typed event with what it leaves to the seed: how a partition of
// any splits.
func (d *draw) decided(e fault.Event) fault.Event {
	if e.Verb == fault.Partition && e.Groups == nil {
		e.Groups = d.sides()
	}
	return e
}

// spare picks a node for an event, so that another one stays.
func (d *draw) spare(m moment) (int, bool) {
	there := 0
	for n := range d.count() {
		if d.away[n] <= m.at && !slices.Contains(d.named, n) {
			there++
		}
	}
	fit := d.fit(m)
	if there < 2 || len(fit) == 0 {
		return 0, false
	}
	return fit[d.rng.IntN(len(fit))], true
}

// fit are the nodes that are there and that an event may be about.
func (d *draw) fit(m moment) (nodes []int) {
	for n := range d.count() {
		if d.away[n] <= m.at && !slices.Contains(d.named, n) && (m.Node() == fault.Any || m.Node() == n) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// count is how many nodes there are by now.
func (d *draw) count() int { return d.nodes + d.joined }

// duration draws from least to most, in whole tenths of a second, so that a plan
// can be read.
func (d *draw) duration(least, most time.Duration) time.Duration {
	const unit = 100 * time.Millisecond
	return least + unit*time.Duration(d.rng.Int64N(int64((most-least)/unit)+1))
}
