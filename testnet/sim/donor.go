package sim

import (
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// donatedLag is how many rounds a donor stays behind its own tip, as a real one
// does, so that the joiner folds itself what may still change.
const donatedLag = 2

// manifest lists tips, and keeps their chunks and those of the manifest before, so
// that a slow joiner can finish: the tips of given rounds, one for each fragment,
// or of one moment.
func (n *Node) manifest(at []uint32) []byte {
	var m wire.Manifest
	n.donated, n.donatedBefore = map[wire.Digest][]byte{}, n.donated
	for p := range n.w.plan {
		round, known := n.donates(p)
		if at != nil {
			round, known = at[p], slices.Contains(n.machine.Rounds().Bases(p), at[p])
		}
		f := wire.FragmentManifest{Closed: n.machine.Rounds().Closed(p)}
		if !known && at == nil {
			return nil // a refold is under way: the asker tries another donor
		}
		if known {
			n.cutChunks(p, round, &f)
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

// donates chooses the newest base that still lets a joiner fold deltas on their
// way, among those for which the links that lead there are known.
func (n *Node) donates(p int) (round uint32, known bool) {
	r := n.machine.Rounds()
	for _, b := range r.Bases(p) {
		if len(n.linksTo(p, b)) > 0 && (!known || b+donatedLag <= r.Tip(p).Round) {
			round, known = b, true
		}
	}
	return round, known
}

func (n *Node) linksTo(p int, round uint32) []outer.Link {
	return core.History(n.w.s.Params, n.machine.Rounds(), p, round)
}

// cutChunks describes the tip of a round and keeps its chunks.
func (n *Node) cutChunks(p int, round uint32, f *wire.FragmentManifest) {
	tip := n.disk.bases[p][round]
	if tip == nil {
		n.broken("core", "base %d of fragment %d was not kept", round, p)
		return
	}
	blob := core.EncodeSnapshot(tip.Encode(), n.linksTo(p, round))
	f.Round, f.Chain, f.State = round, wire.Digest(tip.Chain), wire.Digest(tip.State)
	f.Size, f.Chunks = uint64(len(blob)), wire.ChunkDigests(blob)
	for i, d := range f.Chunks {
		at := i * wire.ChunkSize
		n.donated[d] = blob[at : at+f.ChunkLen(i)]
	}
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
	text, _ := n.machine.Gossip().JoinPhase()
	if n.chunksAt == 0 || n.w.now-n.chunksAt < chunksStay || n.machine.Phase() != core.Ready || text != "" {
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
	m := e.Manifest
	var tips []*outer.Tip
	var history [][]outer.Link
	for p, f := range m.Fragments {
		var blob []byte
		for _, d := range f.Chunks {
			blob = append(blob, n.disk.chunks[d]...)
		}
		if uint64(len(blob)) < f.Size { // the disk was full when some came
			n.machine.TipsNotStored(n.clock())
			return
		}
		tip, links, err := core.DecodeSnapshot(blob, f, n.w.plan[p], n.w.s.Params)
		if err != nil {
			if n.w.liars() == 0 {
				n.broken("core", "fragment %d: %v", p, err)
			}
			n.disk.dropChunks()
			n.machine.InstallFailed(n.clock())
			return
		}
		tips, history = append(tips, n.w.folder.intern(tip)), append(history, links)
	}
	left, err := core.LeaveChain(n.disk, n.id, n.w.s.Params.WindowUnion, history, e.Common, n.disk.ownRecords())
	if err != nil {
		n.broken("core", "leave the chain: %v", err)
	}
	if !n.disk.install(tips, history, left.Forget) {
		n.machine.TipsNotStored(n.clock())
		return
	}
	for p, tokens := range left.Final {
		n.book.gone[p] += tokens
	}
	n.Installs++
	n.epoch++
	n.book.rebased = n.book.rebased || n.book.trained > 0
	n.credit()
	if err := n.machine.Installed(n.clock(), tips, history); err != nil {
		n.broken("core", "%v", err)
	}
	n.w.checkWhole(n, tips)
}
