package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/gossip/wire"
)

// fetchBlob fetches a blob from the peers of the link, before there is a machine that could.
func (n *node) fetchBlob(ctx context.Context, what string, digest wire.Digest, most int64) ([]byte, error) {
	if len(n.cfg.addrs()) == 0 {
		return nil, fmt.Errorf("the %s (%.8x) is not here, and there is no peer to ask: pass --data DIR with the folder that `atoll data build` made, as to the first node of a run", what, digest[:])
	}
	if err := n.allowed(ctx); err != nil {
		return nil, err
	}
	b, err := newLinkFetch(n).blob(ctx, what, digest, most)
	if err != nil {
		return nil, fmt.Errorf("fetch the %s: %w", what, err)
	}
	return b, nil
}

// blob fetches a blob part by part. Parts say how long it is.
func (f *linkFetch) blob(ctx context.Context, what string, digest wire.Digest, most int64) ([]byte, error) {
	var b []byte
	missing := wire.AllParts(1) // there is one at least
	for !missing.Empty() {
		part, err := f.part(ctx, digest, missing)
		if err != nil {
			return nil, err
		}
		if b == nil {
			if part.Size() > most {
				return nil, fmt.Errorf("it has %d bytes, at most %d are read", part.Size(), most)
			}
			b = make([]byte, part.Size())
			missing = wire.AllParts(wire.PartCount(part.Size()))
		}
		if part.Size() != int64(len(b)) {
			return nil, errors.New("parts of one blob say that it has other sizes")
		}
		copy(b[part.Index*wire.PartSize:], part.Bytes)
		var one wire.PartSet
		one.Add(part.Index)
		missing = missing.Without(one)
		f.n.showStage(fmt.Sprintf("%s: %d of %d kB", what, max(0, len(b)-missing.Len()*wire.PartSize)>>10, len(b)>>10))
	}
	if wire.Sum(b) != digest {
		return nil, errors.New("its parts are of another blob") // no tree of its digest has them
	}
	return b, nil
}

// part asks one peer after the other for one of some parts, until one gives it.
func (f *linkFetch) part(ctx context.Context, digest wire.Digest, parts wire.PartSet) (part wire.Part, err error) {
	request := wire.Request{Kind: wire.GetPart, Digest: digest, Parts: parts}
	err = f.any(ctx, func(ctx context.Context, addr string) error {
		b, err := f.ask(ctx, addr, request)
		if err != nil {
			return err
		}
		part, err = wire.OpenPart(digest, b)
		if err == nil && !parts.Has(part.Index) {
			err = errors.New("it gave a part that was not asked for")
		}
		return err
	})
	return part, err
}

// Fetching from the peers of a link.
const (
	linkCall   = time.Minute      // a chunk over 40 kbit/s
	linkPause  = 2 * time.Second  // before peers are asked again that gave nothing
	linkWithin = 10 * time.Minute // without one chunk: then nobody who answers has them
)
