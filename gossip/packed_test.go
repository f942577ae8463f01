package gossip

import (
	"errors"
	"testing"

	"atoll/gossip/wire"
)

// toyPack stands for what packs chunks, which this package does not know.
func toyPack(b []byte) []byte { return append([]byte{'P'}, b...) }

func toyUnpack(packed []byte, size int) ([]byte, error) {
	if len(packed) != 1+size || packed[0] != 'P' {
		return nil, errors.New("it was not packed here")
	}
	return packed[1:], nil
}

// unpacked stands for what unpacks chunks where a test gives them as they are.
func unpacked(chunk []byte, _ int) ([]byte, error) { return chunk, nil }

// Who gives something else than the chunk, packed or not, is blamed and asked for no more of it.
func TestPackedGarbage(t *testing.T) {
	for name, body := range map[string][]byte{
		"as it is": specChunk(0, 0, 1), "another": toyPack(make([]byte, 100)), "nothing": {}, "more": make([]byte, wire.ChunkSize+4),
	} {
		a := newAlone()
		a.core.env.cfg.Unpack = toyUnpack
		id, q := a.fetches(t, 1)
		chunks := questions(t, a.gives(q, 1, a.tipsOf(id, 5, 1)), wire.GetChunk)
		e := a.answer(chunks[0], body)
		sameIDs(t, name, blamed(e), id)
		if count[StoreChunk](e) > 0 || a.core.snapshot.transfer.recruits[id] {
			t.Errorf("%s: %d chunks stored, asked on: %v", name, count[StoreChunk](e), a.core.snapshot.transfer.recruits[id])
		}
	}
}
