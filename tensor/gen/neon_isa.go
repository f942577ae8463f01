package main

import (
	"fmt"
	"math"
)

// encoding is an instruction that the Go assembler does not know: its word with all
// registers 0, and its text for a disassembler to agree with.
type encoding struct {
	word uint32
	text string
}

var encodings = map[string]encoding{
	"fadd":    {0x4e20d400, "fadd v%d.4s, v%d.4s, v%d.4s"},
	"fsub":    {0x4ea0d400, "fsub v%d.4s, v%d.4s, v%d.4s"},
	"fmul":    {0x6e20dc00, "fmul v%d.4s, v%d.4s, v%d.4s"},
	"fdiv":    {0x6e20fc00, "fdiv v%d.4s, v%d.4s, v%d.4s"},
	"fsqrt":   {0x6ea1f800, "fsqrt v%d.4s, v%d.4s"},
	"fneg":    {0x6ea0f800, "fneg v%d.4s, v%d.4s"},
	"fcmgt":   {0x6ea0e400, "fcmgt v%d.4s, v%d.4s, v%d.4s"}, // all bits set where n > m
	"facgt":   {0x6ea0ec00, "facgt v%d.4s, v%d.4s, v%d.4s"}, // where |n| > |m|
	"bic":     {0x4e601c00, "bic v%d.16b, v%d.16b, v%d.16b"},
	"fadd.2d": {0x4e60d400, "fadd v%d.2d, v%d.2d, v%d.2d"},
	"fsub.2d": {0x4ee0d400, "fsub v%d.2d, v%d.2d, v%d.2d"},
	"fmul.2d": {0x6e60dc00, "fmul v%d.2d, v%d.2d, v%d.2d"},
	"fmin.2d": {0x4ee0f400, "fmin v%d.2d, v%d.2d, v%d.2d"}, // a NaN stays one
	"fmax.2d": {0x4e60f400, "fmax v%d.2d, v%d.2d, v%d.2d"},
	"fcvtn":   {0x0e616800, "fcvtn v%d.2s, v%d.2d"},  // float32 of two, into the lower half
	"fcvtn2":  {0x4e616800, "fcvtn2 v%d.4s, v%d.2d"}, // into the upper half
	"fcvtl":   {0x0e617800, "fcvtl v%d.2d, v%d.2s"},  // float64 of the lower two values
	"fcvtl2":  {0x4e617800, "fcvtl2 v%d.2d, v%d.4s"}, // of the upper two
}

// do emits one of the encodings: from n, and m if the instruction has one, into d.
func (s *neon) do(name string, d, n vector, m ...vector) {
	e, word := encodings[name], encodings[name].word|uint32(n)<<5|uint32(d)
	args := []any{int(d), int(n)}
	for _, v := range m {
		word |= uint32(v) << 16
		args = append(args, int(v))
	}
	s.word(word, fmt.Sprintf(e.text, args...))
}

// multiplyAdd emits d += n * m[lane], rounded once.
func (s *neon) multiplyAdd(d, n, m vector, lane int) {
	word := 0x4f801000 | uint32(lane&1)<<21 | uint32(lane>>1)<<11 | uint32(m)<<16 | uint32(n)<<5 | uint32(d)
	s.word(word, fmt.Sprintf("fmla v%d.4s, v%d.4s, v%d.s[%d]", d, n, m, lane))
}

func (s *neon) word(word uint32, text string) { s.op("WORD", "$%#08x // %s", word, text) }

// zero clears v.
func (s *neon) zero(v vector) { s.op("VEOR", "%[1]s, %[1]s, %[1]s", v.bytes()) }

// replace sets v to other where the lanes of where are set.
func (s *neon) replace(v, other, where vector) {
	s.op("VBIT", "%s, %s, %s", where.bytes(), other.bytes(), v.bytes())
}

// load reads a register, offset bytes behind base.
func (s *neon) load(base general, offset int) vector {
	v := s.vec()
	s.op("FMOVQ", "%d(%s), %s", offset, base, v)
	return v
}

// save writes a register.
func (s *neon) save(v vector, base general, offset int) {
	s.op("FMOVQ", "%s, %d(%s)", v, offset, base)
}

// constants returns values in all lanes of a register each, from a table in read-only
// memory.
func (s *neon) constants(table string, values ...float64) []vector {
	at := s.reg()
	s.op("MOVD", "$%s<>(SB), %s", table, at)
	return s.spread(at, len(values))
}

// spread returns n consecutive values in all lanes of a register each. It moves at.
func (s *neon) spread(at general, n int) []vector {
	v := s.vecs(n)
	for i := range v {
		s.op("VLD1R.P", "4(%s), [%s]", at, v[i].quad())
	}
	return v
}

// table emits the memory that constants reads.
func (s *neon) table(name string, values ...float64) {
	s.line("")
	for i, x := range values {
		s.line("DATA %s<>+%d(SB)/4, $%#08x // %v", name, 4*i, math.Float32bits(float32(x)), x)
	}
	s.line("GLOBL %s<>(SB), RODATA|NOPTR, $%d", name, 4*len(values))
}

// loop emits body for each step values of n, which ends as what is left, and moves the
// bases along.
func (s *neon) loop(label string, step int, n general, bases []general, body func()) {
	done := label + "done"
	s.op("CMP", "$%d, %s", step, n)
	s.op("BLT", "%s", done)
	s.label(label)
	s.scope(body)
	for _, base := range bases {
		s.op("ADD", "$%d, %s", 4*step, base)
	}
	s.op("SUB", "$%d, %s", step, n)
	s.op("CMP", "$%d, %s", step, n)
	s.op("BGE", "%s", label)
	s.label(done)
}

// blocks emits body for the parts of all full blocks of n values; at is the part's place
// behind the bases in bytes.
func (s *neon) blocks(n general, bases []general, body func(part, at int)) {
	s.loop("blocks", block, n, bases, func() {
		for part := range block / quad {
			s.scope(func() { body(part, 4*quad*part) })
		}
	})
}

// quads emits body for all full registers of n values: first those of full blocks, which
// saves steps of the loop.
func (s *neon) quads(n general, bases []general, body func(at int)) {
	s.blocks(n, bases, func(_, at int) { body(at) })
	s.loop("quads", quad, n, bases, func() { body(0) })
}
