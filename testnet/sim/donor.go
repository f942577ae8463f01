package sim

import (
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// donatedLag is how many rounds a donor stays behind its own tip, as a real one
// does, so that the joiner folds itself what may still change.
const donatedLag = 2

// manifest lists tips of one moment and keeps their chunks, and those of the
// manifest before, so that a slow joiner can finish.
func (n *Node) manifest() []byte {
	var m wire.Manifest
	n.donated, n.donatedBefore = map[wire.Digest][]byte{}, n.donated
	for p := range n.w.plan {
		f, blob := n.donate(p)
		for i, d := range f.Chunks {
			at := i * wire.ChunkSize
			n.donated[d] = blob[at : at+f.ChunkLen(i)]
		}
		m.Fragments = append(m.Fragments, f)
	}
	return wire.EncodeManifest(n.key, n.w.run, m)
}

// chunk is one of the last two manifests, or nil.
func (n *Node) chunk(d wire.Digest) []byte {
	if b, ok := n.donated[d]; ok {
		return b
	}
	return n.donatedBefore[d]
}

// donate chooses among the kept bases inside the union window, where the links
// that lead to them are known. The tip itself always is.
func (n *Node) donate(p int) (wire.FragmentManifest, []byte) {
	r := n.machine.Rounds()
	var round uint32
	var links []outer.Link
	for _, b := range r.Bases(p) {
		l := r.Links(p, b)
		if len(l) > 0 && (len(links) == 0 || b+donatedLag <= r.Tip(p).Round) {
			round, links = b, l
		}
	}
	tip := n.disk.bases[p][round]
	if tip == nil || len(links) == 0 {
		n.broken("core", "has no base of round %d of fragment %d to donate, of %v", round, p, r.Bases(p))
		return wire.FragmentManifest{}, nil
	}
	blob := core.EncodeSnapshot(tip.Encode(), links)
	return wire.FragmentManifest{
		Round: round, Closed: r.Closed(p), Chain: wire.Digest(tip.Chain), State: wire.Digest(tip.State),
		Size: uint64(len(blob)), Chunks: wire.ChunkDigests(blob),
	}, blob
}

// install puts the chunks of a manifest together.
func (n *Node) install(m wire.Manifest) {
	var tips []*outer.Tip
	var history [][]outer.Link
	for p, f := range m.Fragments {
		var blob []byte
		for _, d := range f.Chunks {
			blob = append(blob, n.disk.chunks[d]...)
		}
		tip, links, err := core.DecodeSnapshot(blob, f, n.w.plan[p], n.w.s.Params)
		if err != nil {
			if !n.disk.full {
				n.broken("core", "fragment %d: %v", p, err)
			}
			n.machine.InstallFailed(n.clock())
			return
		}
		tips, history = append(tips, n.w.folder.intern(tip)), append(history, links)
	}
	if !n.disk.install(tips, history) {
		n.machine.InstallFailed(n.clock())
		return
	}
	n.Installs++
	n.epoch++
	n.book.rebased = n.book.rebased || n.book.trained > 0
	if err := n.machine.Installed(n.clock(), tips, history); err != nil {
		n.broken("core", "%v", err)
	}
}
