package outer

import (
	"math"
	"slices"

	"atoll/tensor"
	"atoll/tensor/codec"
)

// A fold reads deltas part by part: the sums of a part stay in the second cache while all deltas are
// added to it.

// partLen is how many values are summed at a time: 256 KiB of sums, a fraction of most second caches.
const partLen = 4 * codec.PieceLen

// rawBudget is the memory that payloads without their entropy coding may take, in bytes per value
// of the fragment: as much as the sums.
const rawBudget = 8

// source gives the values of a delta.
type source struct {
	values []float32 // all of them, or nil
	reader *codec.Reader
}

// costly says that each read undoes the entropy coding of a whole segment.
func (s source) costly() bool { return s.values == nil && !s.reader.Remembers() }

// borrow gives the fold memory for the sums of what is left of its set and, within rawBudget, its payloads.
func (fold *folding) borrow() {
	size := min(len(fold.set)*codec.RawSize(fold.p.Codec, fold.f.Len), rawBudget*fold.f.Len)
	fold.memory = tensor.Borrow(fold.f.Len, size)
	fold.sum, fold.raw = fold.memory.Wide, fold.memory.Bytes
}

// opened is a delta that decodes: its values, and their norm in each tensor.
type opened struct {
	source
	norms []float64
}

// measure decodes each delta for its norms; what does not decode is refused.
func (fold *folding) measure() {
	pairs := fold.openPairs()
	fold.keep(fold.set, func(c Contribution) (err error) {
		o, done := pairs[c.Delta.ID]
		if !done {
			if o, err = fold.open(c); err != nil {
				return err
			}
		}
		fold.sources, fold.norms = append(fold.sources, o.source), append(fold.norms, o.norms)
		return nil
	})
}

// openPairs opens payloads two by two, which takes less time. It leaves out a pair if one of the two does not
// decode.
func (fold *folding) openPairs() map[ID]opened {
	done := make(map[ID]opened, len(fold.set))
	payloads := slices.DeleteFunc(slices.Clone(fold.set), fold.hasValues)
	for ; len(payloads) >= 2; payloads = payloads[2:] {
		room, crowded := fold.raw, fold.crowded
		a, b := fold.payload(payloads[0]), fold.payload(payloads[1])
		readers, err := codec.OpenPair(a, b, fold.f.Len)
		if err != nil {
			fold.raw, fold.crowded = room, crowded
			continue
		}
		done[payloads[0].Delta.ID] = opened{source{reader: readers[0]}, norms(a.Parts)}
		done[payloads[1].Delta.ID] = opened{source{reader: readers[1]}, norms(b.Parts)}
	}
	return done
}

func (fold *folding) hasValues(c Contribution) bool { return len(c.Values) == fold.f.Len }

// open finds out whether a delta decodes.
func (fold *folding) open(c Contribution) (opened, error) {
	if fold.hasValues(c) {
		parts := fold.squares()
		for t := range parts {
			parts[t].Sum.AddSquares(0, c.Values[parts[t].From:parts[t].To])
		}
		return opened{source{values: c.Values}, norms(parts)}, nil
	}
	room, src := fold.raw, fold.payload(c)
	reader, err := codec.Open(src, fold.f.Len)
	if err != nil {
		fold.raw = room
		return opened{}, err
	}
	return opened{source{reader: reader}, norms(src.Parts)}, nil
}

// payload is what codec is to open of a delta, with memory if there still is room.
func (fold *folding) payload(c Contribution) codec.Source {
	src := codec.Source{Payload: c.Payload, Parts: fold.squares()}
	if size := codec.RawSize(fold.p.Codec, fold.f.Len); size <= len(fold.raw) {
		src.Memory, fold.raw = fold.raw[:size:size], fold.raw[size:]
	} else {
		fold.crowded = true
	}
	return src
}

// squares are sums of zero for the tensors of the fragment.
func (fold *folding) squares() []codec.Squares {
	parts, start := make([]codec.Squares, len(fold.f.Tensors)), 0
	for t, tensor := range fold.f.Tensors {
		parts[t] = codec.Squares{From: start, To: start + tensor.Len}
		start += tensor.Len
	}
	return parts
}

// norms are the roots of sums of squares.
func norms(parts []codec.Squares) []float64 {
	roots := make([]float64, len(parts))
	for t := range roots {
		roots[t] = math.Sqrt(parts[t].Sum.Sum())
	}
	return roots
}

// read hands the n values of delta i from at on, a part, to visit, in one piece or several.
func (fold *folding) read(i, at, n int, visit func(at int, v []float32)) {
	if s := fold.sources[i]; s.values != nil {
		visit(at, s.values[at:at+n])
		return
	}
	fold.sources[i].reader.Read(at, n, visit)
}

// eachPart calls do for the n values from at on of each part. Where a payload found no room, parts are
// segments of the codec, lest its entropy coding be undone for each.
func (fold *folding) eachPart(do func(at, n int)) {
	length := partLen
	if fold.crowded {
		length = codec.SegmentLen
	}
	for at := 0; at < fold.f.Len; at += length {
		do(at, min(length, fold.f.Len-at))
	}
}

// accumulate adds factor(i, t) times tensor t of each delta i to the n values from at on of fold.sum, a
// part, in the order of the set. Tensors with factor 0 are left out.
func (fold *folding) accumulate(at, n int, factor func(i, t int) float64) {
	spans := make([]codec.Span, 0, len(fold.f.Tensors))
	for i := range fold.set {
		spans = spans[:0]
		fold.f.overlap(at, n, func(t, _, from, to int) {
			if a := factor(i, t); a != 0 {
				spans = append(spans, codec.Span{From: from, To: to, Factor: a})
			}
		})
		if len(spans) > 0 {
			fold.add(i, at, spans, fold.sum[at:at+n])
		}
	}
}

// add adds spans of delta i, counted from value number at, to sum.
func (fold *folding) add(i, at int, spans []codec.Span, sum []float64) {
	s := fold.sources[i]
	if s.values == nil {
		s.reader.Add(at, spans, sum)
		return
	}
	for _, span := range spans {
		tensor.AxpyWide(span.Factor, s.values[at+span.From:at+span.To], sum[span.From:span.To])
	}
}

// overlap calls do for each tensor that holds some of the n values from at on of the fragment's
// vectors. These are the values between from and to, counted from at; the first one is number first of
// tensor t.
func (f Fragment) overlap(at, n int, do func(t, first, from, to int)) {
	start := 0
	for t, tensor := range f.Tensors {
		end := start + tensor.Len
		if from, to := max(start, at), min(end, at+n); from < to {
			do(t, from-start, from-at, to-at)
		}
		start = end
	}
}
