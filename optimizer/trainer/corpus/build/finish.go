package build

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"atoll/optimizer/trainer/corpus/shards"
)

// finish writes the shards, then the manifest, and removes what only the build needed. It
// begins anew after an interruption: it copies, which takes no time beside encoding.
func (b *builder) finish(ctx context.Context) (Result, error) {
	result := Result{Documents: b.state.Documents, Tally: b.state.Tally}
	w, unique, err := b.writeShards(ctx)
	if err != nil {
		return result, err
	}
	result.Duplicates = b.state.Documents - unique
	m := b.manifest()
	m.HeldOut, m.Shards = w.heldOut, w.train
	if len(m.HeldOut) == 0 || len(m.Shards) == 0 {
		return result, errors.New("there are too few documents: some are trained on and some held out, so pass more text, or what was left out in a form that is read")
	}
	if err := m.Validate(); err != nil {
		return result, err
	}
	if b.TokenizerFile != nil {
		if err := shards.WriteFile(filepath.Join(b.Out, shards.TokenizerFile), b.TokenizerFile); err != nil {
			return result, err
		}
	}
	if err := shards.WriteFile(filepath.Join(b.Out, shards.ManifestFile), m.Encode()); err != nil {
		return result, err
	}
	result.Manifest = &m
	return result, os.RemoveAll(b.work)
}

// writeShards writes all documents in order and returns how many there are.
func (b *builder) writeShards(ctx context.Context) (*writer, int64, error) {
	folder := filepath.Dir(shards.ShardFile(b.Out, shards.Digest{}))
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o777)); err != nil {
		return nil, 0, err
	}
	unique, tokens, err := b.count(ctx)
	if err != nil {
		return nil, 0, err
	}
	w := newWriter(b.Out, b.width, tokens, b.HeldOut)
	for n := range bucketCount {
		records, err := readBucket(b.work, n)
		if err != nil {
			return nil, 0, err
		}
		for _, r := range records {
			if err := errors.Join(w.add(r), ctx.Err()); err != nil {
				return nil, 0, err
			}
		}
		b.written = float64(n+1) / bucketCount
		b.report(true)
	}
	return w, unique, w.close()
}

// count returns the number of different documents, and of the tokens in them.
func (b *builder) count(ctx context.Context) (unique, tokens int64, err error) {
	for n := range bucketCount {
		records, err := readBucket(b.work, n)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return 0, 0, err
		}
		unique += int64(len(records))
		for _, r := range records {
			tokens += int64(len(r.tokens) / b.width)
		}
	}
	return unique, tokens, nil
}

// writer cuts documents into shards. A document is in one shard, unless it is longer than
// shards are.
type writer struct {
	out            string
	width          int
	heldOut, train []shards.Shard
	seen           map[shards.Digest]bool

	holding bool  // out
	left    int64 // bytes that are still held out
	target  int   // bytes of a shard to train on: all have about the same
	buf     []byte
	text    int64
}

func newWriter(out string, width int, tokens int64, share float64) *writer {
	limit := int64(shards.MaxShard / width * width)
	total := tokens * int64(width)
	held := min(int64(float64(tokens)*share)*int64(width), limit)
	count := (total - held + limit - 1) / limit
	return &writer{out: out, width: width, holding: true, left: max(held, 1), seen: map[shards.Digest]bool{},
		target: int((total - held) / max(count, 1))}
}

func (w *writer) add(r record) error {
	limit := shards.MaxShard / w.width * w.width
	if len(w.buf)+len(r.tokens) > limit {
		if err := w.flush(); err != nil {
			return err
		}
		w.holding = w.holding && len(w.heldOut) == 0 // one shard at most
	}
	// All of the text is counted in the last part, which is the only one but for documents
	// that are longer than a shard.
	for len(r.tokens) > limit {
		w.buf = append(w.buf, r.tokens[:limit]...)
		r.tokens = r.tokens[limit:]
		if err := w.flush(); err != nil {
			return err
		}
	}
	w.buf = append(w.buf, r.tokens...)
	w.text += int64(r.text)
	switch {
	case w.holding && int64(len(w.buf)) >= w.left:
		err := w.flush()
		w.holding = false
		return err
	case !w.holding && len(w.buf) >= w.target:
		return w.flush()
	}
	return nil
}

// flush writes what was added since as a shard. One that is there already, of a document
// that repeats itself over more than a shard, is not written again.
func (w *writer) flush() error {
	if len(w.buf) == 0 {
		return nil
	}
	s := shards.Shard{Digest: shards.Sum(w.buf), Tokens: int64(len(w.buf) / w.width), Bytes: w.text}
	if !w.seen[s.Digest] {
		w.seen[s.Digest] = true
		if err := shards.WriteFile(shards.ShardFile(w.out, s.Digest), w.buf); err != nil {
			return err
		}
		if w.holding {
			w.heldOut = append(w.heldOut, s)
		} else {
			w.train = append(w.train, s)
		}
	}
	w.left -= int64(len(w.buf))
	w.buf, w.text = w.buf[:0], 0
	return nil
}

func (w *writer) close() error { return w.flush() }
