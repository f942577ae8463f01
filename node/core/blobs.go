package core

import (
	"atoll/gossip"
	"atoll/gossip/wire"
)

// Blobs are the files that nodes of a run give each other: see gossip.Blob. The machine has no
// opinion on them, it passes them through.

// WantBlobs says which blobs this node wants, in order of need.
func (m *Machine) WantBlobs(now Time, list []gossip.Blob) {
	m.gossip.WantBlobs(now, list)
	m.pump(now)
}

// HoldBlob says that this node has a blob whole, and gives it.
func (m *Machine) HoldBlob(now Time, b gossip.Blob) { m.gossip.KeepBlob(now, b) }

// HoldParts says that this node has parts of a blob, and gives them.
func (m *Machine) HoldParts(now Time, d wire.Digest, parts wire.PartSet) {
	m.gossip.KeepParts(now, d, parts)
}

// DropBlob says that a blob is not there any more.
func (m *Machine) DropBlob(now Time, d wire.Digest) { m.gossip.DropBlob(now, d) }

// PartStored says what became of a gossip.StorePart.
func (m *Machine) PartStored(now Time, d wire.Digest, index int, err error) {
	m.gossip.PartStored(now, d, index, err)
	m.pump(now)
}
