package testnet

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// drawStream is the random sequence that chaos is drawn from, apart from the one
// that picks nodes while the world runs: the plan depends on the seed alone.
const drawStream = 1

// healAt is the share of the budget in percent at which chance ends: what it
// broke is mended, and the rest of the run shows that the nodes agree.
const healAt = 80

// settle is how long a node that comes back counts as away: until it trains.
const settle = 5 * time.Second

// Random chaos: how long what it does lasts, and how much slower a node gets.
const (
	leastDown, mostDown     = 2 * time.Second, 15 * time.Second
	leastFactor, mostFactor = 2, 8
)

// randomVerbs are what random chaos does, as often as they are listed. A leave
// is only drawn for a node that can be spared: as many join as leave.
var randomVerbs = []Verb{Kill, Kill, Kill, Kill, Pause, Pause, Pause, Slow, Slow, Partition, Partition, Join, Leave}

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
	Event
}

// forever is later than any run ends.
const forever = time.Duration(1<<63 - 1)

// all draws until the horizon. Nodes that are spoken of by number are left to
// what is said of them.
func (d *draw) all(said, chance Chaos, horizon time.Duration) []*scheduled {
	d.away, d.slow = map[int]time.Duration{}, map[int]time.Duration{}
	for _, e := range said {
		d.named = append(d.named, e.named()...)
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
func (d *draw) next(e Event, last time.Duration) time.Duration {
	if e.Verb == Random {
		return last + e.Every/2 + d.duration(0, e.Every)
	}
	return last + e.Every
}

func (d *draw) one(m moment) {
	if m.Verb == Random {
		m.Node, m.Down = Any, d.duration(leastDown, mostDown)
		m.Factor = float64(leastFactor + d.rng.IntN(mostFactor-leastFactor+1))
		m.Verb = randomVerbs[d.rng.IntN(len(randomVerbs))]
	}
	until := m.at + m.Down
	switch m.Verb {
	case Kill, Pause:
		d.harm(m, until)
	case Slow:
		d.slower(m, until)
	case Partition:
		d.part(m, until)
	case Join:
		d.join(m.at)
	case Leave:
		d.leave(m.at)
	}
}

// harm takes a node away and brings it back.
func (d *draw) harm(m moment, until time.Duration) {
	node, ok := d.spare(m)
	if !ok {
		return
	}
	d.away[node] = until + settle
	back := Start
	if m.Verb == Pause {
		back = Resume
	}
	d.add(Event{Verb: m.Verb, Node: node, At: at(m.at)}, Event{Verb: back, Node: node, At: at(until)})
}

func (d *draw) slower(m moment, until time.Duration) {
	fit := slices.DeleteFunc(d.fit(m), func(n int) bool { return d.slow[n] > m.at })
	if len(fit) == 0 {
		return
	}
	node := fit[d.rng.IntN(len(fit))]
	d.slow[node] = until
	d.add(Event{Verb: Slow, Node: node, Factor: m.Factor, At: at(m.at)}, Event{Verb: Slow, Node: node, Factor: 1, At: at(until)})
}

// part splits all nodes, those that may join meanwhile included.
func (d *draw) part(m moment, until time.Duration) {
	if d.parted > m.at || d.count() < 2 {
		return
	}
	d.parted = until
	end := at(until)
	d.add(Event{Verb: Partition, Groups: d.sides(), At: at(m.at), Until: &end})
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
	d.away[d.count()] = when + settle
	d.newcomers++
	d.joined++
	d.add(Event{Verb: Join, At: at(when)})
}

func (d *draw) leave(when time.Duration) {
	node, ok := d.spare(moment{when, Event{Node: Any}})
	if !ok || d.leavers >= d.newcomers {
		return
	}
	d.leavers++
	d.away[node] = forever
	d.add(Event{Verb: Leave, Node: node, At: at(when)})
}

// add plans an event, and those that mend what it does.
func (d *draw) add(e Event, mends ...Event) {
	harm := &scheduled{Event: e, drawn: true}
	d.plan = append(d.plan, harm)
	for _, m := range mends {
		d.plan = append(d.plan, &scheduled{Event: m, drawn: true, mends: harm})
	}
}

// settled is a said event with what it leaves to the seed: how a partition of
// any splits.
func (d *draw) settled(e Event) Event {
	if e.Verb == Partition && e.Groups == nil {
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
		if d.away[n] <= m.at && !slices.Contains(d.named, n) && (m.Node == Any || m.Node == n) {
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
