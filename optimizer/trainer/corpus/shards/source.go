package shards

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
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

	components []component // without places

	draws *draws
	held  map[int][]byte // by place in the manifest's Shards
	read  map[int]bool   // by the last batch, likewise
}

// NewSource returns a source of the shards of a corpus that are trained on.
func NewSource(m *Manifest, w Window, fetch Fetch) (*Source, error) {
	if w.Shards < 1 || w.Steps < 1 || w.Steps > maxSteps {
		return nil, fmt.Errorf("a window of %d shards that moves after %d steps: use 1 or more of each, and at most %d steps", w.Shards, w.Steps, int64(maxSteps))
	}
	return &Source{manifest: m, window: w, fetch: fetch, components: componentsOf(m, w), held: map[int][]byte{}, read: map[int]bool{}}, nil
}

// maxSteps is as good as never: it keeps products far from overflow.
const maxSteps = 1 << 40

// Fits is that of the manifest.
func (s *Source) Fits(context int) error { return s.manifest.Fits(context) }

// Fits returns an error if no shard has a row of so many tokens and the one that follows. In a
// mixture each component needs one.
func (m *Manifest) Fits(context int) error {
	for _, p := range m.Parts() {
		longest := int64(0)
		for _, shard := range p.Shards {
			longest = max(longest, shard.Tokens)
		}
		if context < 1 || longest <= int64(context) {
			return fmt.Errorf("corpus %s: its longest shard has %d tokens, a context of %d needs %d: pass more text or a model with a shorter context",
				p.Name, longest, context, context+1)
		}
	}
	return nil
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
		s.draws = newDraws(s.manifest, s.window, seed, author, context)
		clear(s.held)
	}
	if !s.draws.usable() {
		return s.Fits(context)
	}
	windows := s.draws.at(step)
	s.release(windows)
	clear(s.read)
	for r := range rows {
		shard, start := s.draws.row(windows, step, r)
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
	for i := range s.read {
		list = append(list, s.manifest.Shards[i])
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
	d := newDraws(s.manifest, s.window, seed, author, context)
	windows := d.at(step)
	places := make([]Place, rows)
	for r := range places {
		i, start := d.row(windows, step, r)
		places[r] = Place{i, start}
	}
	return places
}

// Window returns the shards that an author reads from at a step, in no order that matters.
func (s *Source) Window(seed uint64, author [32]byte, step int64, context int) []Shard {
	return s.Ahead(seed, author, step, context, 0)
}

// Ahead returns the window that comes so many windows after that of a step, when all shards of
// that one were exchanged so many times.
func (s *Source) Ahead(seed uint64, author [32]byte, step int64, context, windows int) (list []Shard) {
	d := newDraws(s.manifest, s.window, seed, author, context)
	for i, window := range d.ahead(step, windows) {
		for _, u := range window {
			list = append(list, s.manifest.Shards[d.components[i].usable[u]])
		}
	}
	return list
}

// Moves is how often the windows of all components have moved at a step. While it is the same,
// so are the windows.
func (s *Source) Moves(step int64) (moves uint64) {
	for _, c := range s.components {
		moves += c.position(step)
	}
	return moves
}

// WindowShards is the most shards that a window has.
func (s *Source) WindowShards() (n int) {
	for i, p := range s.manifest.Parts() {
		n += min(s.components[i].size, len(p.Shards))
	}
	return n
}

// Room is the most bytes that the shards of so many windows have.
func (s *Source) Room(windows int) (bytes int64) {
	for i, p := range s.manifest.Parts() {
		var sizes []int64
		for _, shard := range p.Shards {
			sizes = append(sizes, s.manifest.Size(shard))
		}
		slices.Sort(sizes)
		for _, size := range sizes[max(0, len(sizes)-windows*s.components[i].size):] {
			bytes += size
		}
	}
	return bytes
}

// release lets go of shards that the windows have left.
func (s *Source) release(windows [][]int) {
	in := map[int]bool{}
	for i, window := range windows {
		for _, u := range window {
			in[s.draws.components[i].usable[u]] = true
		}
	}
	for i := range s.held {
		if !in[i] {
			delete(s.held, i)
		}
	}
}

// hold makes sure that a shard is there and right.
func (s *Source) hold(ctx context.Context, i int) error {
	if s.held[i] != nil {
		return nil
	}
	shard := s.manifest.Shards[i]
	b, err := s.fetch(ctx, shard)
	if err != nil {
		return err
	}
	if err := s.manifest.Check(shard, b); err != nil {
		return err
	}
	s.held[i] = b
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
