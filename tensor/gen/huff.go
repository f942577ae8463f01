package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	// huffBits is the longest code in bits, which is what a look-up takes.
	huffBits = 11
	// huffRun is how many symbols fit a register of 64 bits that begins with 7 used ones.
	huffRun = 5
	// huffStreams are decoded at once, four of each of two inputs: each step of a stream waits for
	// the one before, some 9 cycles for a symbol, and 8 keep the processor busy meanwhile.
	huffStreams = 8
)

// emitHuff emits the loops of the Huffman coder, which need BMI2 and nothing of vectors.
func emitHuff(c *build.Context) {
	h := huff{c}
	h.emitEncode()
	h.emitDecode()
}

type huff struct{ *build.Context }

func (h huff) function(name, signature string, doc ...string) {
	h.Function(name)
	h.Attributes(attr.NOSPLIT)
	h.SignatureExpr(signature)
	h.Pragma("noescape")
	h.Doc(doc...)
}

func (h huff) arg(name string) reg.GPVirtual {
	r := h.GP64()
	h.Load(h.Param(name), r)
	return r
}

// emitEncode takes symbols from the end of src on. The codes gather in a register, whose full
// bytes are written after each run.
func (h huff) emitEncode() {
	h.function("huffEncodeBMI2", "func(dst, src *byte, runs int, codes *[256][2]uint32, bits, used uint64) (rest, left uint64, n int)",
		fmt.Sprintf("huffEncodeBMI2 writes the codes of %d*runs bytes up to src, the last first, behind the low used", huffRun),
		"bits, at most 7. It returns what does not fill a byte, and the bytes written; it overwrites up to 8 more. runs must be",
		"positive.")
	dst, src, runs, codes := h.arg("dst"), h.arg("src"), h.arg("runs"), h.arg("codes")
	bits, used := h.arg("bits"), h.arg("used")
	start := h.GP64()
	h.MOVQ(dst, start)
	h.Label("runs")
	for i := range huffRun {
		symbol, code := h.GP64(), h.GP64()
		h.MOVBQZX(operand.Mem{Base: src, Disp: -i}, symbol)
		h.MOVL(operand.Mem{Base: codes, Index: symbol, Scale: 8}, code.As32())
		h.SHLXQ(used, code, code)
		h.ORQ(code, bits)
		h.ADDL(operand.Mem{Base: codes, Index: symbol, Scale: 8, Disp: 4}, used.As32())
	}
	h.MOVQ(bits, operand.Mem{Base: dst})
	whole := h.GP64()
	h.MOVQ(used, whole)
	h.ANDQ(operand.I8(-8), whole)
	h.SHRXQ(whole, bits, bits)
	h.SHRQ(operand.U8(3), whole)
	h.ADDQ(whole, dst)
	h.ANDQ(operand.U8(7), used)
	h.SUBQ(operand.U8(huffRun), src)
	h.DECQ(runs)
	h.JNE(operand.LabelRef("runs"))
	h.SUBQ(start, dst)
	h.Store(bits, h.Return("rest"))
	h.Store(used, h.Return("left"))
	h.Store(dst, h.Return("n"))
	h.RET()
}

// emitDecode keeps the bits of each stream at the top of a register with a one behind them: the
// zeros below it count what was used, as zstd does it. A symbol takes four instructions: index, look-up,
// shift, and a store from the second byte of a register, which only the first four have and which
// no address with one of the last eight goes with. So registers are chosen here: with as many streams
// every one has its task. Two of the four are shifts, which two ports of a processor take: a cycle for a symbol,
// and with the shifts of refilling 1.2. Look-ups of two symbols would have to have more than the 11 bits
// of a code to find two: codes of two int4 values take 6.8 bits in the mean.
func (h huff) emitDecode() {
	h.function("huffDecodeBMI2", "func(dst *byte, quarter, apart int, src *byte, tables *[2][2048]uint16, state *[16]uint64, runs int)",
		fmt.Sprintf("huffDecodeBMI2 decodes %d*runs bytes of each of %d streams: four to dst and every quarter bytes behind it, four", huffRun, huffStreams),
		"likewise to apart bytes behind it. runs must be positive.")
	x, symbol, first, second, quarter, third, tables, toIndex := reg.RAX, reg.AH, reg.RBX, reg.RCX, reg.RDX, reg.RSI, reg.RDI, reg.RBP
	windows := []reg.GPPhysical{reg.R8, reg.R9, reg.R10, reg.R11, reg.R12, reg.R13, reg.R14, reg.R15}
	places := h.AllocLocal(8 * huffStreams) // where each stream was read last
	h.begin(x, third, windows, places)
	h.Load(h.Param("dst"), first)
	h.Load(h.Param("apart"), second)
	h.Load(h.Param("quarter"), quarter)
	h.Load(h.Param("tables"), tables)
	h.ADDQ(first, second)
	h.LEAQ(operand.Mem{Base: quarter, Index: quarter, Scale: 2}, third)
	h.MOVQ(operand.U32(64-huffBits), toIndex)
	var out []operand.Mem
	for _, base := range []reg.Register{first, second} {
		out = append(out, operand.Mem{Base: base}, operand.Mem{Base: base, Index: quarter, Scale: 1},
			operand.Mem{Base: base, Index: quarter, Scale: 2}, operand.Mem{Base: base, Index: third, Scale: 1})
	}
	h.Label("runs")
	for k := range huffRun {
		for i, window := range windows {
			h.SHRXQ(toIndex, window, x)
			h.MOVWLZX(operand.Mem{Base: tables, Index: x, Scale: 2, Disp: i / 4 * (2 << huffBits)}, reg.EAX)
			h.SHLXQ(x, window, window) // by its low 6 bits, the length
			to := out[i]
			to.Disp = k
			h.MOVB(symbol, to)
		}
	}
	h.ADDQ(operand.U8(huffRun), first)
	h.ADDQ(operand.U8(huffRun), second)
	for i, window := range windows {
		h.TZCNTQ(window, x)
		h.MOVQ(x, window)
		h.SHRQ(operand.U8(3), window)
		h.NEGQ(window)
		h.ADDQ(places.Offset(8*i), window)
		h.MOVQ(window, places.Offset(8*i))
		h.MOVQ(operand.Mem{Base: window}, window)
		h.ORQ(operand.U8(1), window)
		h.ANDL(operand.U8(7), reg.EAX)
		h.SHLXQ(x, window, window)
	}
	h.DECQ(h.memory("runs"))
	h.JNE(operand.LabelRef("runs"))
	h.end(x, third, windows, places)
	h.RET()
}

// begin loads the state: windows, and places as addresses.
func (h huff) begin(x, state reg.GPPhysical, windows []reg.GPPhysical, places operand.Mem) {
	h.Load(h.Param("state"), state)
	for i, window := range windows {
		h.MOVQ(operand.Mem{Base: state, Disp: 8 * (huffStreams + i)}, x)
		h.ADDQ(h.memory("src"), x)
		h.MOVQ(x, places.Offset(8*i))
		h.MOVQ(operand.Mem{Base: state, Disp: 8 * i}, window)
	}
}

// end is the inverse of begin.
func (h huff) end(x, state reg.GPPhysical, windows []reg.GPPhysical, places operand.Mem) {
	h.Load(h.Param("state"), state)
	for i, window := range windows {
		h.MOVQ(places.Offset(8*i), x)
		h.SUBQ(h.memory("src"), x)
		h.MOVQ(x, operand.Mem{Base: state, Disp: 8 * (huffStreams + i)})
		h.MOVQ(window, operand.Mem{Base: state, Disp: 8 * i})
	}
}

// memory is where the caller put a parameter.
func (h huff) memory(name string) operand.Mem {
	p, err := h.Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return p.Addr
}
