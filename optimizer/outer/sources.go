package outer

import (
	"math"

	"atoll/tensor"
	"atoll/tensor/codec"
)

// A fold reads deltas part by part: the sums of a part stay in the second cache while all deltas are
// added to it. Each value's sum has one order, that of the set, and each sum over values another, that of the
// values, so the bits are the same on any number of cores.

// partLen is how many values are summed at a time: 256 KiB of sums, a fraction of most second caches.
const partLen = 4 * codec.PieceLen

// rawBudget is the memory that payloads without their entropy coding may take, in bytes per value
// of the fragment: as much as the new global parameters and momentum.
const rawBudget = 8

// source gives the values of a delta.
type source struct {
	values []float32 // all of them, or nil
	reader *codec.Reader
}

// costly says that each read undoes the entropy coding of a whole segment.
func (s source) costly() bool { return s.values == nil && !s.reader.Remembers() }

// borrow gives the fold memory for the payloads of what is left of its set, within rawBudget.
func (fold *folding) borrow() {
	size := min(len(fold.set)*codec.RawSize(fold.p.Codec, fold.f.Len), rawBudget*fold.f.Len)
	fold.memory = tensor.Borrow(0, size)
	fold.raw = fold.memory.Bytes
}

// opened is a delta that decodes, with its values and their norm in each tensor, or the reason why it does not.
type opened struct {
	source
	norms []float64
	err   error
}

// measure decodes each delta for its norms; what does not decode is refused.
func (fold *folding) measure() {
	done := fold.openAll()
	at := 0
	fold.keep(fold.set, func(Contribution) error {
		o := done[at]
		at++
		if o.err == nil {
			fold.sources, fold.norms = append(fold.sources, o.source), append(fold.norms, o.norms)
		}
		return o.err
	})
}

// openAll opens the deltas of the set side by side, payloads two by two, which takes less time. Each gets its memory
// before, so who opens it when decides nothing.
func (fold *folding) openAll() []opened {
	done, sources := make([]opened, len(fold.set)), make([]codec.Source, len(fold.set))
	var alone, payloads []int
	for i, c := range fold.set {
		if fold.hasValues(c) {
			alone = append(alone, i)
			continue
		}
		sources[i] = fold.payload(c)
		payloads = append(payloads, i)
	}
	if n := len(payloads); n%2 == 1 {
		alone, payloads = append(alone, payloads[n-1]), payloads[:n-1]
	}
	pairs := len(payloads) / 2
	tensor.Parallel(pairs+len(alone), func(k int) {
		if k >= pairs {
			done[alone[k-pairs]] = fold.open(alone[k-pairs], sources)
			return
		}
		i, j := payloads[2*k], payloads[2*k+1]
		readers, err := codec.OpenPair(sources[i], sources[j], fold.f.Len)
		if err != nil { // of either
			sources[i].Parts, sources[j].Parts = fold.squares(), fold.squares()
			done[i], done[j] = fold.open(i, sources), fold.open(j, sources)
			return
		}
		done[i] = opened{source: source{reader: readers[0]}, norms: norms(sources[i].Parts)}
		done[j] = opened{source: source{reader: readers[1]}, norms: norms(sources[j].Parts)}
	})
	return done
}

func (fold *folding) hasValues(c Contribution) bool { return len(c.Values) == fold.f.Len }

// open finds out whether delta i of the set decodes.
func (fold *folding) open(i int, sources []codec.Source) opened {
	if c := fold.set[i]; fold.hasValues(c) {
		parts := fold.squares()
		for t := range parts {
			parts[t].Sum.AddSquares(0, c.Values[parts[t].From:parts[t].To])
		}
		return opened{source: source{values: c.Values}, norms: norms(parts)}
	}
	reader, err := codec.Open(sources[i], fold.f.Len)
	return opened{source: source{reader: reader}, norms: norms(sources[i].Parts), err: err}
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

// partLen is how many values a part has. Where a payload found no room, parts are
// segments of the codec, lest its entropy coding be undone for each.
func (fold *folding) partLen() int {
	if fold.crowded {
		return codec.SegmentLen
	}
	return partLen
}

// parts is how many parts the fragment has.
func (fold *folding) parts() int { return (fold.f.Len + fold.partLen() - 1) / fold.partLen() }

// part is the first value of part k, and memory for the sums of its values.
func (fold *folding) part(k int, memory *tensor.Workspace) (at int, sum []float64) {
	at = k * fold.partLen()
	return at, memory.Wide[:min(fold.partLen(), fold.f.Len-at)]
}

// eachPart calls do for each part, side by side: at is its first value, sum has room for one number for each.
func (fold *folding) eachPart(do func(at int, sum []float64)) {
	tensor.Parallel(fold.parts(), func(k int) {
		memory := tensor.BorrowSums(fold.partLen())
		do(fold.part(k, memory))
		tensor.ReturnSums(memory)
	})
}

// eachWave has as many parts as there are cores summed side by side. Then it calls do for each of lines, these side by side as well, with
// the sums of one part after the other. So each line sees all parts in order.
func (fold *folding) eachWave(sum progress, lines int, do func(line, at int, sum []float64)) {
	wave := make([]*tensor.Workspace, min(tensor.Threads(), fold.parts()))
	for w := range wave {
		wave[w] = tensor.BorrowSums(fold.partLen())
		defer tensor.ReturnSums(wave[w])
	}
	for first := 0; first < fold.parts(); first += len(wave) {
		now := wave[:min(len(wave), fold.parts()-first)]
		tensor.Parallel(len(now), func(w int) { sum(fold.part(first+w, now[w])) })
		tensor.Parallel(lines, func(line int) {
			for w := range now {
				at, values := fold.part(first+w, now[w])
				do(line, at, values)
			}
		})
	}
}

// accumulate adds factor(i, t) times tensor t of each delta i to sum, that of the values from at on, a
// part, in the order of the set. Tensors with factor 0 are left out.
func (fold *folding) accumulate(at int, sum []float64, factor func(i, t int) float64) {
	spans := make([]codec.Span, 0, len(fold.f.Tensors))
	for i := range fold.set {
		spans = spans[:0]
		fold.f.overlap(at, len(sum), func(t, _, from, to int) {
			if a := factor(i, t); a != 0 {
				spans = append(spans, codec.Span{From: from, To: to, Factor: a})
			}
		})
		if len(spans) > 0 {
			fold.add(i, at, spans, sum)
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
