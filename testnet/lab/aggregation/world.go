package aggregation

import (
	"math"
	"math/rand/v2"
	"slices"
)

// world is all nodes and what is under way between them. Times are seconds since the first proposal.
type world struct {
	Config
	draws    *rand.Rand
	queue    queue
	nodes    []node
	items    []item
	rounds   []*round
	together int // deltas that an item stands for

	transfers int
}

// node is one, with its link.
type node struct {
	down  float64 // when its downlink is free
	cpu   float64 // when its core is
	busy  bool    // its uplink is
	holds []int32 // items that others may lack
	turn  int     // of these: the one to send next
}

// item is a payload, or several that go together.
type item struct {
	round *round
	level int
	group int      // that it is for; without use where it is for all
	bytes float64  // of all that it stands for
	lack  []uint16 // who has yet to be sent it
}

// round is one of a fragment.
type round struct {
	began    float64
	levels   [][]*gathering // the groups of each level
	lacks    []int32        // items of the last level that each node has yet to get
	down     []float64      // bytes of each node
	up       []float64
	merging  []float64 // seconds of each node's core
	proposal float64   // until the last node hears it
	sum      float64   // of the times until nodes have folded
	last     float64
	folded   int
	publish  []uint16
}

// gathering is a group, and what its aggregators wait for.
type gathering struct {
	aggregators []uint16
	lacks       []int // deltas, of each aggregator
	item        int32 // the merged delta; -1 until somebody has made it
	into        int   // the group of the next level
}

func newWorld(c Config) *world {
	w := &world{Config: c, draws: rand.New(rand.NewPCG(c.Seed, 0)), nodes: make([]node, c.Learners)}
	counts, levels := c.counts(), c.levels()
	all := float64(counts[levels]) * float64(c.Learners)
	w.together = int(math.Ceil(all / maxTransfers))
	n := min(max(int(maxTransfers/all), 1), maxRounds)
	for i := range n {
		w.rounds = append(w.rounds, w.begin(float64(i)*c.period()))
	}
	return w
}

// hops is how many of gossip's a header makes to the n-th node that hears it, from 0: each tells five others.
func hops(n int) float64 {
	const others = 5
	depth, reached := 0.0, 1
	for width := 1; n >= reached; depth++ {
		width *= others
		reached += width
	}
	return depth
}

// begin opens a round: each learner that publishes does so at the end of the step in which it hears the proposal.
func (w *world) begin(at float64) *round {
	n := w.Learners
	r := &round{began: at, lacks: make([]int32, n), down: make([]float64, n), up: make([]float64, n), merging: make([]float64, n), last: at}
	hears := make([]float64, n)
	for i, v := range w.draws.Perm(n) {
		hears[v] = at + hops(i)*w.Delay.Seconds()
		r.proposal = max(r.proposal, hears[v]-at)
	}
	for _, v := range w.draws.Perm(n)[:w.publish()] {
		r.publish = append(r.publish, uint16(v))
	}
	w.gather(r)
	for i := 0; i < len(r.publish); i += w.stands() {
		v := r.publish[i]
		id := w.add(r, 0, i/max(1, w.group0()), min(w.stands(), len(r.publish)-i), []uint16{v})
		w.queue.push(event{at: hears[v] + w.draws.Float64()*w.Step.Seconds(), kind: published, node: v, item: id})
	}
	return r
}

// stands is how many of the learners' deltas an item stands for.
func (w *world) stands() int {
	if w.levels() > 0 {
		return 1
	}
	return w.together
}

// group0 is the size of the groups of the first level, 0 without one.
func (w *world) group0() int {
	if w.levels() == 0 {
		return 0
	}
	return w.group()
}

// gather draws the groups of a round. Publishers were drawn in no order, so each so many in a row are a group.
func (w *world) gather(r *round) {
	counts := w.counts()
	for l := 1; l < len(counts); l++ {
		groups := make([]*gathering, counts[l])
		for g := range groups {
			members := min(w.group(), counts[l-1]-g*w.group())
			from := r.publish[g*w.group():][:min(members, w.Learners)]
			if l > 1 {
				from = nil // a hash of all learners, or few would aggregate in all levels
			}
			groups[g] = &gathering{aggregators: w.drawAggregators(from), item: -1, into: g / w.group()}
			groups[g].lacks = make([]int, len(groups[g].aggregators))
			for i := range groups[g].lacks {
				groups[g].lacks[i] = members
			}
		}
		r.levels = append(r.levels, groups)
	}
	top := counts[len(counts)-1]
	items := (top + w.stands() - 1) / w.stands()
	for v := range r.lacks {
		r.lacks[v] = int32(items)
	}
}

// drawAggregators takes some of these nodes, or of all.
func (w *world) drawAggregators(from []uint16) (drawn []uint16) {
	if from != nil {
		order := w.draws.Perm(len(from))
		for _, i := range order[:min(w.Aggregators, len(from))] {
			drawn = append(drawn, from[i])
		}
		return drawn
	}
	for len(drawn) < min(w.Aggregators, w.Learners) {
		if v := uint16(w.draws.IntN(w.Learners)); !slices.Contains(drawn, v) {
			drawn = append(drawn, v)
		}
	}
	return drawn
}

// add makes an item that some nodes have from the start. Its receivers are drawn in some order.
func (w *world) add(r *round, level, group, deltas int, have []uint16) int32 {
	it := item{round: r, level: level, group: group, bytes: float64(deltas) * w.payload(level)}
	if level == w.levels() {
		it.lack = make([]uint16, 0, w.Learners)
		for v := range w.Learners {
			if !slices.Contains(have, uint16(v)) {
				it.lack = append(it.lack, uint16(v))
			}
		}
	} else {
		for _, v := range r.levels[level][group].aggregators {
			if !slices.Contains(have, v) {
				it.lack = append(it.lack, v)
			}
		}
	}
	w.draws.Shuffle(len(it.lack), func(i, j int) { it.lack[i], it.lack[j] = it.lack[j], it.lack[i] })
	w.items = append(w.items, it)
	return int32(len(w.items) - 1)
}

// play goes on until nothing is under way.
func (w *world) play() {
	for len(w.queue.events) > 0 {
		e := w.queue.pop()
		switch e.kind {
		case published, arrived, merged:
			w.has(e)
		case asked:
			n := &w.nodes[e.node]
			n.holds = append(n.holds, e.item)
			if !n.busy {
				w.send(e.at, e.node)
			}
		case free:
			w.send(e.at, e.node)
		}
	}
}

// has is a node that has an item from now on: it passes it on, once others have heard of that and asked.
func (w *world) has(e event) {
	it := &w.items[e.item]
	if len(it.lack) > 0 {
		w.queue.push(event{at: e.at + 2*w.Delay.Seconds(), kind: asked, node: e.node, item: e.item})
	}
	if it.level == w.levels() {
		w.count(e.at, e.node, it.round)
		return
	}
	g := it.round.levels[it.level][it.group]
	for i, v := range g.aggregators {
		if v == e.node {
			w.collect(e.at, it.round, it.level, it.group, i)
		}
	}
}

// collect counts a delta of a group at one of its aggregators, which merges when it has all.
func (w *world) collect(at float64, r *round, level, group, aggregator int) {
	g := r.levels[level][group]
	g.lacks[aggregator]--
	if g.lacks[aggregator] > 0 {
		return
	}
	v := g.aggregators[aggregator]
	took := w.mergeSeconds(level + 1)
	n := &w.nodes[v]
	n.cpu = max(n.cpu, at) + took
	r.merging[v] += took
	if g.item < 0 {
		g.item = w.add(r, level+1, g.into, 1, g.aggregators)
	}
	done := n.cpu
	if len(g.aggregators) > 1 {
		done += 2 * w.Delay.Seconds() // they tell each other which deltas they have
	}
	w.queue.push(event{at: done, kind: merged, node: v, item: g.item})
}

// count counts an item that all get, at a node, which folds when it has all of them.
func (w *world) count(at float64, v uint16, r *round) {
	r.lacks[v]--
	if r.lacks[v] > 0 {
		return
	}
	n := &w.nodes[v]
	n.cpu = max(n.cpu, at) + w.foldSeconds(w.levels(), float64(w.counts()[w.levels()]))
	r.sum += n.cpu - r.began
	r.last = max(r.last, n.cpu)
	r.folded++
}

// send has an uplink that is free send what comes next, if any of what the node has is lacking anywhere.
func (w *world) send(at float64, from uint16) {
	n := &w.nodes[from]
	n.busy = false
	for len(n.holds) > 0 {
		n.turn %= len(n.holds)
		id := n.holds[n.turn]
		it := &w.items[id]
		if len(it.lack) == 0 {
			n.holds[n.turn] = n.holds[len(n.holds)-1]
			n.holds = n.holds[:len(n.holds)-1]
			continue
		}
		n.turn++
		to := it.lack[len(it.lack)-1]
		it.lack = it.lack[:len(it.lack)-1]
		w.transfer(at, from, to, id)
		return
	}
}

// transfer sends an item over both links. The downlink takes what comes first, as soon as it is free.
func (w *world) transfer(at float64, from, to uint16, id int32) {
	it := &w.items[id]
	took := it.bytes * 8 / w.Rate
	w.nodes[from].busy = true
	w.queue.push(event{at: at + took, kind: free, node: from, item: -1})
	receiver := &w.nodes[to]
	receiver.down = max(receiver.down, at+w.Delay.Seconds()) + took
	w.queue.push(event{at: receiver.down, kind: arrived, node: to, item: id})
	it.round.up[from] += it.bytes
	it.round.down[to] += it.bytes
	w.transfers++
}

// mostMerging is what merging took of the core of the busiest aggregator, in a round.
func (w *world) mostMerging() (most float64) {
	for _, r := range w.rounds {
		most = max(most, slices.Max(r.merging))
	}
	return most
}

// report is what came of it.
func (w *world) report(r *Result) {
	r.Rounds, r.Together, r.Transfers = len(w.rounds), w.stands(), w.transfers
	rounds, nodes := float64(len(w.rounds)), float64(w.Learners)
	for _, rd := range w.rounds {
		r.Down += mean(rd.down) / rounds
		r.Up += mean(rd.up) / rounds
		r.BusiestDown = max(r.BusiestDown, slices.Max(rd.down))
		r.BusiestUp = max(r.BusiestUp, slices.Max(rd.up))
		r.Proposal = max(r.Proposal, rd.proposal)
		r.Latency += rd.sum / nodes / rounds
		r.Last = max(r.Last, rd.last-rd.began)
	}
}

func mean(x []float64) (mean float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	return mean
}
