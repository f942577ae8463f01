package entry

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/tensor/codec"
)

// giver is a host on which every peer gives one chunk.
type giver struct{ chunk []byte }

func (g giver) Dial(_ context.Context, addr string) (id wire.PeerID, err error) {
	if addr == "self" {
		err = errors.New("that is this node")
	}
	return id, err
}

func (g giver) Call(_ context.Context, _ wire.PeerID, request []byte, _ int) ([]byte, error) {
	q, err := wire.DecodeRequest(request)
	if err != nil || q.Kind != wire.GetChunk || q.Digest != wire.Sum(g.chunk) {
		return wire.Response{Status: wire.Refused}.Encode(), nil
	}
	return wire.Found(codec.Pack(g.chunk)), nil
}

// Initial values travel packed, and come from others.
func TestFirstValuesTravelPacked(t *testing.T) {
	chunk := genesis.EncodeValues([]float32{1, 2, -3, 0.5, 7})
	p := New(giver{chunk}, []string{"self", "other"}, func(string) {})
	if b, err := p.chunk(t.Context(), wire.Sum(chunk), len(chunk)); err != nil || !bytes.Equal(b, chunk) {
		t.Errorf("%x, %v", b, err)
	}
	if b, err := p.askChunk(t.Context(), "other", wire.Sum(chunk), len(chunk)+4); !errors.Is(err, codec.ErrCorrupt) {
		t.Errorf("a chunk of another size: %x, %v", b, err)
	}
	if order := p.order(); order[0] != "other" {
		t.Errorf("asks %v", order)
	}
}
