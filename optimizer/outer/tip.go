package outer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/zeebo/blake3"

	"atoll/tensor"
)

// Tip is the state of a fragment after a closed round. It is never modified once made;
// tips of successive rounds may share memory.
type Tip struct {
	Round       uint32       // the last closed round, 0 at genesis
	Global      []float32    // A [Len]
	Momentum    []float32    // outer momentum of progress [Len]; nil if Params.Mu is 0
	Ref         []float32    // norm reference per tensor, 0 where not yet known
	Tokens      uint64       // T_p: tokens folded so far, as they count
	EndRound    uint32       // E_p: first round at which Tokens reached the budget, 0 before
	Chain       Digest       // c_r: which deltas were folded, in which rounds
	Revoked     []Revoked    // names revoked up to this round, ordered
	Reputations []Reputation // of authors, ordered by them; nil with Params.OwnText
	State       Digest       // h_r: BLAKE3 of Encode, so of all of the above

	globalCheck, check uint32 // checksums of Global, and of all the rest and globalCheck
}

// An encoded tip is, with integers and floats little-endian,
//
//	magic "atollTip"  8 bytes, ends with the version
//	round, end round  uint32 each
//	tokens            uint64
//	chain             32 bytes
//	ref               float32 per tensor
//	global parameters float32 per value
//	momentum          float32 per value, if mu is not 0
//	revoked           32 bytes and a uint32 per name
//	reputations       32 bytes, an int16 and a uint32 per author, and their number as a uint16,
//	                  in a run without OwnText
const (
	tipMagic       = "atollT\x00\x01"
	tipHeadSize    = len(tipMagic) + 4 + 4 + 8 + 32
	revokedSize    = 32 + 4
	reputationSize = 32 + 2 + 4
)

// tipBuffer is the bytes encoded at a time where memory has another order: a multiple of
// what BLAKE3 compresses side by side, and small enough for the cache.
const tipBuffer = 64 << 10

// Genesis returns the tip before the first round: global has the fragment's initial
// values [f.Len] and is kept, not copied.
func Genesis(f Fragment, global []float32, p Params) *Tip {
	return genesis(f, global, make([]float32, momentumLen(f, p)), p)
}

// genesis is Genesis with a momentum of zeros, which the tip shares with others: nothing writes to a tip.
func genesis(f Fragment, global, zeros []float32, p Params) *Tip {
	t := &Tip{Global: global, Ref: make([]float32, len(f.Tensors))}
	if n := momentumLen(f, p); n > 0 {
		t.Momentum = zeros[:n]
	}
	if !p.OwnText {
		t.Reputations = []Reputation{}
	}
	return t.seal()
}

// momentumLen is how many values the momentum of a fragment's tip has.
func momentumLen(f Fragment, p Params) int {
	if p.Mu == 0 {
		return 0
	}
	return f.Len
}

// Genesis returns the tips of all fragments before the first round, at the initial
// parameters [all tensors of the plan]. Tips keep copies of them. They stay for as long as the union window, and so
// one momentum serves all.
func (plan Plan) Genesis(params []float32, p Params) []*Tip {
	tips, longest := make([]*Tip, len(plan)), 0
	for _, f := range plan {
		longest = max(longest, momentumLen(f, p))
	}
	zeros := make([]float32, longest)
	for i, f := range plan {
		global := make([]float32, f.Len)
		f.Gather(params, global)
		tips[i] = genesis(f, global, zeros, p)
	}
	return tips
}

// Takes tells whether the fragment still folds deltas in a round after the tip's: it does up
// to the round after EndRound.
func (t *Tip) Takes(round uint32) bool {
	return t.EndRound == 0 || round <= t.EndRound+1
}

// ChainDigest is the chain digest after a round that folded ids, in ascending order, on a
// chain that ended with prev. The chain of genesis is the zero digest.
func ChainDigest(prev Digest, ids []ID) Digest {
	b := make([]byte, 0, len(prev)*(1+len(ids)))
	b = append(b, prev[:]...)
	for i := range ids {
		b = append(b, ids[i][:]...)
	}
	return blake3.Sum256(b) // a hasher would take kilobytes more
}

// seal computes the state digest and the checksums. The values are summed first: what changes before
// they are hashed too is found by Sound.
func (t *Tip) seal() *Tip {
	t.globalCheck = checksum(t.Global)
	values := t.restChecksum()
	h := blake3.New()
	t.writeTo(h)
	t.State = Digest(h.Sum(nil))
	t.check = crc32.Update(values, castagnoli, t.State[:])
	return t
}

// Sound says whether the tip still is what it was sealed as: memory that flips bits changes it, or its state
// digest, but not the checksums of both. It reads all values, some eight times as fast as it could hash them.
func (t *Tip) Sound() bool {
	return t.GlobalSound() && crc32.Update(t.restChecksum(), castagnoli, t.State[:]) == t.check
}

// GlobalSound says the same of the global parameters alone, which is all that a learner takes of a tip.
func (t *Tip) GlobalSound() bool { return checksum(t.Global) == t.globalCheck }

// anchored is what a learner takes of a tip. Its momentum may go as soon as a newer tip is there, though a learner that is
// in the middle of a long step, or saves, still stands on the global parameters.
func (t *Tip) anchored() *Tip {
	return &Tip{Round: t.Round, Global: t.Global, Tokens: t.Tokens, globalCheck: t.globalCheck}
}

// castagnoli is the polynomial for which processors have an instruction. In a tip of up to 2^31 bits it finds
// every one, two or three flipped bits, and all within 32 in a row. It misses one in 2^32 of the others
// (Koopman, 32-Bit Cyclic Redundancy Codes for Internet Applications, 2002).
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is a CRC of v.
func checksum(v []float32) uint32 {
	h := crc32.New(castagnoli)
	writeValues(h, v)
	return h.Sum32()
}

// restChecksum is a CRC of everything except the global parameters and State. In place of the global parameters it has globalCheck.
func (t *Tip) restChecksum() uint32 {
	h := crc32.New(castagnoli)
	t.writeHead(h)
	writeValues(h, t.Ref)
	h.Write(binary.LittleEndian.AppendUint32(nil, t.globalCheck))
	writeValues(h, t.Momentum)
	h.Write(t.tables())
	return h.Sum32()
}

// TipSize is the length of an encoded tip of fragment f in which nobody is revoked or has a reputation.
func TipSize(f Fragment, p Params) int {
	values := len(f.Tensors) + f.Len
	if p.Mu != 0 {
		values += f.Len
	}
	size := tipHeadSize + 4*values
	if !p.OwnText {
		size += 2
	}
	return size
}

// Encode returns the tip as bytes, for snapshots and disk. State is their BLAKE3 digest and not
// among them.
func (t *Tip) Encode() []byte {
	var b bytes.Buffer
	b.Grow(t.Size())
	t.writeTo(&b)
	return b.Bytes()
}

// Size is how many bytes Encode returns.
func (t *Tip) Size() int {
	size := tipHeadSize + 4*(len(t.Ref)+len(t.Global)+len(t.Momentum)) + revokedSize*len(t.Revoked) + reputationSize*len(t.Reputations)
	if t.Reputations != nil {
		size += 2
	}
	return size
}

// WriteTo implements io.WriterTo: it writes what Encode returns and copies no values, which are most of a node's memory.
func (t *Tip) WriteTo(w io.Writer) (int64, error) {
	c := counter{w: w}
	t.writeTo(&c)
	return c.n, c.err
}

// counter counts what is written, up to the first error.
type counter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *counter) Write(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	var n int
	n, c.err = c.w.Write(b)
	c.n += int64(n)
	return n, c.err
}

// writeTo writes the encoding to what needs no look at its errors: a hash, a buffer, a counter.
func (t *Tip) writeTo(w io.Writer) {
	t.writeHead(w)
	for _, v := range [][]float32{t.Ref, t.Global, t.Momentum} {
		writeValues(w, v)
	}
	w.Write(t.tables())
}

// tables are the names and reputations, encoded.
func (t *Tip) tables() []byte {
	b := make([]byte, 0, revokedSize*len(t.Revoked)+reputationSize*len(t.Reputations)+2)
	for _, r := range t.Revoked {
		b = binary.LittleEndian.AppendUint32(append(b, r.Name[:]...), r.Round)
	}
	if t.Reputations == nil {
		return b
	}
	for _, r := range t.Reputations {
		b = binary.LittleEndian.AppendUint16(append(b, r.Author[:]...), uint16(r.Score))
		b = binary.LittleEndian.AppendUint32(b, r.Round)
	}
	return binary.LittleEndian.AppendUint16(b, uint16(len(t.Reputations)))
}

func (t *Tip) writeHead(w io.Writer) {
	b := append(make([]byte, 0, tipHeadSize), tipMagic...)
	b = binary.LittleEndian.AppendUint32(b, t.Round)
	b = binary.LittleEndian.AppendUint32(b, t.EndRound)
	b = binary.LittleEndian.AppendUint64(b, t.Tokens)
	w.Write(append(b, t.Chain[:]...))
}

// writeValues writes v as an encoded tip has it.
func writeValues(w io.Writer, v []float32) {
	if littleEndian {
		w.Write(tensor.Bytes(v)) // without a copy: tips are hashed at every fold and every draft
	} else {
		writeFloats(w, v)
	}
}

// littleEndian says that floats lie in memory as an encoded tip has them.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// writeFloats is what writing the memory itself is checked against.
func writeFloats(w io.Writer, v []float32) {
	b := make([]byte, 0, tipBuffer)
	for _, x := range v {
		if len(b)+4 > cap(b) {
			w.Write(b)
			b = b[:0]
		}
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	w.Write(b)
}

// DecodeTip reads a tip of fragment f from exactly the bytes of Encode. It computes State and
// does not check it: compare it with the digest that was promised.
func DecodeTip(b []byte, f Fragment, p Params) (*Tip, error) {
	if !tipFits(b, f, p) {
		return nil, fmt.Errorf("decode tip: %d bytes; a tip of this fragment has %d, so it is of another run or cut off", len(b), TipSize(f, p))
	}
	if string(b[:len(tipMagic)]) != tipMagic {
		return nil, fmt.Errorf("decode tip: begins with %x, not %x: not a tip, or of another version", b[:len(tipMagic)], tipMagic)
	}
	t, b := decodeTipHead(b)
	var err error
	if t.Ref, b, err = decodeFloats(b, len(f.Tensors), "norm reference"); err != nil {
		return nil, err
	}
	if t.Global, b, err = decodeFloats(b, f.Len, "global parameters"); err != nil {
		return nil, err
	}
	if p.Mu != 0 {
		if t.Momentum, b, err = decodeFloats(b, f.Len, "momentum"); err != nil {
			return nil, err
		}
	}
	if b, err = t.decodeReputations(b, p); err != nil {
		return nil, err
	}
	if t.Revoked, err = decodeRevoked(b, t.Round); err != nil {
		return nil, err
	}
	return t.seal(), nil
}

// tipFits says whether an encoded tip has the length of one of fragment f with as many names and reputations
// as it says that it has.
func tipFits(b []byte, f Fragment, p Params) bool {
	tables := len(b) - TipSize(f, p)
	if tables < 0 {
		return false
	}
	if !p.OwnText {
		n := reputationsIn(b)
		if tables -= n * reputationSize; n > MaxReputations || tables < 0 {
			return false
		}
	}
	return tables%revokedSize == 0 && tables/revokedSize <= MaxRevoked
}

// reputationsIn is how many reputations an encoded tip says that it has.
func reputationsIn(b []byte) int { return int(binary.LittleEndian.Uint16(b[len(b)-2:])) }

// decodeReputations takes the reputations off the end of b, which the caller has found long enough.
func (t *Tip) decodeReputations(b []byte, p Params) (rest []byte, err error) {
	if p.OwnText {
		return b, nil
	}
	n := reputationsIn(b)
	start := len(b) - 2 - n*reputationSize
	t.Reputations = make([]Reputation, 0, n)
	for at := start; at < len(b)-2; at += reputationSize {
		r := Reputation{
			Author: Author(b[at : at+32]), Score: int16(binary.LittleEndian.Uint16(b[at+32:])), Round: binary.LittleEndian.Uint32(b[at+34:]),
		}
		if n := len(t.Reputations); n > 0 && CompareAuthors(t.Reputations[n-1].Author, r.Author) >= 0 {
			return nil, fmt.Errorf("decode tip: reputation %d does not follow the one before", n)
		}
		if r.Round < 1 || r.Round > t.Round {
			return nil, fmt.Errorf("decode tip: reputation %d has round %d in a tip of round %d", len(t.Reputations), r.Round, t.Round)
		}
		t.Reputations = append(t.Reputations, r)
	}
	return b[:start], nil
}

// decodeRevoked takes a table of names, whose length the caller has found to be whole.
func decodeRevoked(b []byte, round uint32) (table []Revoked, err error) {
	for ; len(b) > 0; b = b[revokedSize:] {
		r := Revoked{Name: [32]byte(b[:32]), Round: binary.LittleEndian.Uint32(b[32:])}
		if n := len(table); n > 0 && CompareIDs(table[n-1].Name, r.Name) >= 0 {
			return nil, fmt.Errorf("decode tip: revoked name %d does not follow the one before", n)
		}
		if r.Round < 1 || r.Round > round {
			return nil, fmt.Errorf("decode tip: revoked name %d has round %d in a tip of round %d", len(table), r.Round, round)
		}
		table = append(table, r)
	}
	return table, nil
}

func decodeTipHead(b []byte) (t *Tip, rest []byte) {
	b = b[len(tipMagic):]
	t = &Tip{
		Round:    binary.LittleEndian.Uint32(b),
		EndRound: binary.LittleEndian.Uint32(b[4:]),
		Tokens:   binary.LittleEndian.Uint64(b[8:]),
		Chain:    Digest(b[16:48]),
	}
	return t, b[48:]
}

// decodeFloats takes n finite values off b, which the caller has found long enough.
func decodeFloats(b []byte, n int, what string) (v []float32, rest []byte, err error) {
	v = make([]float32, n)
	for i := range v {
		bits := binary.LittleEndian.Uint32(b[4*i:])
		if bits>>23&0xff == 0xff {
			return nil, nil, fmt.Errorf("decode tip: %s value %d is not finite", what, i)
		}
		v[i] = math.Float32frombits(bits)
	}
	return v, b[4*n:], nil
}
