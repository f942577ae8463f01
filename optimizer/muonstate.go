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
	M    []float32 // momentum or first moment of each parameter's gradient
	V    []float32 // second moments of AdamW's parameters, block after block
	Step int64     // steps taken
}

// NewMuonState returns the state of the blocks before the first step.
func NewMuonState(blocks []Block) *MuonState {
	all, second := moments(blocks)
	return &MuonState{M: tensor.Floats(all), V: tensor.Floats(second)}
}

// MuonStateBytes is the memory that NewMuonState allocates.
func MuonStateBytes(blocks []Block) int64 {
	all, second := moments(blocks)
	return 4 * int64(all+second)
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
	return len(s.M) == all && len(s.V) == second
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
		panic(fmt.Sprintf("optimizer: %d parameters in blocks of %d, %d gradients, moments of %d and %d", params, end, grads, len(s.M), len(s.V)))
	}
}

// muonHeader is the size of what precedes the moments: version, step, two counts.
const muonHeader = stateHeader + 8

// MarshalBinary encodes the state, little-endian: version (1 byte), step (8),
// number of parameters n (8), of second moments k (8), M (4n), V (4k). It
// returns no error.
func (s *MuonState) MarshalBinary() ([]byte, error) {
	b := make([]byte, muonHeader+4*len(s.M)+4*len(s.V))
	_, err := io.ReadFull(s.Reader(), b)
	return b, err
}

// Reader is as that of AdamState.
func (s *MuonState) Reader() io.Reader {
	b := binary.LittleEndian.AppendUint64([]byte{muonStateVersion}, uint64(s.Step))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.M)))
	return &stateReader{binary.LittleEndian.AppendUint64(b, uint64(len(s.V))), [][]float32{s.M, s.V}}
}

// Load is as that of AdamState, for the same blocks.
func (s *MuonState) Load(r io.Reader) error {
	return load(r, muonStateVersion, muonHeader, s.M, s.V, &s.Step)
}

// UnmarshalBinary replaces s by the state that b encodes. It leaves s alone and
// returns an error if b is of another optimizer, version or length, or holds a
// value that no step leaves behind.
func (s *MuonState) UnmarshalBinary(b []byte) error {
	next, err := decodeMuon(b)
	if err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	*s = next
	return nil
}

func decodeMuon(b []byte) (s MuonState, err error) {
	if err := checkHeader(b, muonHeader, muonStateVersion); err != nil {
		return s, err
	}
	if s.Step, err = stateStep(b); err != nil {
		return s, err
	}
	n, k, held := binary.LittleEndian.Uint64(b[9:]), binary.LittleEndian.Uint64(b[17:]), uint64(len(b)-muonHeader)
	if k > n || n > held || 4*(n+k) != held {
		return s, fmt.Errorf("%d bytes for %d first and %d second moments: it is damaged, start without it", held, n, k)
	}
	s.M, s.V = floats(b[muonHeader:][:4*n]), floats(b[muonHeader+4*n:])
	return s, checkMoments(s.M, s.V)
}
