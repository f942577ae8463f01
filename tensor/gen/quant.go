package main

import (
	"math/bits"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// quantBlock is how many values share a scale: one call of these kernels, or each of the blocks of a call.
const quantBlock = 256

// emitQuant emits the loops of the quantised codecs, on blocks of quantBlock values.
func emitQuant(c *build.Context) {
	known := map[uint32]operand.Mem{}
	tables := map[string]operand.Mem{}
	for _, s := range []isa{avx512(c), avx2(c)} {
		s.known = known
		q := quant{s, tables}
		q.emitMaxBits()
		q.emitPack4()
		q.emitUnpack4()
		q.emitAddCodes4()
		q.emitSquareCodes4()
		q.emitAnyZero4()
	}
}

// quant is an instruction set and tables of words emitted so far.
type quant struct {
	isa
	tables map[string]operand.Mem
}

// words32 returns words in read-only memory.
func (s quant) words32(name string, words ...int32) operand.Mem {
	if m, ok := s.tables[name]; ok {
		return m
	}
	m := s.StaticGlobal(name)
	s.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		s.AddDatum(4*i, operand.U32(w))
	}
	s.tables[name] = m
	return m
}

// quantFunction starts the fast version of the plain Go function name+"Go".
func (s quant) quantFunction(name, signature string) {
	s.function(name, signature, "is "+name+"Go.")
}

// held returns a register with the words at m.
func (s quant) held(m operand.Mem) reg.VecVirtual {
	v := s.vec()
	s.VMOVUPS(m, v)
	return v
}

// values is how many registers a block of values takes; at is where register i lies.
func (s quant) values() int { return quantBlock / s.width }

func (s quant) at(base reg.GPVirtual, i int) operand.Mem {
	return operand.Mem{Base: base, Disp: 4 * s.width * i}
}

// and emits v &= mask.
func (s quant) and(mask, v reg.VecVirtual) {
	if s.width == 16 {
		s.VPANDD(mask, v, v)
		return
	}
	s.VPAND(mask, v, v)
}

func (s quant) emitMaxBits() {
	s.quantFunction("maxBits", "func(x *[256]float32) uint32")
	x, mask := s.arg("x"), s.held(s.words(1<<31-1))
	largest := make([]reg.VecVirtual, 4) // so that comparisons need not wait for one another
	for i := range s.values() {
		v := s.vec()
		s.VMOVUPS(s.at(x, i), v)
		s.and(mask, v)
		if i < len(largest) {
			largest[i] = v
			continue
		}
		s.VPMAXUD(v, largest[i%len(largest)], largest[i%len(largest)])
	}
	result := s.fold(largest, 4, func(x, y, most reg.Register) { s.VPMAXUD(x, y, most) })
	bits := s.GP32()
	s.VMOVD(result, bits)
	s.Store(bits, s.ReturnIndex(0))
	s.finish()
}

// codes returns the codes of 4 registers of values as bytes, in order.
func (s quant) codes(x reg.GPVirtual, first int, inv, magic, mask, order reg.VecVirtual) reg.VecVirtual {
	v := make([]reg.VecVirtual, 4)
	for i := range v {
		v[i] = s.vec()
		s.VMULPS(s.at(x, first+i), inv, v[i])
		s.VADDPS(magic, v[i], v[i])
		s.and(mask, v[i])
	}
	// Packing works within 16 bytes: each of these ends with 4 bytes of every register.
	s.VPACKUSDW(v[1], v[0], v[0])
	s.VPACKUSDW(v[3], v[2], v[2])
	s.VPACKUSWB(v[2], v[0], v[0])
	s.VPERMD(v[0], order, v[0])
	return v[0]
}

// byteOrder returns the places of the words that packing 4 registers has mixed.
func (s quant) byteOrder() operand.Mem {
	lanes := s.width / 4
	var order []int32
	for source := range 4 {
		for lane := range lanes {
			order = append(order, int32(4*lane+source))
		}
	}
	return s.words32("packOrder"+s.suffix, order...)
}

func (s quant) emitPack4() {
	s.quantFunction("pack4", "func(codes *[128]byte, x *[256]float32, inv float32)")
	codes, x, inv := s.arg("codes"), s.arg("x"), s.scalar("inv")
	magic, mask := s.held(s.constant(0x1.8p23+8)), s.held(s.words(15))
	order, weights := s.held(s.byteOrder()), s.held(s.words(0x10011001)) // 1 and 16 in turn
	for i := 0; i < s.values(); i += 8 {
		low := s.codes(x, i, inv, magic, mask, order)
		high := s.codes(x, i+4, inv, magic, mask, order)
		// Two codes make a byte: low + 16 high, in a word each.
		s.VPMADDUBSW(weights, low, low)
		s.VPMADDUBSW(weights, high, high)
		s.VPACKUSWB(high, low, low)
		s.mendHalves(low)
		s.VMOVUPS(low, operand.Mem{Base: codes, Disp: s.width * i / 2})
	}
	s.finish()
}

// mendHalves puts what packing two registers has mixed in order: 8 bytes of each in turn.
func (s quant) mendHalves(v reg.VecVirtual) {
	if s.width == 8 {
		s.VPERMQ(operand.U8(0xd8), v, v)
		return
	}
	var order []int32
	for source := range 2 {
		for lane := range s.width / 4 {
			order = append(order, int32(2*lane+source), 0)
		}
	}
	s.VPERMQ(v, s.held(s.words32("halvesOrder"+s.suffix, order...)), v)
}

// anyZero looks for bytes among the size ones at base that have no bit of one of the masks set:
// the result is 0 if there is none.
func (s quant) anyZero(base reg.GPVirtual, size int, masks ...reg.VecVirtual) reg.GPVirtual {
	found := s.GP64()
	s.XORQ(found, found)
	s.findZero(found, base, size, masks...)
	return found
}

// findZero sets bits of found if anyZero would.
func (s quant) findZero(found, base reg.GPVirtual, size int, masks ...reg.VecVirtual) {
	zero := s.vec()
	if s.width == 8 {
		s.zero(zero)
	}
	for at := 0; at < size; at += 4 * s.width {
		v := s.vec()
		s.VMOVUPS(operand.Mem{Base: base, Disp: at}, v)
		for _, mask := range masks {
			here := s.GP64()
			if s.width == 16 {
				k := s.K()
				s.VPTESTNMB(mask, v, k)
				s.KMOVQ(k, here)
			} else {
				part := s.vec()
				s.VPAND(mask, v, part)
				s.VPCMPEQB(zero, part, part)
				s.VPMOVMSKB(part, here.As32())
			}
			s.ORQ(here, found)
		}
	}
}

// answer stores whether found is not 0.
func (s quant) answer(found reg.GPVirtual) {
	yes := s.GP8()
	s.TESTQ(found, found)
	s.SETNE(yes)
	s.Store(yes, s.ReturnIndex(0))
}

func (s quant) emitUnpack4() {
	s.quantFunction("unpack4", "func(x *[256]float32, codes *[128]byte, scale float32) (zero bool)")
	x, codes, scale := s.arg("x"), s.arg("codes"), s.scalar("scale")
	s.answer(s.anyZero4(codes))
	if s.width == 16 {
		s.lookUp4(x, codes, scale)
	} else {
		s.shift4(x, codes, scale)
	}
	s.finish()
}

// anyZero4 looks for 4-bit codes of 0.
func (s quant) anyZero4(codes reg.GPVirtual) reg.GPVirtual {
	return s.anyZero(codes, quantBlock/2, s.halves()...)
}

// halves are the masks of the 4-bit codes of a byte.
func (s quant) halves() []reg.VecVirtual {
	return []reg.VecVirtual{s.held(s.words(0x0f0f0f0f)), s.held(s.words(0xf0f0f0f0))}
}

// stride is a pointer and how far it moves with each block.
type stride struct {
	pointer reg.GPVirtual
	bytes   uint32
}

// blocks4 emits body for each block of the 4-bit codes there, of which there are left blocks, one or more, and answers
// whether one is 0. The pointers move along, others too.
func (s quant) blocks4(codes, left reg.GPVirtual, body func(), others ...stride) {
	found, masks := s.GP64(), s.halves()
	s.XORQ(found, found)
	s.Label("blocks")
	s.findZero(found, codes, quantBlock/2, masks...)
	body()
	s.ADDQ(operand.U32(quantBlock/2), codes)
	for _, p := range others {
		s.ADDQ(operand.U32(p.bytes), p.pointer)
	}
	s.DECQ(left)
	s.JNE(operand.LabelRef("blocks"))
	s.answer(found)
}

// values4 returns a register of what all 16 codes mean.
func (s quant) values4(scale reg.VecVirtual) reg.VecVirtual {
	var steps []int32
	for q := range int32(16) {
		steps = append(steps, q-8)
	}
	values := s.held(s.words32("steps4", steps...))
	s.VCVTDQ2PS(values, values)
	s.VMULPS(scale, values, values)
	return values
}

// lookUp4 takes values from a register of all 16: one byte becomes the two words of a quadword,
// of which a look-up sees the low 4 bits.
func (s quant) lookUp4(x, codes reg.GPVirtual, scale reg.VecVirtual) {
	values := s.values4(scale)
	for i := range s.values() {
		v, high := s.vec(), s.vec()
		s.VPMOVZXBQ(operand.Mem{Base: codes, Disp: s.width * i / 2}, v)
		s.VPSLLQ(operand.U8(28), v, high)
		s.VPORQ(high, v, v)
		s.VPERMPS(values, v, v)
		s.VMOVUPS(v, s.at(x, i))
	}
}

// shift4 shifts each of 8 copies of 4 bytes by another code.
func (s quant) shift4(x, codes reg.GPVirtual, scale reg.VecVirtual) {
	s.eachShifted4(codes, scale, func(i int, v reg.VecVirtual) { s.VMOVUPS(v, s.at(x, i)) })
}

func (s quant) eachShifted4(codes reg.GPVirtual, scale reg.VecVirtual, do func(i int, v reg.VecVirtual)) {
	shifts := s.held(s.words32("shifts4", 0, 4, 8, 12, 16, 20, 24, 28))
	mask, middle := s.held(s.words(15)), s.held(s.words(8))
	for i := range s.values() {
		v := s.vec()
		s.VPBROADCASTD(operand.Mem{Base: codes, Disp: s.width * i / 2}, v)
		s.VPSRLVD(shifts, v, v)
		s.and(mask, v)
		s.VPSUBD(middle, v, v)
		s.VCVTDQ2PS(v, v)
		s.VMULPS(scale, v, v)
		do(i, v)
	}
}

func (s quant) emitAnyZero4() {
	s.quantFunction("anyZero4", "func(codes []byte) (zero bool)")
	w := wide{isa: s.isa}
	codes, left := w.base("codes"), w.size("codes")
	s.SHRQ(operand.U8(bits.TrailingZeros(quantBlock/2)), left)
	s.blocks4(codes, left, func() {})
	s.finish()
}

// scaleAt returns the float32 at scales in each lane of a register.
func (s quant) scaleAt(scales reg.GPVirtual) reg.VecVirtual {
	v := s.vec()
	s.VBROADCASTSS(operand.Mem{Base: scales}, v)
	return v
}

func (s quant) emitAddCodes4() {
	s.quantFunction("addCodes4", "func(sum []float64, alpha float64, codes []byte, scales []float32) (zero bool)")
	w := wide{isa: s.isa}
	sum, alpha, codes, scales := w.base("sum"), w.scalar64("alpha"), w.base("codes"), w.base("scales")
	add := func(i int, u reg.VecVirtual) { s.addTo(w.wideAt(sum, i), u) }
	var body func()
	if s.width == 16 {
		// Products are taken from two registers of all 16.
		shifts := s.lookUpShifts4()
		body = func() {
			low, high := s.wideValues4(s.scaleAt(scales))
			s.VMULPD(alpha, low, low)
			s.VMULPD(alpha, high, high)
			s.eachLookedUp4(codes, shifts, low, high, add)
		}
	} else {
		body = func() {
			s.eachWide4(codes, s.scaleAt(scales), func(i int, u reg.VecVirtual) {
				s.VMULPD(alpha, u, u)
				add(i, u)
			})
		}
	}
	s.blocks4(codes, w.size("scales"), body, stride{sum, 8 * quantBlock}, stride{scales, 4})
	s.finish()
}

// wideValues4 returns two registers of what all 16 codes mean in float64.
func (s quant) wideValues4(scale reg.VecVirtual) (low, high reg.VecVirtual) {
	values, upper := s.values4(scale), s.YMM()
	low, high = s.vec(), s.vec()
	s.VEXTRACTF64X4(operand.U8(1), values, upper)
	s.VCVTPS2PD(values.AsY(), low)
	s.VCVTPS2PD(upper, high)
	return low, high
}

// lookUpShifts4 are the shifts after which the low 4 bits of each lane of 8 bytes are another code: of the first
// 8 codes, and of the last.
func (s quant) lookUpShifts4() (shifts [2]reg.VecVirtual) {
	for half, name := range []string{"lowShifts4", "highShifts4"} {
		var counts []int32
		for lane := range int32(8) {
			counts = append(counts, 32*int32(half)+4*lane, 0)
		}
		shifts[half] = s.held(s.words32(name, counts...))
	}
	return shifts
}

// eachLookedUp4 calls do for each register of what low and high have for the codes: a look-up sees the low 4 bits
// of a lane.
func (s quant) eachLookedUp4(codes reg.GPVirtual, shifts [2]reg.VecVirtual, low, high reg.VecVirtual, do func(i int, u reg.VecVirtual)) {
	for i := range s.values() {
		v := s.vec()
		s.VPBROADCASTQ(operand.Mem{Base: codes, Disp: s.width * i / 2}, v)
		for half, shift := range shifts {
			u := s.vec()
			s.VPSRLVQ(shift, v, u)
			s.VPERMI2PD(high, low, u)
			do(2*i+half, u)
		}
	}
}

// eachWide4 is eachShifted4 with values in float64.
func (s quant) eachWide4(codes reg.GPVirtual, scale reg.VecVirtual, do func(i int, u reg.VecVirtual)) {
	s.eachShifted4(codes, scale, func(i int, v reg.VecVirtual) {
		upper, low, high := s.XMM(), s.vec(), s.vec()
		s.VEXTRACTF128(operand.U8(1), v, upper)
		s.VCVTPS2PD(v.AsX(), low)
		s.VCVTPS2PD(upper, high)
		do(2*i, low)
		do(2*i+1, high)
	})
}

func (s quant) emitSquareCodes4() {
	s.quantFunction("squareCodes4", "func(sum *[16]float64, codes []byte, scales []float32) (zero bool)")
	w := wide{isa: s.isa}
	sums, save := w.lanes()
	codes, scales := w.base("codes"), w.base("scales")
	var body func()
	if s.width == 16 {
		shifts := s.lookUpShifts4()
		body = func() {
			low, high := s.wideValues4(s.scaleAt(scales))
			s.VMULPD(low, low, low)
			s.VMULPD(high, high, high)
			s.eachLookedUp4(codes, shifts, low, high, func(i int, u reg.VecVirtual) { s.VADDPD(u, sums[i%len(sums)], sums[i%len(sums)]) })
		}
	} else {
		body = func() {
			s.eachWide4(codes, s.scaleAt(scales), func(i int, u reg.VecVirtual) { s.VFMADD231PD(u, u, sums[i%len(sums)]) })
		}
	}
	s.blocks4(codes, w.size("scales"), body, stride{scales, 4})
	save()
	s.finish()
}

// addTo adds float64 values to those at m.
func (s quant) addTo(m operand.Mem, v reg.VecVirtual) {
	s.VADDPD(m, v, v)
	s.VMOVUPD(v, m)
}
