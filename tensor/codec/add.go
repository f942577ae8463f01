package codec

import (
	"fmt"

	"atoll/tensor"
)

// Span are the values between From and To, counted from where reading begins, and their factor.
type Span struct {
	From, To int
	Factor   float64
}

// Add adds factor times the n values of payload b to sum, which must have length n, as tensor.AxpyWide
// does. The error is the error of Decode. After one the content of sum is undefined.
func Add(b []byte, n int, factor float64, sum []float64) error {
	if len(sum) != n {
		return fmt.Errorf("add: %d values do not go into a slice of %d", n, len(sum))
	}
	d := decoder{sums: &sums{spans: []Span{{0, n, factor}}, sum: sum}}
	return d.decode(b, n)
}

// Add adds the values of each span, times its factor, to sum, as tensor.AxpyWide does: sum[0] is of value
// number at, from which spans count, and all of sum lies in one segment. Without memory it undoes the entropy coding
// of the whole segment. The payload must not have changed since Open.
func (r *Reader) Add(at int, spans []Span, sum []float64) {
	d := decoder{sums: &sums{at, spans, sum}}
	r.segment(&d, at/SegmentLen, func(i int, streams [][]byte) error {
		return d.add(i*SegmentLen, r.length(i), streams)
	})
}

// sums is what decoded values are added to.
type sums struct {
	first int // the number of the value that spans count from
	spans []Span
	sum   []float64 // sum[0] is of value number first
}

// add adds the n values of the segment that begins with number at.
func (d *decoder) add(at, n int, streams [][]byte) error {
	first := d.sums.first
	for _, s := range d.sums.spans {
		from, to := max(first+s.From, at), min(first+s.To, at+n)
		if from >= to {
			continue
		}
		if err := d.s.add(d.kind, d.sums.sum[from-first:to-first], s.Factor, streams, from-at, n); err != nil {
			return err
		}
	}
	return nil
}

// add adds factor times the values from number from on, of a segment of n, to sum. Whole blocks of 4-bit codes
// are added without being written as values first.
func (s *scratch) add(k Kind, sum []float64, factor float64, streams [][]byte, from, n int) error {
	return s.pieces(k, streams, from, from+len(sum), n, func(at int, codes []byte, scales []float32) bool {
		return tensor.AddCodes4(sum[at-from:], factor, codes, scales)
	}, func(at int, v []float32) {
		tensor.AxpyWide(factor, v, sum[at-from:at-from+len(v)])
	})
}

// pieces goes through the values between from and to of a segment of n: blocks is shown the codes and scales of whole
// blocks of 4-bit codes, and reports whether none is 0; values is shown what else there is. Both are told the number
// of the first value.
func (s *scratch) pieces(k Kind, streams [][]byte, from, to, n int, blocks func(at int, codes []byte, scales []float32) bool, values func(at int, v []float32)) error {
	unit := PieceLen
	if k == Int4 {
		unit = blockLen
	}
	for from < to {
		skip := from % unit
		m := min(unit-skip, to-from)
		if k == Int4 && m == blockLen {
			first := from / blockLen
			scales, err := scalesOf(s.scales[:min(len(s.scales), (to-from)/blockLen)], streams, first)
			if err != nil {
				return err
			}
			if !blocks(from, streams[2][first*codeBytes:][:len(scales)*codeBytes], scales) {
				return fmt.Errorf("blocks %d to %d: %w", first, first+len(scales)-1, errCode)
			}
			m = len(scales) * blockLen
		} else {
			v := s.values(min(unit, n-(from-skip)))
			if err := s.join(k, v, streams, from-skip); err != nil {
				return err
			}
			values(from, v[skip:skip+m])
		}
		from += m
	}
	return nil
}

// check finds out whether the n values of a segment can be made of their streams.
func (s *scratch) check(k Kind, streams [][]byte, n int) error {
	return s.pieces(k, streams, 0, n, n, func(_ int, codes []byte, _ []float32) bool {
		return !tensor.AnyZero4(codes)
	}, func(int, []float32) {})
}

// Squares is a part of a vector, the values between From and To, and the sum of their squares.
type Squares struct {
	From, To int
	Sum      tensor.Lanes
}

// checkParts returns an error unless parts, if there are any, have n values one after the other.
func checkParts(parts []Squares, n int) error {
	end := 0
	for i, part := range parts {
		if part.From != end || part.To < part.From {
			return fmt.Errorf("part %d of the squares is %d to %d, after %d", i, part.From, part.To, end)
		}
		end = part.To
	}
	if parts != nil && end != n {
		return fmt.Errorf("parts of the squares have %d values of %d", end, n)
	}
	return nil
}

// square adds the squares of the n values of the segment that begins with number at.
func (d *decoder) square(at, n int, streams [][]byte) error {
	for i := range d.parts {
		part := &d.parts[i]
		from, to := max(part.From, at), min(part.To, at+n)
		if from >= to {
			continue
		}
		if err := d.s.square(d.kind, &part.Sum, at-part.From, streams, from-at, to-at, n); err != nil {
			return err
		}
	}
	return nil
}

// square adds the squares of the values between from and to of a segment of n, whose first value is number first
// of the part that sum is of.
func (s *scratch) square(k Kind, sum *tensor.Lanes, first int, streams [][]byte, from, to, n int) error {
	aligned := first%len(sum) == 0 // so are blocks then
	return s.pieces(k, streams, from, to, n, func(at int, codes []byte, scales []float32) bool {
		if aligned {
			return tensor.SquareCodes4(sum, codes, scales)
		}
		v := &s.last.values
		for i, scale := range scales {
			if !tensor.Unpack4(v, (*codes4)(codes[i*codeBytes:]), scale) {
				return false
			}
			sum.AddSquares(first+at+i*blockLen, v[:])
		}
		return true
	}, func(at int, v []float32) { sum.AddSquares(first+at, v) })
}
