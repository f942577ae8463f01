package exhaust

import (
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// disk is what a crash leaves. The bases of even rounds are kept in memory only,
// but for genesis: some restarts begin at a tip, some have to fold again.
type disk struct {
	payloads map[wire.Digest][]byte
	headers  map[wire.Digest]wire.SignedHeader
	own      []ownRecord
	mark     uint32
	bases    map[uint32]*outer.Tip
	rounds   map[uint32]outer.Link
}

type ownRecord struct {
	seq uint64
	id  wire.Digest
}

var _ core.Disk = (*disk)(nil)

// LastRound and what follows is the disk as core reads it. Nothing on it is ever
// damaged, and there is one fragment.
func (d *disk) LastRound(int) (last uint32, err error) {
	for r := range d.rounds {
		last = max(last, r)
	}
	return last, nil
}

func (d *disk) Rounds(_ int, from, to uint32, f func(outer.Link) error) error {
	for _, r := range slices.Sorted(maps.Keys(d.rounds)) {
		if r < from || r > to {
			continue
		}
		if err := f(d.rounds[r]); err != nil {
			return err
		}
	}
	return nil
}

func (d *disk) Header(id wire.Digest) (h wire.Header, known bool, err error) {
	signed, known := d.headers[id]
	return signed.Header, known, nil
}

func (d *disk) Mark(int) (uint32, error) { return d.mark, nil }

func (d *disk) Bases(int) ([]uint32, error) { return slices.Sorted(maps.Keys(d.bases)), nil }

func (d *disk) BaseState(_ int, round uint32) (outer.Digest, error) {
	return d.bases[round].State, nil
}

func (d *disk) Base(_ int, round uint32) *outer.Tip { return d.bases[round] }

func (d *disk) DropBase(_ int, round uint32) error {
	delete(d.bases, round)
	return nil
}

func (d *disk) Held(_ int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	for id, h := range d.headers {
		if h.Header.Round >= from {
			f(id, h)
		}
	}
	return nil
}

func (d *disk) Own() ([]core.OwnRecord, error) {
	records := make([]core.OwnRecord, len(d.own))
	for i, o := range d.own {
		records[i] = core.OwnRecord{Seq: o.seq, ID: o.id, Header: d.headers[o.id].Header}
	}
	return records, nil
}

func (d *disk) LostOwn(core.OwnRecord) (bool, error) { return false, nil }
