package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"atoll/node/status"
)

// maxPeers bounds the peers of a view: more are no picture, and a table that nobody
// reads. The known nodes come first, then who contributed most.
const maxPeers = 128

// name is what a node is called on the page.
func (b *builder) name(id string) string { return b.labels.Of(id) }

// text is what others wrote, with what the machines are called.
func (b *builder) text(s string) string { return plain(b.labels.In(s)) }

// peerName is what a peer is called in the table.
func (b *builder) peerName(p status.Peer) string {
	if p.ID == "" {
		return plain(p.Called())
	}
	return plain(b.name(p.ID))
}

// isNode says whether a name that an event has is that of a node: events shorten ids.
func isNode(id, name string) bool {
	return len(name) >= len(status.ShortID(id)) && strings.HasPrefix(id, name)
}

// peers lists the known nodes, and whom the leading one knows besides.
func (b *builder) peers() {
	for _, n := range b.world.Nodes {
		b.addKnown(n)
	}
	others := slices.Clone(b.lead.Status.Peers)
	slices.SortStableFunc(others, func(x, y status.Peer) int { return cmp.Compare(y.TokensFolded, x.TokensFolded) })
	for _, p := range others {
		if _, known := b.index[p.ID]; !known && len(b.view.Peers) < maxPeers && b.lists(p) {
			b.add(b.peerView(p))
		}
	}
}

// lists says whether a page shows a peer: one that goes on shows who is here or was lately, one of what was shows who trained.
func (b *builder) lists(p status.Peer) bool {
	if b.view.Over {
		return p.Trained
	}
	return !p.Faded
}

func (b *builder) add(p PeerView) {
	b.index[p.ID] = len(b.view.Peers)
	b.view.Peers = append(b.view.Peers, p)
}

// addKnown adds a node by its own status. What it contributed is as the leading node has it.
func (b *builder) addKnown(n Node) {
	if !n.seen() {
		name := cmp.Or(n.Name, "this node")
		b.add(PeerView{ID: name, Name: name, Self: !b.view.Many, Class: ClassRest, State: cmp.Or(n.End, "starting")})
		return
	}
	own := status.Peer{ID: n.Status.Self, Role: n.Status.Role, State: n.Status.State}
	for _, p := range n.Status.Peers {
		if p.Self {
			own = p
		}
	}
	own.State = n.Status.State // that of a joiner is no heartbeat yet
	for _, p := range b.lead.Status.Peers {
		if p.ID == own.ID {
			own.Share, own.ShareUnknown, own.TokensFolded = p.Share, p.ShareUnknown, p.TokensFolded
		}
	}
	v := b.peerView(own)
	v.Self = !b.view.Many
	v.UpPerS, v.DownPerS = b.rates.of(n.Status)
	b.view.Traffic.UpPerS += v.UpPerS
	b.view.Traffic.DownPerS += v.DownPerS
	switch {
	case n.End == EndStopped:
		v.Class, v.State = ClassSilent, n.End
	case n.End == EndDone:
		v.Class, v.State = ClassDone, n.End
	case n.End != "":
		v.Class, v.State = ClassGone, n.End
	}
	if n.End != "" {
		v.UpPerS, v.DownPerS, v.PerS = 0, 0, 0
	}
	b.add(v)
}

func (b *builder) peerView(p status.Peer) PeerView {
	return PeerView{
		ID: p.ID, Name: b.peerName(p), Class: b.classOf(p), State: status.Clip(plain(p.StateText()), longestState), Role: plain(p.Role), Hardware: plain(p.Hardware), Learner: plain(learnerOf(p)),
		Link: p.Link, Share: p.Share, Unshared: p.ShareUnknown, Tokens: p.TokensFolded, PerS: p.TokensPerS, LagS: p.LagS,
		Sent: p.SentBytes, Received: p.ReceivedBytes, UpMost: p.Upload, Full: p.UploadFull, Reason: b.text(p.Reason),
	}
}

// Bounds on what stands in one line, in characters.
const (
	longestState = 24
	longestName  = 60
)

// learnerOf says what trains on a node.
func learnerOf(p status.Peer) string {
	if p.Trainer == "" {
		return ""
	}
	if p.Precision == "" {
		return p.Trainer
	}
	return p.Trainer + ", " + p.Precision
}

// classOf is what the state of a peer comes to.
func (b *builder) classOf(p status.Peer) string {
	switch {
	case !b.view.Over && b.lead.Status.Misses(p):
		return ClassSilent
	case p.State == status.Refused, p.State == "leaving", p.Away():
		return ClassGone
	case p.State == status.Paused, p.State == "observing":
		return ClassRest
	}
	return ClassLive
}

// here says whether a peer takes part now.
func (p PeerView) here() bool {
	return p.Class == ClassLive || p.Class == ClassRest || p.Class == ClassDone
}

// links are the connections that the known nodes have, and those peers that they
// only hear through others.
func (b *builder) links() {
	best := map[[2]int]string{}
	for _, n := range b.world.Nodes {
		from, known := b.index[n.Status.Self]
		if !known || !b.view.Peers[from].here() {
			continue
		}
		for _, p := range n.Status.Peers {
			to, shown := b.index[p.ID]
			if !shown || to == from || !b.view.Peers[to].here() {
				continue
			}
			kind := p.Link
			if kind == "" && p.Here() && !b.known(p.ID) {
				kind = LinkHeard
			}
			pair := [2]int{min(from, to), max(from, to)}
			if rank(kind) > rank(best[pair]) {
				best[pair] = kind
			}
		}
	}
	for pair, kind := range best {
		b.view.Links = append(b.view.Links, LinkView{A: pair[0], B: pair[1], Kind: kind})
	}
	slices.SortFunc(b.view.Links, func(x, y LinkView) int { return cmp.Or(x.A-y.A, x.B-y.B) })
}

// known says whether a peer's own status is known, so that its links are.
func (b *builder) known(id string) bool {
	return slices.ContainsFunc(b.world.Nodes, func(n Node) bool { return n.Status.Self == id })
}

// rank orders the kinds of links, the best one last.
func rank(kind string) int {
	return slices.Index([]string{"", LinkHeard, status.LinkPunching, status.LinkRelayed, status.LinkDirect}, kind)
}

// groups are the known nodes that run, by which of them reach each other. More than
// one group is a partition.
func (b *builder) groups() (groups [][]int) {
	if !b.view.Many {
		return nil
	}
	of := map[int]int{}
	for _, n := range b.world.Nodes {
		if i, ok := b.index[n.Status.Self]; ok && n.seen() && b.view.Peers[i].here() && n.Status.State != "joining" {
			of[i] = i
		}
	}
	for range of { // the least number of a group spreads along its links
		for _, l := range b.view.Links {
			x, one := of[l.A]
			y, two := of[l.B]
			if one && two {
				of[l.A], of[l.B] = min(x, y), min(x, y)
			}
		}
	}
	for i := range b.view.Peers {
		first, ok := of[i]
		if !ok {
			continue
		}
		g := slices.IndexFunc(groups, func(members []int) bool { return of[members[0]] == first })
		if g < 0 {
			groups = append(groups, nil)
			g = len(groups) - 1
		}
		groups[g] = append(groups[g], i)
	}
	return groups
}

// groupText names the nodes of a partition's sides.
func (b *builder) groupText(groups [][]int) string {
	var sides []string
	for _, g := range groups {
		var names []string
		for _, i := range g[:min(len(g), namesShown)] {
			names = append(names, b.view.Peers[i].Name)
		}
		if more := len(g) - len(names); more > 0 {
			names = append(names, fmt.Sprintf("%d more", more))
		}
		sides = append(sides, strings.Join(names, ", "))
	}
	return strings.Join(sides, " | ")
}

// namesShown is how many names a sentence bears.
const namesShown = 6
