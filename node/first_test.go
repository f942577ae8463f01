package node

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/tensor/codec"
)

// Initial values travel packed from a peer that can pack them, and as they are from one of an older program.
func TestFirstValuesTravelPacked(t *testing.T) {
	t.Parallel()
	chunk := genesis.EncodeValues([]float32{1, 2, -3, 0.5, 7})
	run := toyGenesis(1000).RunID()
	asker := listening(t, 1, run, nil)
	f := newLinkFetch(asker)
	for minor, answers := range []map[wire.RequestKind][]byte{
		{wire.GetChunk: chunk}, {wire.GetPacked: codec.Pack(chunk)},
	} {
		giver := listening(t, byte(2+minor), run, nil)
		r := giver.record.get()
		r.Minor = uint32(minor)
		must(t, giver.record.set(r))
		giver.host.Handle(func(_ context.Context, _ wire.PeerID, b []byte) []byte {
			q, err := wire.DecodeRequest(b)
			if err != nil || q.Digest != wire.Sum(chunk) {
				return wire.Response{Status: wire.Refused}.Encode()
			}
			return wire.Found(answers[q.Kind])
		})
		addr := giver.host.Addrs()[0]
		if b, err := f.askChunk(t.Context(), addr, wire.Sum(chunk), len(chunk)); err != nil || !bytes.Equal(b, chunk) {
			t.Errorf("of minor version %d: %x, %v", minor, b, err)
		}
		if minor < hello.MinorPacked {
			continue
		}
		if b, err := f.askChunk(t.Context(), addr, wire.Sum(chunk), len(chunk)+4); !errors.Is(err, codec.ErrCorrupt) {
			t.Errorf("a chunk of another size: %x, %v", b, err)
		}
		if b, err := f.askChunk(t.Context(), addr, wire.Sum(chunk), 0); !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("the list is asked for packed: %x, %v", b, err)
		}
	}
}
