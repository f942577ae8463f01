package serve

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// manifests bounds the manifests that others may have this node make of its snapshot. For a
// request of a few bytes by anybody it hashes all tips; for given rounds it folds
// as well.
type manifests struct {
	*peers.Table
	serve  *Serve
	making []making
}

// making is a manifest that was asked for and has not left yet.
type making struct {
	handle uint64
	by     *peers.Peer
	at     bool        // of rounds that the asker chose
	until  effect.Time // it waits no longer
}

// request has a manifest made, or turns its asker away. at is nil for one of the
// node's own choice, which many askers share.
func (m *manifests) request(handle uint64, p *peers.Peer, at []uint32) {
	if !peerOf(p).snapshotAsks.spend(m.Now, SnapshotAsksMs, MaxSnapshotAsks) || m.full(p, at != nil) {
		m.serve.status(handle, wire.Busy)
		return
	}
	m.making = append(m.making, making{handle: handle, by: p, at: at != nil, until: m.Now + m.serve.cfg.ManifestMs})
	m.Emit(effect.ReplyManifest{Handle: handle, At: at})
}

// full reports whether one more may not be made for p: a peer has one at a time, and
// few are made of rounds that askers choose.
func (m *manifests) full(p *peers.Peer, at bool) bool {
	chosen := 0
	for _, w := range m.making {
		if w.by == p {
			return true
		}
		if w.at {
			chosen++
		}
	}
	return at && chosen >= MaxSnapshotsMade
}

// left says that a manifest is on its way, or that its asker is gone.
func (m *manifests) left(handle uint64) {
	m.making = slices.DeleteFunc(m.making, func(w making) bool { return w.handle == handle })
}

// tick forgets those that nobody waits for any more.
func (m *manifests) tick() {
	m.making = slices.DeleteFunc(m.making, func(w making) bool { return m.Now >= w.until })
}
