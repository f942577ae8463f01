package optimizer

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"

	"atoll/tensor"
)

// AdamState is what AdamW remembers between steps. It belongs to one learner
// and never leaves it.
type AdamState struct {
	M, V []float32 // first and second moment of each parameter's gradient
	Step int64     // steps taken
}

// NewAdamState returns the state of n parameters before the first step.
func NewAdamState(n int) *AdamState {
	return &AdamState{M: tensor.Floats(n), V: tensor.Floats(n)}
}

// The first byte of an encoded state is its version, which also says whose it
// is.
const (
	adamStateVersion = 1
	muonStateVersion = 2
)

// stateHeader is the size of what precedes the moments: version, step, count.
const stateHeader = 1 + 8 + 8

// MarshalBinary encodes the state, little-endian: version (1 byte), step (8),
// number of parameters n (8), M (4n), V (4n). It returns no error.
func (s *AdamState) MarshalBinary() ([]byte, error) {
	b := make([]byte, stateHeader+4*len(s.M)+4*len(s.V))
	_, err := io.ReadFull(s.Reader(), b)
	return b, err
}

// Reader gives what MarshalBinary does part by part, each with the moments of the time when it is read, and the step of
// now. It takes next to no memory. Nothing may step while it is read, between two reads something may.
func (s *AdamState) Reader() io.Reader {
	b := binary.LittleEndian.AppendUint64([]byte{adamStateVersion}, uint64(s.Step))
	return &stateReader{binary.LittleEndian.AppendUint64(b, uint64(len(s.M))), [][]float32{s.M, s.V}}
}

// Load takes in an encoded state of as many parameters, in place. An error in the header changes nothing.
// After one in the moments s is the state before the first step.
func (s *AdamState) Load(r io.Reader) error {
	return load(r, adamStateVersion, stateHeader, s.M, s.V, &s.Step)
}

// UnmarshalBinary replaces s by the state that b encodes. It leaves s alone and
// returns an error if b is of another version or length, or holds a value that
// no step leaves behind.
func (s *AdamState) UnmarshalBinary(b []byte) error {
	n, err := stateCount(b)
	if err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	step, err := stateStep(b)
	if err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	moments := b[stateHeader:]
	next := AdamState{M: floats(moments[:4*n]), V: floats(moments[4*n:]), Step: step}
	if err := checkMoments(next.M, next.V); err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	*s = next
	return nil
}

// stateCount returns the number of parameters, which the length of b confirms.
func stateCount(b []byte) (int, error) {
	if err := checkHeader(b, stateHeader, adamStateVersion); err != nil {
		return 0, err
	}
	n, held := binary.LittleEndian.Uint64(b[9:]), len(b)-stateHeader
	if held%8 != 0 || n != uint64(held/8) {
		return 0, fmt.Errorf("%d bytes for %d parameters of 8 bytes: it is damaged, start without it", held, n)
	}
	return int(n), nil
}

// checkHeader makes sure that b has a header of that length and the version.
func checkHeader(b []byte, length int, version byte) error {
	switch {
	case len(b) > 0 && b[0] != version && stateName(b[0]) != "":
		return fmt.Errorf("it is of %s and this run trains with %s: start without it", stateName(b[0]), stateName(version))
	case len(b) < length:
		return fmt.Errorf("%d bytes, at least %d expected: it was cut short, start without it", len(b), length)
	case b[0] != version:
		return fmt.Errorf("version %d, this program reads %d: start without it, or use the version that wrote it", b[0], version)
	}
	return nil
}

// stateName is whose state a version is, "" where this program knows none.
func stateName(version byte) string {
	switch version {
	case adamStateVersion:
		return NameAdamW
	case muonStateVersion:
		return NameMuon
	}
	return ""
}

// stateStep returns the number of steps, which follows the version.
func stateStep(b []byte) (int64, error) {
	step := int64(binary.LittleEndian.Uint64(b[1:]))
	if step < 0 {
		return 0, fmt.Errorf("step is %d: the file is damaged, start without it", step)
	}
	return step, nil
}

// checkMoments names the first moment that no step leaves behind.
func checkMoments(first, second []float32) error {
	for kind, moments := range [][]float32{first, second} {
		for i, x := range moments {
			if err := checkMoment(kind, i, x); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkMoment refuses a moment that is not finite or, as a mean of squares, below 0: one such value
// would spoil a parameter at the next step. kind is 0 for a first moment, 1 for a second one.
func checkMoment(kind, i int, x float32) error {
	if finite(x) && (kind == 0 || x >= 0) {
		return nil
	}
	return fmt.Errorf("%s moment %d is %v: it is damaged, start without it", [...]string{"first", "second"}[kind], i, x)
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
