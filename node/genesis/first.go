package genesis

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"atoll/gossip/wire"
)

// Given initial values travel in chunks of wire.ChunkSize bytes, little-endian float32 in the
// order of the slab. The digests of all chunks, one after the other, are the list. It is cut into
// chunks too, and Genesis.First has their digests. So a genesis stays small, and each chunk can
// be checked by itself.

// maxFirst bounds the chunks of the list: 65536 chunks of values, 16 GiB, more than the snapshot of a
// run may have.
const maxFirst = 8

// chunkValues is how many values a chunk has, except the last.
const chunkValues = wire.ChunkSize / 4

// First is what is known of the chunks of given values.
type First struct {
	Values int           // in all
	Chunks []wire.Digest // of values
	List   [][]byte      // chunks of the list
}

// CutFirst lists the chunks of initial values.
func CutFirst(values []float32) First {
	f := First{Values: len(values)}
	var list []byte
	for at := 0; at < len(values); at += chunkValues {
		d := wire.Sum(EncodeValues(values[at:min(at+chunkValues, len(values))]))
		f.Chunks = append(f.Chunks, d)
		list = append(list, d[:]...)
	}
	for at := 0; at < len(list); at += wire.ChunkSize {
		f.List = append(f.List, list[at:min(at+wire.ChunkSize, len(list))])
	}
	return f
}

// Digests are what Genesis.First has of it.
func (f First) Digests() (digests []string) {
	for _, b := range f.List {
		d := wire.Sum(b)
		digests = append(digests, hex.EncodeToString(d[:]))
	}
	return digests
}

// EncodeValues are the bytes of values as a chunk has them.
func EncodeValues(values []float32) []byte {
	b := make([]byte, 0, 4*len(values))
	for _, x := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// FirstDigests are the digests of the chunks of the list.
func (g Genesis) FirstDigests() (digests []wire.Digest) {
	for _, text := range g.First {
		b, _ := hex.DecodeString(text) // Validate has read it
		digests = append(digests, wire.Digest(b))
	}
	return digests
}

// listBytes is how long the list of the chunks of so many values is.
func listBytes(values int) int {
	return len(wire.Digest{}) * ((values + chunkValues - 1) / chunkValues)
}

// ListSize is the number of bytes of a chunk of the list.
func (g Genesis) ListSize(chunk int) int {
	return min(wire.ChunkSize, listBytes(g.Params())-chunk*wire.ChunkSize)
}

// validateFirst makes sure that First are digests.
func (g Genesis) validateFirst() error {
	for _, text := range g.First {
		if !isDigest(text) {
			return fmt.Errorf("genesis: First has %.80q; use digests of %d hex digits, in lower case", text, sha256Hex)
		}
	}
	return nil
}

// validateFirstSize makes sure that the list is as long as that of so many values.
func (g Genesis) validateFirstSize() error {
	if want := (listBytes(g.Params()) + wire.ChunkSize - 1) / wire.ChunkSize; g.Given() && len(g.First) != want {
		return fmt.Errorf("genesis: First has %d digests; the list of the chunks of %d values has %d", len(g.First), g.Params(), want)
	}
	return nil
}

// ReadFirst makes sense of the chunks of the list of so many values.
func ReadFirst(list [][]byte, values int) (First, error) {
	f := First{Values: values, List: list}
	var all []byte
	for _, b := range list {
		all = append(all, b...)
	}
	if want := listBytes(values); len(all) != want {
		return f, fmt.Errorf("the list of the first values has %d bytes; %d values need %d: the genesis is of another model", len(all), values, want)
	}
	for ; len(all) > 0; all = all[len(wire.Digest{}):] {
		f.Chunks = append(f.Chunks, wire.Digest(all[:len(wire.Digest{})]))
	}
	return f, nil
}

// Span is where the values of a chunk are.
func (f First) Span(chunk int) (from, to int) {
	return chunk * chunkValues, min((chunk+1)*chunkValues, f.Values)
}
