package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// block is how many values a vector kernel handles at once on either instruction
// set: one AVX-512 register, two AVX2 registers.
const block = 16

// isa is an instruction set and the context to emit it into.
type isa struct {
	*build.Context
	suffix string                 // ends the names of its functions
	width  int                    // float32 values in a register
	mr, nr int                    // rows and columns of a matrix tile: what fills the registers
	table  operand.Mem            // set by maskTable
	known  map[uint32]operand.Mem // constants emitted so far
}

func avx512(c *build.Context) isa {
	return isa{Context: c, suffix: "AVX512", width: 16, mr: 14, nr: 32}
}
func avx2(c *build.Context) isa { return isa{Context: c, suffix: "AVX2", width: 8, mr: 6, nr: 16} }

// vec returns a fresh vector register.
func (s isa) vec() reg.VecVirtual {
	if s.width == 16 {
		return s.ZMM()
	}
	return s.YMM()
}

// zero clears v.
func (s isa) zero(v reg.VecVirtual) {
	if s.width == 16 {
		s.VPXORD(v, v, v)
		return
	}
	s.VXORPS(v, v, v)
}

// function starts a function that calls nothing and needs no stack check.
func (s isa) function(name, signature string, doc ...string) {
	s.Function(name + s.suffix)
	s.Attributes(attr.NOSPLIT)
	s.SignatureExpr(signature)
	s.Pragma("noescape")
	doc[0] = name + s.suffix + " " + doc[0]
	s.Doc(doc...)
}

// arg loads a parameter of 8 bytes.
func (s isa) arg(name string) reg.GPVirtual {
	r := s.GP64()
	s.Load(s.Param(name), r)
	return r
}

// finish clears the upper register halves, which would slow down SSE code, and
// returns.
func (s isa) finish() {
	s.VZEROUPPER()
	s.RET()
}

// maskValues is how many values the mask table can keep: the columns of the widest
// tile.
const maskValues = 32

// maskTable emits a row of set words followed by as many clear ones: read from n
// words before the middle, it masks all but n values.
func maskTable(c *build.Context, name string) operand.Mem {
	table := c.StaticGlobal(name)
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 2 * maskValues {
		word := operand.U32(0)
		if i < maskValues {
			word = 0xffffffff
		}
		c.AddDatum(4*i, word)
	}
	return table
}

// masks returns the masks of count registers that keep their first n values. It
// changes n.
func (s isa) masks(n reg.GPVirtual, count int) []reg.Register {
	at := s.GP64()
	s.LEAQ(s.table, at)
	s.NEGQ(n)
	masks := make([]reg.Register, count)
	for i := range masks {
		v := s.vec()
		s.VMOVUPS(operand.Mem{Base: at, Index: n, Scale: 4, Disp: 4 * (maskValues + s.width*i)}, v)
		masks[i] = v
		if s.width == 16 {
			k := s.K()
			s.VPMOVD2M(v, k)
			masks[i] = k
		}
	}
	return masks
}

// loadMasked loads the values at m that mask keeps, and 0 for the others, which it
// does not touch.
func (s isa) loadMasked(m operand.Mem, mask reg.Register, v reg.VecVirtual) {
	if s.width == 16 {
		s.VMOVUPS_Z(m, mask, v)
		return
	}
	s.VMASKMOVPS(m, mask, v)
}

// storeMasked writes the values of v that mask keeps to m.
func (s isa) storeMasked(v reg.VecVirtual, mask reg.Register, m operand.Mem) {
	if s.width == 16 {
		s.VMOVUPS(v, mask, m)
		return
	}
	s.VMASKMOVPS(v, mask, m)
}
