package main

import (
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// topBlock is how many values the selection of the sparse codec looks at together, and
// topLanes into how many lanes it parts them.
const (
	topBlock = 4096
	topLanes = 128
)

// topSums is how many registers hold lanes at a time: all of them with AVX-512, half with AVX2.
const topSums = 8

// emitTopK emits the loops that select the largest magnitudes of a block.
func emitTopK(c *build.Context) {
	known := map[uint32]operand.Mem{}
	for _, s := range []isa{avx512(c), avx2(c)} {
		s.known = known
		q := quant{isa: s}
		q.emitLaneTops()
		q.emitReach()
	}
}

// loop emits body as often as n says.
func (s quant) loop(label string, n int, body func()) {
	left := s.GP64()
	s.MOVQ(operand.U32(n), left)
	s.Label(label)
	body()
	s.DECQ(left)
	s.JNZ(operand.LabelRef(label))
}

func (s quant) emitLaneTops() {
	s.quantFunction("laneTops", "func(tops *[128]uint32, x *[4096]float32)")
	tops, x, mask := s.arg("tops"), s.arg("x"), s.held(s.words(1<<31-1))
	for from := 0; from < topLanes; from += topSums * s.width {
		largest := make([]reg.VecVirtual, topSums)
		for i := range largest {
			largest[i] = s.vec()
			s.zero(largest[i])
		}
		row := s.GP64()
		s.LEAQ(operand.Mem{Base: x, Disp: 4 * from}, row)
		s.loop("rows"+string(rune('a'+from/(topSums*s.width))), topBlock/topLanes, func() {
			for i := range largest {
				v := s.vec()
				s.VMOVUPS(s.at(row, i), v)
				s.and(mask, v)
				s.VPMAXUD(v, largest[i], largest[i])
			}
			s.ADDQ(operand.U32(4*topLanes), row)
		})
		for i, v := range largest {
			s.VMOVUPS(v, operand.Mem{Base: tops, Disp: 4 * (from + s.width*i)})
		}
	}
	s.finish()
}

func (s quant) emitReach() {
	s.quantFunction("reach", "func(set *[64]uint64, x *[4096]float32, least uint32)")
	set, x, mask := s.arg("set"), s.arg("x"), s.held(s.words(1<<31-1))
	bits, narrow, bound := s.GP32(), s.XMM(), s.vec()
	s.Load(s.Param("least"), bits)
	if s.width == 8 {
		s.DECL(bits) // there is no comparison but with greater, of signed numbers; magnitudes are positive
	}
	s.VMOVD(bits, narrow)
	s.VPBROADCASTD(narrow, bound)
	const together = 4
	s.loop("values", topBlock/(together*s.width), func() {
		for i := range together {
			v, to := s.vec(), operand.Mem{Base: set, Disp: s.width / 8 * i}
			s.VMOVUPS(s.at(x, i), v)
			s.and(mask, v)
			if s.width == 16 {
				k, word := s.K(), s.GP32()
				s.VPCMPUD(operand.U8(5), bound, v, k) // not below
				s.KMOVW(k, word)
				s.MOVW(word.As16(), to)
			} else {
				word := s.GP32()
				s.VPCMPGTD(bound, v, v)
				s.VMOVMSKPS(v, word)
				s.MOVB(word.As8(), to)
			}
		}
		s.ADDQ(operand.U32(4*together*s.width), x)
		s.ADDQ(operand.U32(together*s.width/8), set)
	})
	s.finish()
}
