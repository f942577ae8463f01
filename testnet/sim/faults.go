package sim

import (
	"cmp"
	"slices"

	"atoll/testnet/fault"
	"atoll/testnet/sim/memory"
)

// inject does one fault, if it makes sense now.
func (w *World) inject(f Fault) {
	if w.disturb(f) {
		w.counts.Faults[f.Kind]++
		w.flow() // what stood still may flow again, and the other way round
	}
}

// disturb reports whether there was anything to disturb.
func (w *World) disturb(f Fault) bool {
	switch f.Kind {
	case fault.Partition:
		return w.partition(f)
	case fault.Merge:
		return w.merge()
	case fault.Mend:
		return w.mend(f)
	case fault.Network:
		w.setNetwork(cmp.Or(f.Link, w.s.Link))
		return true
	case fault.Join:
		stays := func(n *Node) bool { return n.up && !n.left && !n.spec.Outsider } // a link names who does
		if len(w.nodes) >= maxNodes || !slices.ContainsFunc(w.nodes, stays) {
			return false
		}
		w.join(f.Spec)
		return true
	}
	if f.Node < 0 || f.Node >= len(w.nodes) || w.nodes[f.Node].gone {
		return false
	}
	if f.Kind == fault.Cut {
		return w.cut(f.Node, f.Others)
	}
	return w.nodes[f.Node].disturb(f)
}

// disturb does what befalls one node.
func (n *Node) disturb(f Fault) bool {
	switch f.Kind {
	case fault.Kill:
		return n.crash()
	case fault.PowerCut:
		if !n.crash() {
			return false
		}
		n.w.counts.FilesDamaged += n.disk.PowerCut(n.w.rng)
		n.losesOwn(f.Factor)
	case fault.Lose:
		n.crash()
		n.gone = true
	case fault.Wipe:
		if !n.crash() {
			return false
		}
		n.disk, n.keyOnly, n.wiped = memory.New(len(n.w.plan)), true, true
		n.book.losesDisk()
	case fault.Start:
		return n.restart()
	case fault.Pause:
		return n.pause()
	case fault.Resume:
		return n.resume()
	case fault.Leave:
		return n.leave()
	case fault.Rest, fault.Work:
		return n.rest(f.Kind == fault.Rest)
	case fault.Revoke:
		return n.w.revoke(n)
	case fault.DiskFull, fault.DiskFree:
		n.disk.Full = f.Kind == fault.DiskFull
	case fault.Slow:
		n.slow = Time(max(f.Factor, 1)) * Time(max(n.spec.Slow, 1))
	case fault.Skew:
		n.spec.SkewMs = f.Factor
	case fault.Link:
		n.w.bulk.count(n.w.now)
		n.befell = f.Link
		n.setLink()
	case fault.Upgrade:
		n.spec.Version = f.Spec.Version
	case fault.Miscalculate, fault.Corrupt:
		return n.damaged(f)
	}
	return true
}

// join starts a node whose link names some that are up.
func (w *World) join(spec NodeSpec) *Node {
	n := newNode(w, len(w.nodes), spec, false)
	n.contacts = w.someOf(len(w.nodes))
	w.nodes = append(w.nodes, n)
	w.byID[n.id] = n
	n.boot()
	n.redial()
	return n
}

// crash kills a node: all but its disk is gone.
func (n *Node) crash() bool {
	if !n.up {
		return false
	}
	n.closeBook()
	n.remember()
	n.keepCommon()
	n.paused, n.asleep = 0, nil
	n.stop()
	n.lives++
	n.gone = n.left // it was on its way out, and does not come back
	n.disk.Crash()
	return true
}

// keepCommon has the disk know what others are known to have folded as well.
func (n *Node) keepCommon() {
	if !n.disk.Full {
		copy(n.disk.Common, n.machine.Gossip().Chains().Common())
	}
}

// losesOwn damages the newest own deltas on the disk, as where it says that what it was given is safe and lies.
func (n *Node) losesOwn(newest int64) {
	if newest > 0 {
		lost := n.disk.DamageOwn(int(newest))
		n.book.records(diskLost, lost)
		n.w.counts.FilesDamaged += len(lost)
	}
}

// remember is its contacts.json.
func (n *Node) remember() {
	for _, addr := range n.machine.Gossip().Peers().Contacts() {
		i := indexOf(addr)
		if i >= 0 && i < len(n.w.nodes) && !slices.Contains(n.contacts, i) {
			n.contacts = append(n.contacts, i)
		}
	}
}

// restart boots a crashed node from its disk.
func (n *Node) restart() bool {
	if n.up || n.gone || n.left {
		return false
	}
	n.boot()
	n.redial()
	return true
}

func (n *Node) pause() bool {
	if !n.up || n.paused != 0 {
		return false
	}
	n.paused = n.w.now
	life := n.lives
	n.w.after(noticeMs, func() { // peers hear nothing and hang up
		if n.lives == life && n.paused != 0 {
			for len(n.links) > 0 {
				n.w.disconnect(n, n.links[0])
			}
		}
	})
	return true
}

// resume lets a node go on. Its clock did not count the time, and it is told so.
func (n *Node) resume() bool {
	if n.paused == 0 {
		return false
	}
	n.slept += n.w.now - n.paused
	n.paused = 0
	n.do(func() { n.machine.Woke(n.clock()) })
	asleep := n.asleep
	n.asleep = nil
	for _, input := range asleep {
		n.do(input)
	}
	return true
}

// rest has its owner pause a node, or let it go on.
func (n *Node) rest(on bool) bool {
	if !n.up || n.left || n.paused != 0 || n.machine.View().Paused() == on {
		return false
	}
	n.do(func() { n.machine.Pause(n.clock(), on) })
	if !on {
		n.contributed, n.firstSeq = 0, n.disk.NextSeq()
	}
	return true
}

// leave begins an ordered leave; the node stops when it may.
func (n *Node) leave() bool {
	if !n.up || n.left || n.paused != 0 {
		return false
	}
	n.left = true
	n.do(func() { n.replica.Leave(n.clock()) })
	return true
}

// goes ends a leaver that nobody took everything from. What it made is on its disk, and
// goes out after the next start.
func (n *Node) goes() {
	n.disk.Commit()
	n.left = false
	n.crash()
	n.w.counts.LeftBehind++
}

// restSide is the part of the nodes that a partition does not name, and of new
// ones. Part i of a partition is bit i+1.
const (
	restSide = 1
	maxParts = 63
)

// partition puts the given nodes into parts of their own. A node in two parts is
// a bridge between them.
func (w *World) partition(f Fault) bool {
	parts := f.Parts
	if len(parts) == 0 {
		parts = [][]int{f.Others}
	}
	for _, n := range w.nodes {
		n.side = 0
		for i, part := range parts {
			if slices.Contains(part, n.index) {
				n.side |= restSide << (i + 1)
			}
		}
		if n.side == 0 {
			n.side = restSide
		}
	}
	w.notice()
	return len(parts[0]) > 0
}

func (w *World) merge() bool {
	had := slices.ContainsFunc(w.nodes, func(n *Node) bool { return n.side != restSide })
	for _, n := range w.nodes {
		n.side = restSide
	}
	return had
}

func (w *World) mend(f Fault) bool {
	had := len(w.cuts)
	if len(f.Others) == 0 {
		clear(w.cuts)
	}
	for _, o := range f.Others {
		delete(w.cuts, pair{f.Node, o})
	}
	return len(w.cuts) < had
}

func (w *World) cut(node int, others []int) bool {
	for _, o := range others {
		w.cuts[pair{node, o}] = true
	}
	w.notice()
	return len(others) > 0
}

// calm ends whatever is still disturbed: from here on the world is as the
// promises want it.
func (w *World) calm() {
	if !w.s.Unmended {
		w.mendAll()
	}
	w.checks.calm(w)
}

func (w *World) mendAll() {
	w.merge()
	clear(w.cuts)
	for _, n := range w.nodes {
		n.befell = Link{}
	}
	w.setNetwork(w.s.Link)
	for _, n := range w.nodes {
		n.disk.Full = false
		n.slow = Time(max(n.spec.Slow, 1))
		n.resume()
		n.rest(false)
		n.restart()
	}
	for _, n := range w.nodes {
		n.relink()
	}
	w.flow()
}

// relinkLonely gives another link to who has no connection and knew only a node that has just gone. Before the faults end
// that waits for mendAll. Who is revoked may hear of it, and go, only afterwards.
func (w *World) relinkLonely() {
	if w.checks.calmed == 0 || w.s.Unmended {
		return
	}
	for _, n := range w.nodes {
		if len(n.links) == 0 {
			n.relink()
		}
	}
}

// relink gives a node another link whose own names only nodes that are gone, before
// it met anybody: without it could never find the others. A founder that has a connection
// has met somebody.
func (n *Node) relink() {
	stays := func(i int) bool { return !n.w.nodes[i].gone && !n.w.nodes[i].left }
	if n.gone || n.founder && len(n.links) > 0 || slices.ContainsFunc(n.contacts, stays) {
		return
	}
	n.contacts = append(n.contacts, n.w.someOf(n.index)...)
	n.redial()
}
