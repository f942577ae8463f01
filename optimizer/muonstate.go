package optimizer

import (
	"encoding/binary"
	"fmt"
	"io"

	"atoll/tensor"
)

// MuonState is what Muon remembers between steps: for a hidden matrix its
// momentum, for every other parameter the two moments of AdamW. It belongs to
// one learner and never leaves it.
type MuonState struct {
	M    Moments // momentum or first moment of each parameter's gradient
	V    Moments // second moments of AdamW's parameters, block after block
	Step int64   // steps taken
}

// NewMuonState returns the state of the blocks before the first step, its moments narrow in BF16.
func NewMuonState(blocks []Block, p tensor.Precision) *MuonState {
	all, second := moments(blocks)
	return &MuonState{M: NewMoments(all, p), V: NewMoments(second, p)}
}

// MuonStateBytes is the memory that NewMuonState allocates.
func MuonStateBytes(blocks []Block, p tensor.Precision) int64 {
	all, second := moments(blocks)
	return momentBytes(p) * int64(all+second)
}

// moments returns how many parameters have a first moment and a second one.
func moments(blocks []Block) (all, second int) {
	for _, b := range blocks {
		all += b.Len
		if b.Rows == 0 {
			second += b.Len
		}
	}
	return all, second
}

// Fits reports whether the state is one of the blocks.
func (s *MuonState) Fits(blocks []Block) bool {
	all, second := moments(blocks)
	return s.M.Len() == all && s.V.Len() == second
}

// check panics unless the blocks follow each other, cover the parameters and
// match the state.
func (s *MuonState) check(params, grads int, blocks []Block) {
	end := 0
	for _, b := range blocks {
		if b.Offset != end || b.Rows > 0 && b.Len%b.Rows != 0 {
			panic(fmt.Sprintf("optimizer: block of %d values in %d rows at %d, after one that ends at %d", b.Len, b.Rows, b.Offset, end))
		}
		end += b.Len
	}
	if end != params || grads != params || !s.Fits(blocks) {
		panic(fmt.Sprintf("optimizer: %d parameters in blocks of %d, %d gradients, moments of %d and %d", params, end, grads, s.M.Len(), s.V.Len()))
	}
}

// muonHeader is the size of what precedes the moments: version, step, two counts.
const muonHeader = stateHeader + 8

// Reader is as that of AdamState: version (1 byte), step (8), number of parameters n (8), of second moments k (8), M (4n), V (4k).
func (s *MuonState) Reader() io.Reader {
	b := binary.LittleEndian.AppendUint64([]byte{muonStateVersion}, uint64(s.Step))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.M.Len()))
	return &stateReader{binary.LittleEndian.AppendUint64(b, uint64(s.V.Len())), []Moments{s.M, s.V}}
}

// Load is as that of AdamState, for the same blocks.
func (s *MuonState) Load(r io.Reader) error {
	return load(r, muonStateVersion, muonHeader, s.M, s.V, &s.Step)
}
