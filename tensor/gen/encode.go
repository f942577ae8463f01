package main

import (
	"encoding/binary"
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The Go assembler and avo do not know AMX and the conversions of AVX512-BF16. avo gives out their registers as
// for any instruction; then encode replaces them by their bytes, under a comment with what a disassembler says.

// coder turns the operands of an instruction, in the order of the Go assembler, into its bytes and its text.
type coder func(ops []operand.Op) (code []byte, text string)

// Values of the fields of prefixes: how many bytes of the opcode are implied, and which prefix.
const (
	map0F38  = 2
	prefNone = 0
	prefF3   = 2
	prefF2   = 3
)

// coders has each instruction that encode knows.
var coders = map[string]coder{
	"LDTILECFG": func(ops []operand.Op) ([]byte, string) {
		m := ops[0].(operand.Mem)
		base := number(m.Base)
		code := append(vex(0, 0, base, 0, prefNone), 0x49, 0x80|base&7)
		return disp(code, m), "ldtilecfg " + based(m)
	},
	"TILERELEASE": func([]operand.Op) ([]byte, string) {
		return append(vex(0, 0, 0, 0, prefNone), 0x49, 0xc0), "tilerelease"
	},
	"TILEZERO": func(ops []operand.Op) ([]byte, string) {
		t := tileNumber(ops[0])
		return append(vex(0, 0, 0, 0, prefF2), 0x49, 0xc0|t<<3), fmt.Sprintf("tilezero %%tmm%d", t)
	},
	"TILELOADD": func(ops []operand.Op) ([]byte, string) {
		m, t := ops[0].(operand.Mem), tileNumber(ops[1])
		return tileMove(prefF2, m, t), fmt.Sprintf("tileloadd %s,%%tmm%d", based(m), t)
	},
	"TILESTORED": func(ops []operand.Op) ([]byte, string) {
		t, m := tileNumber(ops[0]), ops[1].(operand.Mem)
		return tileMove(prefF3, m, t), fmt.Sprintf("tilestored %%tmm%d,%s", t, based(m))
	},
	"TDPBF16PS": func(ops []operand.Op) ([]byte, string) {
		b, a, c := tileNumber(ops[0]), tileNumber(ops[1]), tileNumber(ops[2])
		return append(vex(0, 0, 0, b, prefF3), 0x5c, 0xc0|c<<3|a), fmt.Sprintf("tdpbf16ps %%tmm%d,%%tmm%d,%%tmm%d", b, a, c)
	},
	"VCVTNE2PS2BF16": func(ops []operand.Op) ([]byte, string) {
		low, high, dst := number(ops[0]), number(ops[1]), number(ops[2])
		return evex(dst, high, low, prefF2, 0x72), fmt.Sprintf("vcvtne2ps2bf16 %%zmm%d,%%zmm%d,%%zmm%d", low, high, dst)
	},
}

// tmm is a tile register as an operand.
func tmm(n int) operand.Op { return operand.U8(n) }

func tileNumber(op operand.Op) byte { return byte(op.(operand.U8)) }

// number is that of the register that avo chose.
func number(op operand.Op) byte { return byte(op.(reg.Physical).PhysicalIndex()) }

// vex is the prefix of three bytes, of 128 bits: the high bits of the register, the index and the base, and
// another register.
func vex(r, x, b, v byte, pref byte) []byte {
	high := func(n byte) byte { return ^n >> 3 & 1 }
	return []byte{0xc4, high(r)<<7 | high(x)<<6 | high(b)<<5 | map0F38, (^v&15)<<3 | pref}
}

// evex is a whole instruction of 512 bits on three registers.
func evex(r, v, b byte, pref, opcode byte) []byte {
	bit := func(n byte, i int) byte { return ^n >> i & 1 }
	return []byte{
		0x62,
		bit(r, 3)<<7 | bit(b, 4)<<6 | bit(b, 3)<<5 | bit(r, 4)<<4 | map0F38,
		(^v&15)<<3 | 1<<2 | pref,
		2<<5 | bit(v, 4)<<3, // 512 bits
		opcode, 0xc0 | r&7<<3 | b&7,
	}
}

// tileMove loads or stores a tile. Addresses have a displacement of 4 bytes, which any base register may have.
func tileMove(pref byte, m operand.Mem, t byte) []byte {
	base, index := number(m.Base), number(m.Index)
	code := append(vex(t, index, base, 0, pref), 0x4b, 0x80|t<<3|4, index&7<<3|base&7)
	return disp(code, m)
}

func disp(code []byte, m operand.Mem) []byte {
	return binary.LittleEndian.AppendUint32(code, uint32(m.Disp))
}

// generals are the names of the integer registers.
var generals = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// based is an address as a disassembler writes it.
func based(m operand.Mem) string {
	text := fmt.Sprintf("%#x(%%%s", m.Disp, generals[number(m.Base)])
	if m.Index != nil {
		text += fmt.Sprintf(",%%%s,1", generals[number(m.Index)])
	}
	return text + ")"
}

// raw adds an instruction that encode knows. It reads all operands but the last, and writes that one if writes.
func raw(c *build.Context, opcode string, writes bool, ops ...operand.Op) {
	i := &ir.Instruction{Opcode: opcode, Operands: ops, Inputs: ops}
	if writes {
		last := len(ops) - 1
		i.Inputs, i.Outputs = ops[:last], ops[last:]
	}
	c.Instruction(i)
}

// encode replaces what the Go assembler does not know.
func encode(file *ir.File) {
	for _, f := range file.Functions() {
		var nodes []ir.Node
		for _, n := range f.Nodes {
			i, ok := n.(*ir.Instruction)
			if !ok || coders[i.Opcode] == nil {
				nodes = append(nodes, n)
				continue
			}
			code, text := coders[i.Opcode](i.Operands)
			nodes = append(nodes, ir.NewComment(text))
			for _, b := range code {
				nodes = append(nodes, &ir.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(b)}})
			}
		}
		f.Nodes = nodes
	}
}
