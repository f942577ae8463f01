package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"atoll/optimizer/trainer/corpus/documents"
	"atoll/optimizer/trainer/corpus/shards"
	"atoll/tensor/token"
)

const (
	// batchText is how much text is handed to a goroutine at once: enough to make handing
	// over cheap, little enough to keep all busy.
	batchText = 1 << 20
	// saveEvery is the text after which the build saves where it is: what an interruption
	// costs, which is seconds.
	saveEvery = 512 << 20
)

// read encodes the documents that are left, into buckets.
func (b *builder) read(ctx context.Context) error {
	p, in := newPool(b), &stream{b: b}
	defer in.close()
	for ended := false; !ended; {
		var err error
		if ended, err = p.round(in); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if ended || p.unsaved >= saveEvery {
			p.unsaved = 0
			if err := b.save(); err != nil {
				return err
			}
		}
		b.report(false)
	}
	return nil
}

// stream is the documents of all inputs. It keeps the place in the builder's state.
type stream struct {
	b *builder
	r *documents.Reader // nil: none is open
}

func (s *stream) close() {
	if s.r != nil {
		s.r.Close() // it was read only
		s.r = nil
	}
}

// next returns the next document that is not done, or io.EOF.
func (s *stream) next() (documents.Document, error) {
	at := &s.b.state
	for at.File < len(s.b.Inputs) {
		if err := s.open(); err != nil {
			return documents.Document{}, err
		}
		d, err := s.r.Next()
		if err != io.EOF {
			at.Skip++
			at.Read = at.Before + s.r.Offset()
			return d, err
		}
		at.Tally.Add(s.r.Tally)
		at.Before += max(s.b.Inputs[at.File].Size, s.r.Offset()) // a pipe has no size
		s.close()
		at.Read = at.Before
		at.File++
		at.Skip = 0
	}
	return documents.Document{}, io.EOF
}

// open opens the input that is being read, at the first document that is not done.
func (s *stream) open() error {
	if s.r != nil {
		return nil
	}
	f := s.b.Inputs[s.b.state.File]
	r, err := f.Open(documents.Options{Field: s.b.Field, End: s.b.end, Broken: s.b.Broken - s.b.state.Tally[documents.Broken], Tally: documents.Tally{}})
	if err != nil {
		return err
	}
	s.r = r
	for skip := s.b.state.Skip; skip > 0; skip-- {
		if _, err := r.Next(); err != nil {
			return fmt.Errorf("go on in %s, which has fewer documents than before: %w", f.Path, err)
		}
	}
	return nil
}

// batch returns documents for one goroutine.
func (s *stream) batch() (docs []documents.Document, err error) {
	for size := 0; size < batchText; {
		d, err := s.next()
		if err != nil {
			return docs, err
		}
		if d.Tokens == nil {
			d.Text = append([]byte(nil), d.Text...)
		}
		size += len(d.Text) + 4*len(d.Tokens)
		docs = append(docs, d)
	}
	return docs, nil
}

// pool encodes batches on several goroutines, which end with every round.
type pool struct {
	b        *builder
	encoders []token.Encoder
	jobs     chan []documents.Document
	done     sync.WaitGroup

	mu      sync.Mutex // guards what follows, and the builder's buckets and counts
	err     error
	unsaved int64 // bytes of text
}

func newPool(b *builder) *pool {
	p := &pool{b: b}
	for range b.Workers {
		p.encoders = append(p.encoders, b.Tokenizer.NewEncoder())
	}
	return p
}

// roundBatches is how many batches of a round there are for each goroutine: enough that few
// wait for the last one.
const roundBatches = 16

// round encodes some documents. After it, none is on its way.
func (p *pool) round(in *stream) (ended bool, err error) {
	p.begin()
	for n := 0; n < roundBatches*len(p.encoders) && err == nil; n++ {
		var docs []documents.Document
		docs, err = in.batch()
		p.jobs <- docs
	}
	close(p.jobs)
	p.done.Wait()
	if ended = err == io.EOF; ended || err == nil {
		err = p.err
	}
	return ended, err
}

func (p *pool) begin() {
	p.jobs = make(chan []documents.Document, len(p.encoders))
	for _, e := range p.encoders {
		p.done.Go(func() {
			for docs := range p.jobs {
				p.take(p.encode(e, docs))
			}
		})
	}
}

func (p *pool) encode(e token.Encoder, docs []documents.Document) ([]record, error) {
	var records []record
	var ids []int32
	for _, d := range docs {
		if d.Tokens == nil {
			ids = e.Append(ids[:0], d.Text)
			records = append(records, p.b.record(ids, d.Text))
			continue
		}
		for _, id := range d.Tokens {
			if int(id) >= p.b.Tokenizer.Size() {
				return nil, fmt.Errorf("a file of tokens has the token %d, of %d ids: pass the tokenizer that made it", id, p.b.Tokenizer.Size())
			}
		}
		records = append(records, p.b.record(d.Tokens, token.Decode(p.b.Tokenizer, nil, d.Tokens)))
	}
	return records, nil
}

// take puts records into buckets.
func (p *pool) take(records []record, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	for _, r := range records {
		if p.err != nil {
			return
		}
		p.err = p.b.buckets.add(r)
		p.unsaved += int64(r.text)
		p.b.state.Documents++
		p.b.state.Text += int64(r.text)
		p.b.state.Tokens += int64(len(r.tokens) / p.b.width)
	}
}

// record is a document with its end: the end token or, where there is none, a new line, so
// that its last word does not run into the next document's first. Its hash is of its text:
// corpora of two tokenizers hold out the same documents.
func (b *builder) record(ids []int32, text []byte) record {
	salted := append(binary.BigEndian.AppendUint64(nil, b.Seed), text...)
	r := record{hash: shards.Sum(salted), text: uint32(len(text))}
	switch {
	case b.end >= 0:
		ids = append(ids, b.end)
	case len(ids) > 0 && ids[len(ids)-1] != '\n':
		ids = append(ids, '\n')
		r.text++
	}
	r.tokens = shards.AppendTokens(make([]byte, 0, len(ids)*b.width), b.width, ids)
	return r
}
