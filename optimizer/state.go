package optimizer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// AdamState is what AdamW remembers between steps. It belongs to one learner
// and never leaves it.
type AdamState struct {
	M, V []float32 // first and second moment of each parameter's gradient
	Step int64     // steps taken
}

// NewAdamState returns the state of n parameters before the first step.
func NewAdamState(n int) *AdamState {
	return &AdamState{M: make([]float32, n), V: make([]float32, n)}
}

// stateVersion is the first byte of an encoded state.
const stateVersion = 1

// stateHeader is the size of what precedes the moments: version, step, count.
const stateHeader = 1 + 8 + 8

// MarshalBinary encodes the state, little-endian: version (1 byte), step (8),
// number of parameters n (8), M (4n), V (4n). It returns no error.
func (s *AdamState) MarshalBinary() ([]byte, error) {
	b := make([]byte, 0, stateHeader+4*len(s.M)+4*len(s.V))
	b = append(b, stateVersion)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Step))
	b = binary.LittleEndian.AppendUint64(b, uint64(len(s.M)))
	b = appendFloats(b, s.M)
	return appendFloats(b, s.V), nil
}

// UnmarshalBinary replaces s by the state that b encodes. It leaves s alone and
// returns an error if b is of another version or length, or holds a value that
// no step leaves behind.
func (s *AdamState) UnmarshalBinary(b []byte) error {
	n, err := stateCount(b)
	if err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	step := int64(binary.LittleEndian.Uint64(b[1:]))
	if step < 0 {
		return fmt.Errorf("decode optimizer state: step is %d: the file is damaged, start without it", step)
	}
	moments := b[stateHeader:]
	next := AdamState{M: floats(moments[:4*n]), V: floats(moments[4*n:]), Step: step}
	if err := next.check(); err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	*s = next
	return nil
}

// stateCount returns the number of parameters, which the length of b confirms.
func stateCount(b []byte) (int, error) {
	if len(b) < stateHeader {
		return 0, fmt.Errorf("%d bytes, at least %d expected: it was cut short, start without it", len(b), stateHeader)
	}
	if b[0] != stateVersion {
		return 0, fmt.Errorf("version %d, this program reads %d: start without it, or use the version that wrote it", b[0], stateVersion)
	}
	n, held := binary.LittleEndian.Uint64(b[9:]), len(b)-stateHeader
	if held%8 != 0 || n != uint64(held/8) {
		return 0, fmt.Errorf("%d bytes for %d parameters of 8 bytes: it is damaged, start without it", held, n)
	}
	return int(n), nil
}

// check names the first moment that is not finite or, as a mean of squares,
// below 0: one such value would spoil a parameter at the next step.
func (s *AdamState) check() error {
	for i, m := range s.M {
		if !finite(m) {
			return fmt.Errorf("first moment %d is %v: it is damaged, start without it", i, m)
		}
	}
	for i, v := range s.V {
		if !finite(v) || v < 0 {
			return fmt.Errorf("second moment %d is %v: it is damaged, start without it", i, v)
		}
	}
	return nil
}

func finite(x float32) bool { return x-x == 0 }

func appendFloats(b []byte, values []float32) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func floats(b []byte) []float32 {
	values := make([]float32, len(b)/4)
	for i := range values {
		values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return values
}
