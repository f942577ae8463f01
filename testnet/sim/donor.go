package sim

import (
	"errors"
	"maps"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// manifest is what this node gives away, and keeps its chunks and those of the
// manifest before, so that a slow joiner can finish. It is nil where that is nothing:
// the asker tries another donor.
func (n *Node) manifest(at []uint32) []byte {
	n.donated, n.donatedBefore = map[wire.Digest][]byte{}, n.donated
	m, err := core.ManifestOf(core.Donations(n.w.s.Params, n.machine.Rounds(), at), at == nil, n.cutChunks)
	if err != nil {
		return nil
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

// cutChunks describes a fragment's tip and keeps its chunks.
func (n *Node) cutChunks(p int, d core.Donation) (f wire.FragmentManifest, err error) {
	base := n.disk.bases[p][d.Start]
	if base == nil {
		n.broken("core", "base %d of fragment %d was not kept", d.Start, p)
		return f, core.ErrNothingToGive
	}
	tip, err := d.Tip(base, func(tip *outer.Tip, set []outer.Delta) (*outer.Tip, error) { return n.foldAgain(p, tip, set) })
	if err != nil {
		return f, err
	}
	f, chunks := core.CutSnapshot(tip, d.Links)
	maps.Copy(n.donated, chunks)
	return f, nil
}

// foldAgain folds a round once more, for another node.
func (n *Node) foldAgain(p int, tip *outer.Tip, set []outer.Delta) (*outer.Tip, error) {
	var contributions []outer.Contribution
	for _, d := range set {
		payload := n.disk.payload(wire.Digest(d.ID))
		if payload == nil {
			return nil, core.ErrNothingToGive // damaged; this node's own folds will say so
		}
		contributions = append(contributions, outer.Contribution{Delta: d, Payload: payload})
	}
	n.w.counts.FoldedForOthers++
	next, _, err := n.w.folder.fold(n.w, p, tip, contributions)
	return next, err
}

func (n *Node) storeChunk(e gossip.StoreChunk) {
	n.chunksAt = n.w.now
	if !n.disk.putChunk(e.Digest, e.Bytes) {
		n.machine.ChunkNotStored(n.clock(), e.Digest)
	}
}

// chunksStay is how long the chunks of tips stay after the last one came, ten times
// shorter than in package node.
const chunksStay = 6000

// dropChunks drops them when they are of no use any more.
func (n *Node) dropChunks() {
	if n.chunksAt == 0 || n.w.now-n.chunksAt < chunksStay || n.machine.NeedsChunks() {
		return
	}
	n.chunksAt = 0
	n.disk.dropChunks()
	n.disk.putFetching(nil)
}

// credit tells the machine who has contributed, as the ledger has it.
func (n *Node) credit() {
	for p := range n.w.plan {
		for _, l := range n.disk.rounds[p] {
			for _, id := range l.Folded {
				if h, known, _ := n.disk.Header(wire.Digest(id)); known {
					n.machine.Credit(h.Author)
				}
			}
		}
	}
}

// install puts the chunks of a manifest together.
func (n *Node) install(e core.InstallTips) {
	tips, history, err := core.Assemble(e.Manifest, n.w.plan, n.w.s.Params, n.disk.chunk)
	if err != nil {
		n.notInstalled(err)
		return
	}
	for p, tip := range tips {
		tips[p] = n.w.folder.intern(tip)
	}
	own, _ := n.disk.Own() // which has no errors
	left, err := core.LeaveChain(n.disk, n.id, n.w.s.Params.WindowUnion, history, e.Common, e.Closed, own)
	if err != nil {
		n.broken("core", "leave the chain: %v", err)
	}
	if !n.disk.full {
		n.settleUnseen(history)
	}
	if !n.disk.install(tips, history, left.Forget) {
		n.machine.TipsNotStored(n.clock())
		return
	}
	for p, tokens := range left.Final {
		n.book.gone[p] += tokens
		n.book.settles(forgotten, left.Own[p])
	}
	n.Installs++
	n.epoch++
	n.book.rebased = n.book.rebased || n.book.trained > 0
	n.credit()
	n.taken = slices.Clone(tips)
	if err := n.machine.Installed(n.clock(), tips, history); err != nil {
		n.broken("core", "%v", err)
	}
	n.w.checkWhole(n, tips)
}

// notInstalled has other tips fetched where these do not fit, as package node does.
func (n *Node) notInstalled(err error) {
	if !errors.Is(err, core.ErrUnfit) {
		n.machine.TipsNotStored(n.clock())
		return
	}
	if n.w.liars() == 0 {
		n.broken("core", "%v", err)
	}
	n.disk.dropChunks()
	n.machine.InstallFailed(n.clock())
}
