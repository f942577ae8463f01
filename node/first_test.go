package node

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/tensor/codec"
)

// Initial values travel packed.
func TestFirstValuesTravelPacked(t *testing.T) {
	t.Parallel()
	chunk := genesis.EncodeValues([]float32{1, 2, -3, 0.5, 7})
	run := toyGenesis(1000).RunID()
	f, giver := newLinkFetch(listening(t, 1, run, nil)), listening(t, 2, run, nil)
	giver.host.Handle(func(_ context.Context, _ wire.PeerID, b []byte) []byte {
		q, err := wire.DecodeRequest(b)
		if err != nil || q.Kind != wire.GetChunk || q.Digest != wire.Sum(chunk) {
			return wire.Response{Status: wire.Refused}.Encode()
		}
		return wire.Found(codec.Pack(chunk))
	})
	addr := giver.host.Addrs()[0]
	if b, err := f.askChunk(t.Context(), addr, wire.Sum(chunk), len(chunk)); err != nil || !bytes.Equal(b, chunk) {
		t.Errorf("%x, %v", b, err)
	}
	if b, err := f.askChunk(t.Context(), addr, wire.Sum(chunk), len(chunk)+4); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("a chunk of another size: %x, %v", b, err)
	}
}
