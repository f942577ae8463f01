package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// PieceLen is the most values that are handed out at a time: few enough to stay in the first
// cache.
const PieceLen = 1 << 13

// Decode writes the n values of payload b to dst, which must have length n.
// After an error the content of dst is undefined.
func Decode(b []byte, n int, dst []float32) error {
	if len(dst) != n {
		return fmt.Errorf("decode: %d values do not go into a slice of %d", n, len(dst))
	}
	d := decoder{dst: dst}
	return d.decode(b, n)
}

// Check returns nil exactly where Decode does, without keeping the values.
func Check(b []byte, n int) error {
	d := decoder{}
	return d.decode(b, n)
}

// Reader reads the segments of a payload again: in any order, as often as is needed. Several goroutines
// may do so at once.
type Reader struct {
	kind   Kind
	n      int
	b      []byte
	starts []int  // of the segments in b
	raw    []byte // their streams without entropy coding, or nil
}

// RawSize is the memory in bytes that spares a Reader of n values in kind k to undo the entropy
// coding at each reading. It is 0 where MaxSize is.
func RawSize(k Kind, n int) int {
	if !k.Valid() || n < 0 || n > MaxValues {
		return 0
	}
	return (n/SegmentLen)*rawSegment(k, SegmentLen) + rawSegment(k, n%SegmentLen)
}

// Source is a payload to open.
type Source struct {
	Payload []byte
	// Memory has RawSize bytes, or is nil.
	Memory []byte
	// Parts follow one another and have all values, or there are none. The squares of the values are added
	// to them; after an error their sums are undefined.
	Parts []Squares
}

// Open finds out whether src is a payload of n values, and returns a Reader of it, which keeps payload and memory.
func Open(src Source, n int) (*Reader, error) {
	r, d, err := src.reader(n)
	if err != nil {
		return nil, err
	}
	return r, d.decode(src.Payload, n)
}

// OpenPair opens two payloads of n values in less time than one after the other. An error is of either of them:
// Open tells of which.
func OpenPair(a, b Source, n int) (readers [2]*Reader, err error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	var decoders [2]*decoder
	for i, src := range []Source{a, b} {
		if readers[i], decoders[i], err = src.reader(n); err == nil {
			err = decoders[i].begin(s, src.Payload, n)
		}
		if err != nil {
			return readers, err
		}
	}
	for at := 0; at < n; at += SegmentLen {
		if err := s.decode(job{decoders[0], at}, job{decoders[1], at}); err != nil {
			return readers, err
		}
	}
	return readers, errors.Join(decoders[0].end(), decoders[1].end())
}

// reader returns a Reader of src and the decoder that prepares it.
func (src Source) reader(n int) (*Reader, *decoder, error) {
	kind, err := KindOf(src.Payload)
	if err != nil {
		return nil, nil, err
	}
	if want := RawSize(kind, n); src.Memory != nil && len(src.Memory) != want {
		return nil, nil, fmt.Errorf("open %v: memory of %d bytes; %d values have %d", kind, len(src.Memory), n, want)
	}
	if err := checkParts(src.Parts, n); err != nil {
		return nil, nil, fmt.Errorf("open %v: %w", kind, err)
	}
	r := &Reader{kind: kind, n: n, b: src.Payload, raw: src.Memory}
	d := &decoder{parts: src.Parts}
	d.memory = func(at int) []byte {
		r.starts = append(r.starts, len(r.b)-len(d.rest))
		return r.streams(at / SegmentLen)
	}
	return r, d, nil
}

// streams is the memory of those of segment i, or nil.
func (r *Reader) streams(i int) []byte {
	if r.raw == nil {
		return nil
	}
	at := i * rawSegment(r.kind, SegmentLen)
	return r.raw[at : at+rawSegment(r.kind, r.length(i))]
}

// length is the number of values in segment i.
func (r *Reader) length(i int) int { return min(SegmentLen, r.n-i*SegmentLen) }

// Read hands the n values from number at on, which lie in one segment, to visit piece by piece, in order: v holds
// those from its number at on, and is overwritten after visit returns. at is a multiple of the kind's Unit, and so
// is n unless it reaches the end of the payload. Without memory it undoes the entropy coding of the whole segment. The
// payload must not have changed since Open.
func (r *Reader) Read(at, n int, visit func(at int, v []float32)) {
	d := decoder{visit: visit}
	r.segment(&d, at/SegmentLen, func(i int, streams [][]byte) error {
		return d.join(i*SegmentLen, at-i*SegmentLen, at-i*SegmentLen+n, streams)
	})
}

// Remembers says that the payload was opened with memory for what is left without its entropy coding.
func (r *Reader) Remembers() bool { return r.raw != nil }

// segment has do work with the streams of segment i again.
func (r *Reader) segment(d *decoder, i int, do func(i int, streams [][]byte) error) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.waiting = waiting{}
	d.kind, d.s = r.kind, s
	streams := s.segments[0].divide(r.streams(i), r.kind, r.length(i))
	var err error
	if r.raw == nil {
		if _, err = s.readStreams(r.b[r.starts[i]:], streams); err == nil {
			err = s.complete()
		}
	}
	if err == nil {
		err = do(i, streams)
	}
	if err != nil {
		panic("codec: a payload that was decoded does not decode again: " + err.Error())
	}
}

// decoder is a payload under way.
type decoder struct {
	kind Kind
	n    int    // values
	rest []byte // of the payload
	s    *scratch

	// Where the streams of the values from number at on are to go, and all values, and who is told
	// of these. Each may be nil, for scratch memory and nobody. With sums or parts values are only added,
	// or their squares; with none of all that they are only checked.
	memory func(at int) []byte
	dst    []float32
	visit  func(at int, v []float32)
	sums   *sums
	parts  []Squares
}

// decode runs through payload b of n values, two segments at a time.
func (d *decoder) decode(b []byte, n int) error {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	if err := d.begin(s, b, n); err != nil {
		return err
	}
	for at := 0; at < n; at += 2 * SegmentLen {
		jobs := []job{{d, at}, {d, at + SegmentLen}}
		if jobs[1].at >= n {
			jobs = jobs[:1]
		}
		if err := s.decode(jobs...); err != nil {
			return err
		}
	}
	return d.end()
}

// begin reads the head of payload b of n values.
func (d *decoder) begin(s *scratch, b []byte, n int) (err error) {
	if d.kind, err = KindOf(b); err != nil {
		return err
	}
	if n < 0 || n > MaxValues {
		return fmt.Errorf("decode %v: %d values are outside 0..%d", d.kind, n, MaxValues)
	}
	if count := binary.LittleEndian.Uint32(b[2:]); uint64(count) != uint64(n) {
		return fmt.Errorf("%w: it has %d values where %d are expected", ErrCorrupt, count, n)
	}
	d.s, d.n, d.rest = s, n, b[headerSize:]
	return nil
}

// end makes sure that the payload ends with its last segment.
func (d *decoder) end() error {
	if len(d.rest) > 0 {
		return fmt.Errorf("%w: %d bytes follow the last value", ErrCorrupt, len(d.rest))
	}
	return nil
}

// job is to decode the segment that begins with value number at.
type job struct {
	d  *decoder
	at int
}

// length is the number of values of the segment.
func (j job) length() int { return min(SegmentLen, j.d.n-j.at) }

func (j job) corrupt(err error) error {
	return fmt.Errorf("%w: %v values from %d on: %w", ErrCorrupt, j.d.kind, j.at, err)
}

// decode does one job or two at once, whose streams are decoded together where they have the same lengths.
func (s *scratch) decode(jobs ...job) error {
	s.waiting = waiting{}
	for i, j := range jobs {
		var memory []byte
		if j.d.memory != nil {
			memory = j.d.memory(j.at)
		}
		streams := s.segments[i].divide(memory, j.d.kind, j.length())
		var err error
		if j.d.rest, err = s.readStreams(j.d.rest, streams); err != nil {
			return jobs[0].corrupt(err) // of a stream of this job, or of one before that waited for it
		}
	}
	if err := s.complete(); err != nil {
		return jobs[0].corrupt(err)
	}
	for i, j := range jobs {
		if err := j.d.take(j.at, j.length(), s.segments[i].streams); err != nil {
			return j.corrupt(err)
		}
	}
	return nil
}

// take does with the values of a segment what the decoder is for.
func (d *decoder) take(at, length int, streams [][]byte) error {
	switch {
	case d.sums != nil:
		return d.add(at, length, streams)
	case d.parts != nil:
		return d.square(at, length, streams)
	case d.dst == nil && d.visit == nil:
		return d.s.check(d.kind, streams, length)
	}
	return d.join(at, 0, length, streams)
}

// join makes the values between from and to of the segment that begins with number at of their
// streams, piece by piece.
func (d *decoder) join(at, from, to int, streams [][]byte) error {
	for ; from < to; from += PieceLen {
		m := min(PieceLen, to-from)
		var v []float32
		if d.dst != nil {
			v = d.dst[at+from : at+from+m]
		} else {
			v = d.s.values(m)
		}
		if err := d.s.join(d.kind, v, streams, from); err != nil {
			return err
		}
		if d.visit != nil {
			d.visit(at+from, v)
		}
	}
	return nil
}

// readStreams fills the streams of a segment from the chunks that b begins with and returns what
// follows them. The filling of one may wait until complete.
func (s *scratch) readStreams(b []byte, streams [][]byte) (rest []byte, err error) {
	for i, stream := range streams {
		if b, err = s.readChunk(b, stream); err != nil {
			return nil, fmt.Errorf("stream %d: %w", i, err)
		}
	}
	return b, nil
}

// join makes the values of a segment from number from on, a multiple of PieceLen, of its streams.
func (s *scratch) join(k Kind, dst []float32, streams [][]byte, from int) error {
	switch k {
	case F32:
		return joinF32(dst, streams, from)
	case Int4:
		return dequantize(dst, streams, from, &s.last)
	default: // Sparse, Sparse8
		return scatter(k, dst, streams, from)
	}
}
