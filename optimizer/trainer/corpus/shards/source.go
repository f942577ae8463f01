package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
)

// Fetch brings the bytes of a shard, from wherever they are. It may take its time, until
// ctx ends.
type Fetch func(ctx context.Context, s Shard) ([]byte, error)

// Source draws batches from a corpus. It holds the shards that it reads from. One goroutine
// uses it.
type Source struct {
	manifest *Manifest
	window   Window
	fetch    Fetch

	draws *draws
	held  map[int][]byte // by place in the draws' usable
	read  map[int]bool   // by the last batch, likewise
}

// NewSource returns a source of the shards of a corpus that are trained on.
func NewSource(m *Manifest, w Window, fetch Fetch) (*Source, error) {
	if w.Shards < 1 || w.Steps < 1 {
		return nil, fmt.Errorf("a window of %d shards that moves after %d steps: use 1 or more of each", w.Shards, w.Steps)
	}
	return &Source{manifest: m, window: w, fetch: fetch, held: map[int][]byte{}, read: map[int]bool{}}, nil
}

// Fits is that of the manifest.
func (s *Source) Fits(context int) error { return s.manifest.Fits(context) }

// Fits returns an error if no shard has a row of so many tokens and the one that follows.
func (m *Manifest) Fits(context int) error {
	longest := int64(0)
	for _, shard := range m.Shards {
		longest = max(longest, shard.Tokens)
	}
	if context >= 1 && longest > int64(context) {
		return nil
	}
	return fmt.Errorf("corpus %s: its longest shard has %d tokens, a context of %d needs %d: pass more text or a model with a shorter context",
		m.Name, longest, context, context+1)
}

// Batch fills dst with rows x (context+1) tokens, row-major, of the shards to train on. It is
// a pure function of its arguments and of the corpus: it waits for shards that are not
// there, and never takes others. Row r follows from seed, author, step and r, so that a
// batch of more rows begins with the rows of one that has fewer. After an error dst is of no
// use, and the same call may be made again.
func (s *Source) Batch(ctx context.Context, seed uint64, author [32]byte, step int64, rows, context int, dst []int32) error {
	width := context + 1
	if len(dst) != rows*width {
		panic(fmt.Sprintf("shards: batch of %d rows of %d tokens into %d", rows, width, len(dst)))
	}
	if d := s.draws; d == nil || d.seed != seed || d.author != author || d.context != context {
		s.draws = newDraws(s.manifest.Shards, s.window, seed, author, context)
		clear(s.held)
	}
	if len(s.draws.usable) == 0 {
		return s.Fits(context)
	}
	window := s.draws.at(step)
	s.release(window)
	clear(s.read)
	for r := range rows {
		shard, start := s.draws.row(window, step, r)
		if err := s.hold(ctx, shard); err != nil {
			return err
		}
		s.read[shard] = true
		s.decode(s.held[shard], start, dst[r*width:(r+1)*width])
	}
	return nil
}

// Reads returns the shards that the rows of the last batch were in, in no order that matters.
func (s *Source) Reads() (list []Shard) {
	for u := range s.read {
		list = append(list, s.manifest.Shards[s.draws.usable[u]])
	}
	return list
}

// Place is where a row begins: the number of a shard in the manifest's Shards, and of a token in it.
type Place struct {
	Shard int
	Start int64
}

// Places are where the rows of Batch begin. Nothing is read for it.
func (s *Source) Places(seed uint64, author [32]byte, step int64, rows, context int) []Place {
	d := newDraws(s.manifest.Shards, s.window, seed, author, context)
	window := d.at(step)
	places := make([]Place, rows)
	for r := range places {
		u, start := d.row(window, step, r)
		places[r] = Place{d.usable[u], start}
	}
	return places
}

// Window returns the shards that an author reads from at a step, in no order that matters.
func (s *Source) Window(seed uint64, author [32]byte, step int64, context int) []Shard {
	d := newDraws(s.manifest.Shards, s.window, seed, author, context)
	var list []Shard
	for _, u := range d.at(step) {
		list = append(list, s.manifest.Shards[d.usable[u]])
	}
	return list
}

// release lets go of shards that the window has left.
func (s *Source) release(window []int) {
	in := map[int]bool{}
	for _, u := range window {
		in[u] = true
	}
	for u := range s.held {
		if !in[u] {
			delete(s.held, u)
		}
	}
}

// hold makes sure that a shard is there and right.
func (s *Source) hold(ctx context.Context, u int) error {
	if s.held[u] != nil {
		return nil
	}
	shard := s.manifest.Shards[s.draws.usable[u]]
	b, err := s.fetch(ctx, shard)
	if err != nil {
		return err
	}
	if err := s.manifest.Check(shard, b); err != nil {
		return err
	}
	s.held[u] = b
	return nil
}

// decode fills dst from a shard. It has a loop for each width, as it runs for every token that
// is trained on.
func (s *Source) decode(b []byte, start int64, dst []int32) {
	width := s.manifest.Width
	b = b[start*int64(width):][:len(dst)*width]
	if width == 2 {
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(b[2*i:]))
		}
		return
	}
	for i := range dst {
		dst[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// Fetch reads a shard that is in the folder.
func (d *Dir) Fetch(ctx context.Context, s Shard) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b, err := readLimited(ShardFile(d.Path, s.Digest), MaxShard)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrMissing
	}
	if err != nil {
		return nil, fmt.Errorf("shard %v: %w", s.Digest, err)
	}
	return b, nil
}
