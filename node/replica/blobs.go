package replica

import (
	"errors"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// Blobs keep the files that nodes of a run give each other. Methods may be called from any
// goroutine.
type Blobs interface {
	// PutPart keeps a verified part.
	PutPart(d wire.Digest, p wire.Part) error
	// Part is a part of a blob as it travels.
	Part(d wire.Digest, index int) ([]byte, error)
	// HasPart reports whether a part is there, as part of a whole blob or alone.
	HasPart(d wire.Digest, index int) bool
}

// errNoBlobs is what a node without a place for blobs makes of them.
var errNoBlobs = errors.New("this node keeps no blobs")

// replyPart serves a part of a blob, or finds that the blob is not what it was.
func (r *Replica) replyPart(e gossip.ReplyPart) {
	r.exec.Serve(e.Handle, func(func() bool) {
		b, err := []byte(nil), errNoBlobs
		if r.blobs != nil {
			b, err = r.blobs.Part(e.Digest, e.Index)
		}
		if err != nil {
			b = nil
			r.watcher.Check("read a blob for a peer", err)
			r.exec.Post(func(now core.Time) { r.machine.DropBlob(now, e.Digest) })
		}
		r.replyBulk(e.Handle, b, wire.Digest{})
	})
}

// storePart keeps a part of a blob, or tells that it is still missing.
func (r *Replica) storePart(e gossip.StorePart) {
	err := errNoBlobs
	if r.blobs != nil {
		err = r.blobs.PutPart(e.Digest, e.Part)
	}
	r.watcher.Check("store a part of a blob", err)
	r.exec.Post(func(now core.Time) {
		r.machine.PartStored(now, e.Digest, e.Part.Index, err)
		if err == nil && !r.blobs.HasPart(e.Digest, e.Part.Index) {
			// It made room before this was told. Else it would count as held, and nobody would fetch it when it is needed again.
			r.machine.DropBlob(now, e.Digest)
		}
	})
}
