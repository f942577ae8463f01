package codec

import "fmt"

// Kind says how a value is represented. Numbers are part of the wire format.
type Kind uint8

const (
	F32  Kind = 1 // float32, lossless
	Int4 Kind = 4 // 4 bits and a scale per block of 256

	// Sparse is the largest 64th of each block of 4096: a sign and one of two magnitudes each.
	Sparse Kind = 5

	// Sparse8 is the largest 8th instead.
	Sparse8 Kind = 6
)

var names = map[Kind]string{F32: "f32", Int4: "int4", Sparse: "sparse", Sparse8: "sparse8"}

// alternatives are the names, for messages that say what to use.
const alternatives = "f32, int4, sparse or sparse8"

// Kinds returns all of them, by number.
func Kinds() []Kind { return []Kind{F32, Int4, Sparse, Sparse8} }

// Parse returns the kind called name: f32, int4, sparse or sparse8.
func Parse(name string) (Kind, error) {
	for _, k := range Kinds() {
		if names[k] == name {
			return k, nil
		}
	}
	return 0, fmt.Errorf("codec %q is unknown: use %s", name, alternatives)
}

// Valid reports whether k is one of the kinds above.
func (k Kind) Valid() bool { return names[k] != "" }

// Partial reports whether only some of the values travel: a caller must give the others to a later Encode.
func (k Kind) Partial() bool { return k == Sparse || k == Sparse8 }

// String is the name that Parse takes.
func (k Kind) String() string {
	if !k.Valid() {
		return fmt.Sprintf("codec(%d)", uint8(k))
	}
	return names[k]
}

// maxStreams is the largest number of streams in a segment of any kind.
const maxStreams = 4

// layout gives the raw length in bytes of each stream in a segment of n values
// and how many streams there are. k must be valid.
func (k Kind) layout(n int) (sizes [maxStreams]int, streams int) {
	blocks := (n + blockLen - 1) / blockLen
	switch k {
	case F32:
		return [maxStreams]int{n, n, n, n}, 4
	case Int4:
		return [maxStreams]int{blocks, blocks, (n + 1) / 2}, 3
	default: // Sparse, Sparse8
		levels, sent := 2*sparseBlocks(n), k.sent(n)
		return [maxStreams]int{levels, levels, sent, sent}, 4
	}
}

// Unit is how many values are coded together: what is read of a payload begins and ends between units.
func (k Kind) Unit() int {
	if k == Sparse || k == Sparse8 {
		return sparseLen
	}
	return blockLen
}
