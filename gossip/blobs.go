package gossip

import (
	"math"
	"slices"

	"atoll/gossip/fetch"
	"atoll/gossip/wire"
)

// Blob is a file that nodes of a run give each other, named by its digest.
type Blob struct {
	Digest wire.Digest
	Size   int64 // bytes, 1 to wire.MaxBlob
}

// blobs are the files that this node has and gives, and those that it wants (parts.go). What
// it has of a file it gives before it has the rest. So many who want the same file have most
// of it of each other, and who had it first gives each part about once.
type blobs struct {
	*env
	held    map[wire.Digest]wire.PartSet // verified and stored
	given   map[wire.Digest][]gifts      // by part
	wants   []*wanted                    // in order of need
	flights []*flight
	turn    int  // of peers at being asked what they have
	askAt   Time // not before
	disk    fetch.Disk
}

// gifts are how often a part was given, and when last.
type gifts struct {
	n  uint32
	at Time
}

// Holdings answers what this node has of blobs.
func (b *blobs) Holdings(digests []wire.Digest) []byte {
	held := make([]wire.PartSet, len(digests))
	for i, d := range digests {
		held[i] = b.held[d]
	}
	return wire.EncodeHoldings(held)
}

// Has reports whether one of these parts can be given.
func (b *blobs) Has(d wire.Digest, parts wire.PartSet) bool { return !b.held[d].And(parts).Empty() }

// Spread reports whether all of these parts that are held were given a moment ago, so that
// others are about to have them.
func (b *blobs) Spread(d wire.Digest, parts wire.PartSet) bool {
	for _, i := range b.held[d].And(parts).Indexes() {
		if g := b.gifts(d, i); g.n == 0 || b.Now >= g.at+spreadMs {
			return false
		}
	}
	return true
}

// gifts are those of a part.
func (b *blobs) gifts(d wire.Digest, part int) gifts {
	if of := b.given[d]; part < len(of) {
		return of[part]
	}
	return gifts{}
}

// Choose is the part to give: of those asked for the one that was given least. So each that
// asks has something that the others lack. Has must be true.
func (b *blobs) Choose(d wire.Digest, parts wire.PartSet) (index int) {
	least := uint32(math.MaxUint32)
	for _, i := range b.held[d].And(parts).Indexes() {
		if n := b.gifts(d, i).n; n < least {
			index, least = i, n
		}
	}
	of := b.given[d]
	if index >= len(of) {
		of = append(of, make([]gifts, index+1-len(of))...)
	}
	of[index] = gifts{least + 1, b.Now}
	if len(b.given) >= maxGivenBlobs {
		clear(b.given) // who asks next begins again
	}
	b.given[d] = of
	return index
}

// KeepBlob says that this node has a blob whole, verified: it gives it from now on.
func (c *Core) KeepBlob(now Time, blob Blob) {
	c.at(now)
	all := wire.AllParts(wire.PartCount(blob.Size))
	c.blobs.held[blob.Digest] = all
	if w := c.blobs.find(blob.Digest); w != nil {
		w.missing = wire.PartSet{}
	}
}

// KeepParts says that this node has parts of a blob from an earlier process.
func (c *Core) KeepParts(now Time, d wire.Digest, parts wire.PartSet) {
	c.at(now)
	c.blobs.held[d] = parts
}

// DropBlob says that a blob is not there any more, or not what it was.
func (c *Core) DropBlob(now Time, d wire.Digest) {
	c.at(now)
	delete(c.blobs.held, d)
	delete(c.blobs.given, d)
	if w := c.blobs.find(d); w != nil {
		w.missing = wire.AllParts(wire.PartCount(w.Size)).Without(w.storing)
	}
}

// WantBlobs says which blobs this node wants, in order of need: those that it wanted and does
// not name any more are no longer fetched. Parts come as StorePart.
func (c *Core) WantBlobs(now Time, list []Blob) {
	c.at(now)
	b := &c.blobs
	wants := make([]*wanted, 0, len(list))
	for _, blob := range list {
		w := b.find(blob.Digest)
		if w == nil {
			w = b.newWant(blob)
		}
		wants = append(wants, w)
	}
	b.wants = wants
	b.pump()
}

// PartStored says what became of a StorePart. An error is the own disk's: the part is fetched
// again, not before the disk may have recovered.
func (c *Core) PartStored(now Time, d wire.Digest, index int, err error) {
	c.at(now)
	c.blobs.stored(d, index, err)
}

// BlobView is what is known of a blob that is wanted.
type BlobView struct {
	Blob
	Have    int64 // bytes that are stored
	Sources int   // peers that have some of what is missing
}

// Wanted returns the blobs that are wanted and not whole, in order of need.
func (c *Core) Wanted() (views []BlobView) {
	b := &c.blobs
	for _, w := range b.wants {
		held := b.held[w.Digest]
		if held.Len() == wire.PartCount(w.Size) {
			continue
		}
		v := BlobView{Blob: w.Blob, Have: min(int64(held.Len())*wire.PartSize, w.Size)}
		for _, p := range b.Linked {
			if b.gives(p) && !blobsOf(p).holds[w.Digest].Without(held).Empty() {
				v.Sources++
			}
		}
		views = append(views, v)
	}
	return views
}

// find is the want of a blob, nil if there is none.
func (b *blobs) find(d wire.Digest) *wanted {
	i := slices.IndexFunc(b.wants, func(w *wanted) bool { return w.Digest == d })
	if i < 0 {
		return nil
	}
	return b.wants[i]
}
