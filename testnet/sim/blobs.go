package sim

import (
	"errors"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// files are the blobs on a node's disk, whole or in part. They outlive its process.
type files struct {
	kept  map[wire.Digest]*kept
	wants []gossip.Blob // what it wants, at each start
	gave  int64         // bytes of parts
}

type kept struct {
	bytes, tree []byte
	has         wire.PartSet
}

var errNoPart = errors.New("no such part")

// blobs is a node's replica.Blobs.
type blobs struct{ n *Node }

// PutPart implements replica.Blobs, as do Part and HasPart.
func (b blobs) PutPart(d wire.Digest, p wire.Part) error {
	f := &b.n.files
	if b.n.disk.Full {
		return errors.New("the disk is full")
	}
	k := f.kept[d]
	if k == nil {
		k = &kept{bytes: make([]byte, p.Size()), tree: p.Tree}
		f.keep(d, k)
	}
	copy(k.bytes[p.Index*wire.PartSize:], p.Bytes)
	k.has.Add(p.Index)
	return nil
}

func (b blobs) Part(d wire.Digest, index int) ([]byte, error) {
	if !b.HasPart(d, index) {
		return nil, errNoPart
	}
	k := b.n.files.kept[d]
	part := wire.Part{Index: index, Tree: k.tree, Bytes: k.bytes[index*wire.PartSize:][:wire.PartLen(int64(len(k.bytes)), index)]}
	b.n.files.gave += int64(len(part.Bytes))
	return part.Encode(), nil
}

func (b blobs) HasPart(d wire.Digest, index int) bool {
	k := b.n.files.kept[d]
	return k != nil && k.has.Has(index)
}

func (f *files) keep(d wire.Digest, k *kept) {
	if f.kept == nil {
		f.kept = map[wire.Digest]*kept{}
	}
	f.kept[d] = k
}

// recallBlobs tells a machine that begins what is on the disk, and what to fetch.
func (n *Node) recallBlobs() {
	now := n.clock()
	for d, k := range n.files.kept {
		n.machine.HoldParts(now, d, k.has)
	}
	if n.files.wants != nil {
		n.machine.WantBlobs(now, n.files.wants)
	}
}
