package bench

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/gossip/wire"
	"atoll/node/store"
)

// Disk is what a folder's disk and a node's store on it do.
type Disk struct {
	Bench       string  `json:"bench"`        // "disk"
	WritesPerS  float64 `json:"writes_per_s"` // of a page, each synced
	MsPerWrite  float64 `json:"ms_per_write"`
	WriteSpread float64 `json:"write_spread"`
	MBPerS      float64 `json:"mb_per_s"` // a long file, synced at its end
	MBSpread    float64 `json:"mb_spread"`

	DeltaBytes  int     `json:"delta_bytes"`
	MsPerOwn    float64 `json:"ms_per_own_delta"` // kept for good before it leaves: payload, header, mark
	OwnSpread   float64 `json:"own_delta_spread"`
	MsPerDelta  float64 `json:"ms_per_delta"` // of another node, kept with the next commit
	DeltaSpread float64 `json:"delta_spread"`
}

const (
	pageBytes = 4 << 10
	// longBytes and chunkBytes: a file as large as a tip of a model of millions of
	// parameters, written in pieces.
	longBytes  = 16 << 20
	chunkBytes = 1 << 20
	// deltaBytes is about what a fragment of tiny takes at int4.
	deltaBytes = 50_000
)

// Disks measures in a new folder under dir, which it removes.
func Disks(ctx context.Context, m Meter, dir string) (d Disk, err error) {
	own, err := os.MkdirTemp(dir, "atoll-bench-")
	if err != nil {
		return d, fmt.Errorf("disk: %w: choose another folder", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	d = Disk{Bench: "disk", DeltaBytes: deltaBytes}
	for _, measure := range []func(context.Context, Meter, string) error{d.pages, d.long, d.store} {
		if err := measure(ctx, m, own); err != nil {
			return d, fmt.Errorf("disk: %w", err)
		}
	}
	return d, nil
}

// pages appends pages to a file and syncs each.
func (d *Disk) pages(ctx context.Context, m Meter, dir string) error {
	m.report("synced writes")
	f, err := os.Create(filepath.Join(dir, "pages"))
	if err != nil {
		return err
	}
	page := bytes.Repeat([]byte{0xa5}, pageBytes)
	s, err := m.repeat(ctx, func() error {
		_, err := f.Write(page)
		return errors.Join(err, f.Sync())
	})
	d.WritesPerS, d.MsPerWrite, d.WriteSpread = 1/s.Median, 1000*s.Median, s.Spread
	return errors.Join(err, f.Close())
}

// long writes a file again and again.
func (d *Disk) long(ctx context.Context, m Meter, dir string) error {
	m.report("a long file")
	chunk := bytes.Repeat([]byte{0xa5}, chunkBytes)
	s, err := m.collect(ctx, func() (float64, error) {
		start := time.Now()
		err := writeLong(ctx, filepath.Join(dir, "long"), chunk)
		return longBytes / 1e6 / time.Since(start).Seconds(), err
	})
	d.MBPerS, d.MBSpread = s.Median, s.Spread
	return err
}

func writeLong(ctx context.Context, path string, chunk []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for range longBytes / len(chunk) {
		if _, err = f.Write(chunk); err != nil || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(err, ctx.Err(), f.Sync(), f.Close())
}

// store puts deltas into a node's store: own ones, then another node's.
func (d *Disk) store(ctx context.Context, m Meter, dir string) error {
	run := wire.RunID{1}
	s, err := store.Open(filepath.Join(dir, "store"), run)
	if err != nil {
		return err
	}
	m.report("own deltas")
	mine := deltaMaker{key: keyOf(1), run: run}
	own, err := m.collect(ctx, mine.times(func(id wire.Digest, h wire.SignedHeader, payload []byte) error {
		return s.PutOwn(id, h, payload, store.OwnMeta{Seq: uint64(h.Header.Round)})
	}))
	if err != nil {
		return errors.Join(err, s.Close())
	}
	m.report("deltas of others")
	theirs := deltaMaker{key: keyOf(2), run: run}
	others, err := m.collect(ctx, theirs.times(s.PutDelta))
	d.MsPerOwn, d.OwnSpread = 1000*own.Median, own.Spread
	d.MsPerDelta, d.DeltaSpread = 1000*others.Median, others.Spread
	return errors.Join(err, s.Close())
}

// deltaMaker makes deltas of one author, for round after round.
type deltaMaker struct {
	key   ed25519.PrivateKey
	run   wire.RunID
	round uint32
}

// times returns a part that makes a delta and takes the time that put needs for it.
func (d *deltaMaker) times(put func(wire.Digest, wire.SignedHeader, []byte) error) func() (float64, error) {
	return func() (float64, error) {
		d.round++
		payload := binary.LittleEndian.AppendUint32(make([]byte, 0, deltaBytes), d.round)
		payload = payload[:deltaBytes]
		h := wire.SignHeader(d.key, d.run, wire.Header{
			Round: d.round, Base: d.round - 1, Steps: 24, Tokens: 24 * 512,
			Codec: 4, Size: deltaBytes, Payload: wire.Sum(payload),
		})
		id := h.Header.ID(d.run)
		start := time.Now()
		err := put(id, h, payload)
		return time.Since(start).Seconds(), err
	}
}

func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}
