package optimizer

import (
	"encoding/binary"
	"fmt"
	"io"

	"atoll/tensor"
)

// AdamState is what AdamW remembers between steps. It belongs to one learner
// and never leaves it.
type AdamState struct {
	M, V Moments // first and second moment of each parameter's gradient
	Step int64   // steps taken
}

// NewAdamState returns the state of n parameters before the first step, its moments narrow in BF16.
func NewAdamState(n int, p tensor.Precision) *AdamState {
	return &AdamState{M: NewMoments(n, p), V: NewMoments(n, p)}
}

// AdamStateBytes is the memory that NewAdamState allocates.
func AdamStateBytes(n int, p tensor.Precision) int64 { return 2 * momentBytes(p) * int64(n) }

// The first byte of an encoded state is its version, which also says whose it
// is.
const (
	adamStateVersion = 1
	muonStateVersion = 2
)

// stateHeader is the size of what precedes the moments: version, step, count.
const stateHeader = 1 + 8 + 8

// Reader encodes the state, little-endian: version (1 byte), step (8), number of parameters n (8), M (4n), V (4n). It does so part by part,
// each with the moments of the time when it is read, and the step of now. It takes next to no memory. Nothing may step while it is
// read, between two reads something may.
func (s *AdamState) Reader() io.Reader {
	b := binary.LittleEndian.AppendUint64([]byte{adamStateVersion}, uint64(s.Step))
	return &stateReader{binary.LittleEndian.AppendUint64(b, uint64(s.M.Len())), []Moments{s.M, s.V}}
}

// Load takes in an encoded state of as many parameters, in place. An error in the header changes nothing.
// After one in the moments s is the state before the first step. It refuses moments that no step leaves behind.
func (s *AdamState) Load(r io.Reader) error {
	return load(r, adamStateVersion, stateHeader, s.M, s.V, &s.Step)
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

// checkMoment refuses a moment that is not finite or, as a mean of squares, below 0: one such value
// would spoil a parameter at the next step. kind is 0 for a first moment, 1 for a second one.
func checkMoment(kind, i int, x float32) error {
	if finite(x) && (kind == 0 || x >= 0) {
		return nil
	}
	return fmt.Errorf("%s moment %d is %v: it is damaged, start without it", [...]string{"first", "second"}[kind], i, x)
}

func finite(x float32) bool { return x-x == 0 }
