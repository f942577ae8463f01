package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Comparison predicates of VCMPPS: ordered, so false for NaN, and quiet.
const (
	lessThan    = operand.U8(17)
	greaterThan = operand.U8(30)
)

// slices loads the base pointers of slice parameters, and the length of the first.
func (s isa) slices(names ...string) (n reg.GPVirtual, bases []reg.GPVirtual) {
	n = s.GP64()
	s.Load(s.Param(names[0]).Len(), n)
	for _, name := range names {
		base := s.GP64()
		s.Load(s.Param(name).Base(), base)
		bases = append(bases, base)
	}
	return n, bases
}

// scalar returns a float32 parameter in each lane of a register.
func (s isa) scalar(name string) reg.VecVirtual {
	v := s.vec()
	s.VBROADCASTSS(s.param(name), v)
	return v
}

// param is where a parameter lies.
func (s isa) param(name string) operand.Mem {
	p, err := s.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}

// parts is how many registers a block of values takes.
func (s isa) parts() int { return block / s.width }

// vecs returns fresh registers for one block.
func (s isa) vecs() []reg.VecVirtual {
	v := make([]reg.VecVirtual, s.parts())
	for i := range v {
		v[i] = s.vec()
	}
	return v
}

// each emits body for every part of every block of n values: first the full blocks,
// with a nil mask, then the rest under a mask. The bases move along; label keeps the
// labels of several loops in one function apart.
func (s isa) each(label string, n reg.GPVirtual, bases []reg.GPVirtual, body func(part int, mask reg.Register)) {
	s.eachWith(label, n, bases, nil, body)
}

// eachWith is each with further pointers, to values of 16 bits.
func (s isa) eachWith(label string, n reg.GPVirtual, bases, halves []reg.GPVirtual, body func(part int, mask reg.Register)) {
	loop, tail, done := label+"loop", label+"tail", label+"done"
	s.CMPQ(n, operand.U8(block))
	s.JLT(operand.LabelRef(tail))
	s.Label(loop)
	for part := range s.parts() {
		body(part, nil)
	}
	for _, base := range bases {
		s.ADDQ(operand.U8(4*block), base)
	}
	for _, base := range halves {
		s.ADDQ(operand.U8(2*block), base)
	}
	s.SUBQ(operand.U8(block), n)
	s.CMPQ(n, operand.U8(block))
	s.JGE(operand.LabelRef(loop))
	s.Label(tail)
	s.TESTQ(n, n)
	s.JE(operand.LabelRef(done))
	for part, mask := range s.masks(n, s.parts()) {
		body(part, mask)
	}
	s.Label(done)
}

// at is the place of a part of the current block.
func (s isa) at(base reg.GPVirtual, part int) operand.Mem {
	return operand.Mem{Base: base, Disp: 4 * s.width * part}
}

// load reads a part of the current block; masked-out values are 0.
func (s isa) load(base reg.GPVirtual, part int, mask reg.Register) reg.VecVirtual {
	v := s.vec()
	if mask == nil {
		s.VMOVUPS(s.at(base, part), v)
	} else {
		s.loadMasked(s.at(base, part), mask, v)
	}
	return v
}

// save writes a part of the current block.
func (s isa) save(v reg.VecVirtual, base reg.GPVirtual, part int, mask reg.Register) {
	if mask == nil {
		s.VMOVUPS(v, s.at(base, part))
	} else {
		s.storeMasked(v, mask, s.at(base, part))
	}
}

// constant returns a block of copies of x in read-only memory.
func (s isa) constant(x float64) operand.Mem { return s.words(math.Float32bits(float32(x))) }

// words returns a block of copies of w in read-only memory.
func (s isa) words(w uint32) operand.Mem {
	if m, ok := s.known[w]; ok {
		return m
	}
	m := s.StaticGlobal(fmt.Sprintf("word%08x", w))
	s.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range block {
		s.AddDatum(4*i, operand.U32(w))
	}
	s.known[w] = m
	return m
}

// replace sets v to other where a compares to b as predicate says.
func (s isa) replace(v reg.VecVirtual, other operand.Mem, a reg.VecVirtual, predicate operand.U8, b operand.Mem) {
	if s.width == 16 {
		k := s.K()
		s.VCMPPS(predicate, b, a, k)
		s.VMOVUPS(other, k, v)
		return
	}
	where := s.vec()
	s.VCMPPS(predicate, b, a, where)
	s.VBLENDVPS(where, other, v, v)
}

// keep sets the lanes of v that mask does not keep to 0.
func (s isa) keep(v reg.VecVirtual, mask reg.Register) {
	switch {
	case mask == nil:
	case s.width == 16:
		s.VMOVUPS_Z(v, mask, v)
	default:
		s.VANDPS(mask, v, v)
	}
}

// upper returns the upper half of the first size bytes of v.
func (s isa) upper(v reg.VecVirtual, size int) reg.VecVirtual {
	u := s.vec()
	switch size {
	case 64:
		s.VEXTRACTF64X4(operand.U8(1), v, u.AsY())
	case 32:
		s.VEXTRACTF128(operand.U8(1), v.AsY(), u.AsX())
	case 16:
		s.VPSHUFD(operand.U8(0xee), v.AsX(), u.AsX())
	case 8:
		s.VPSHUFD(operand.U8(0x55), v.AsX(), u.AsX())
	}
	return u
}

// fold adds or otherwise joins the lanes of a block into lane 0 of its first
// register, halves onto each other, until only lane bytes are left. It returns the
// register's first 16 bytes.
func (s isa) fold(v []reg.VecVirtual, lane int, op func(x, y, sum reg.Register)) reg.Register {
	for half := len(v) / 2; half > 0; half /= 2 {
		for i := range half {
			op(v[i+half], v[i], v[i])
		}
	}
	for size := 4 * s.width; size > lane; size /= 2 {
		u := s.upper(v[0], size)
		if size == 64 {
			op(u.AsY(), v[0].AsY(), v[0].AsY())
		} else {
			op(u.AsX(), v[0].AsX(), v[0].AsX())
		}
	}
	return v[0].AsX()
}
