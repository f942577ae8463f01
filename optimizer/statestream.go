package optimizer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// stateReader encodes a state as it is read, so that no second copy of it is in memory: what is read
// shows the moments of that time. It may be read part by part between steps.
type stateReader struct {
	head    []byte
	moments []Moments
}

// Read implements io.Reader.
func (r *stateReader) Read(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if len(r.head) == 0 {
		r.head, err = r.next(len(b) / 4)
	}
	n = copy(b, r.head)
	r.head = r.head[n:]
	return n, err
}

// readFloats is how many values are encoded at a time: a buffer of 64 KiB.
const readFloats = 16 << 10

// next encodes the next values, so many if there are, one at least.
func (r *stateReader) next(most int) ([]byte, error) {
	for len(r.moments) > 0 && r.moments[0].Len() == 0 {
		r.moments = r.moments[1:]
	}
	if len(r.moments) == 0 {
		return nil, io.EOF
	}
	all := r.moments[0].Len()
	n := min(max(most, 1), readFloats, all)
	part := r.moments[0].part(0, n)
	r.moments[0] = r.moments[0].part(n, all)
	return part.appendTo(make([]byte, 0, 4*n)), nil
}

// load takes in a state in place of moments and step, part by part: of a version, with a header of so many bytes. An error in
// the header changes nothing. After one in the moments they are 0 and so is step, as before the first step.
func load(r io.Reader, version byte, header int, first, second Moments, step *int64) error {
	head := make([]byte, header)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("read optimizer state: %w", err)
	}
	steps, err := openState(head[:n], version, header, first.Len(), second.Len())
	if err != nil {
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	if err := readMoments(r, first, second); err != nil {
		first.clear()
		second.clear()
		*step = 0
		return fmt.Errorf("decode optimizer state: %w", err)
	}
	*step = steps
	return nil
}

// openState checks the header of a state of so many first and second moments, and returns the steps that it has seen.
func openState(head []byte, version byte, header, first, second int) (int64, error) {
	if err := checkHeader(head, header, version); err != nil {
		return 0, err
	}
	for i, want := range []int{first, second} {
		if at := 9 + 8*i; at < header && binary.LittleEndian.Uint64(head[at:]) != uint64(want) {
			return 0, fmt.Errorf("it has %d moments where the model has %d: it belongs to another run, start without it", binary.LittleEndian.Uint64(head[at:]), want)
		}
	}
	return stateStep(head)
}

// readMoments fills moments from r, which must end after them. An error leaves part of them changed.
func readMoments(r io.Reader, first, second Moments) error {
	b, values := make([]byte, 4*readFloats), make([]float32, readFloats)
	for i, moments := range []Moments{first, second} {
		for at := 0; at < moments.Len(); at += readFloats {
			part := values[:min(readFloats, moments.Len()-at)]
			if _, err := io.ReadFull(r, b[:4*len(part)]); err != nil {
				return fmt.Errorf("it ends early: it is damaged, start without it: %w", err)
			}
			for j := range part {
				part[j] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*j:]))
				if err := checkMoment(i, at+j, part[j]); err != nil {
					return err
				}
			}
			moments.set(at, part)
		}
	}
	if n, err := io.ReadFull(r, b[:1]); n > 0 || !errors.Is(err, io.EOF) {
		return errors.Join(errors.New("it goes on after its moments: it is damaged, start without it"), err)
	}
	return nil
}
