package entry

import (
	"context"
	"errors"
	"fmt"

	"atoll/gossip/wire"
)

// Blob fetches a blob part by part. Parts say how long it is.
func (p *Peers) Blob(ctx context.Context, what string, digest wire.Digest, most int64) ([]byte, error) {
	var b []byte
	missing := wire.AllParts(1) // there is one at least
	for !missing.Empty() {
		part, err := p.part(ctx, digest, missing)
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
		p.stage(fmt.Sprintf("%s: %d of %d kB", what, max(0, len(b)-missing.Len()*wire.PartSize)>>10, len(b)>>10))
	}
	if wire.Sum(b) != digest {
		return nil, errors.New("its parts are of another blob") // no tree of its digest has them
	}
	return b, nil
}

// part asks one peer after the other for one of some parts, until one gives it.
func (p *Peers) part(ctx context.Context, digest wire.Digest, parts wire.PartSet) (part wire.Part, err error) {
	request := wire.Request{Kind: wire.GetPart, Digest: digest, Parts: parts}
	err = p.any(ctx, func(ctx context.Context, addr string) error {
		b, err := p.ask(ctx, addr, request)
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
