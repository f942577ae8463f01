package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func TestFrameRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		frames := rapid.SliceOf(rapid.SliceOf(rapid.Byte())).Draw(t, "frames")
		var stream bytes.Buffer
		for _, f := range frames {
			if err := WriteFrame(&stream, f, len(f)); err != nil {
				t.Fatal(err)
			}
		}
		r := iotest.OneByteReader(&stream)
		for _, f := range frames {
			got, err := ReadFrame(r, len(f))
			if err != nil || !bytes.Equal(got, f) {
				t.Fatalf("%x came back as %x, %v", f, got, err)
			}
		}
		if _, err := ReadFrame(r, 0); !errors.Is(err, io.EOF) {
			t.Fatalf("after the last frame: %v", err)
		}
	})
}

func TestFrameLimits(t *testing.T) {
	wantErr(t, WriteFrame(io.Discard, make([]byte, 6), 5), ErrSize)
	_, err := ReadFrame(bytes.NewReader([]byte{0, 0, 0, 6, 1, 2, 3, 4, 5, 6}), 5)
	wantErr(t, err, ErrSize)
	_, err = ReadFrame(bytes.NewReader([]byte{255, 255, 255, 255}), MaxPayload)
	wantErr(t, err, ErrSize)
}

// A peer that announces the largest payload and sends nothing gets a buffer of
// firstRead bytes.
func TestAnnouncedLengthIsNotAllocated(t *testing.T) {
	r := &silent{head: []byte{0x03, 0xff, 0xff, 0xff}}
	_, err := ReadFrame(r, MaxPayload)
	wantErr(t, err, io.ErrUnexpectedEOF)
	if r.offered > 2*firstRead {
		t.Errorf("a buffer of %d bytes for an empty frame, want about %d", r.offered, firstRead)
	}
}

// silent sends head and ends; it notes the room it was offered after that.
type silent struct {
	head    []byte
	offered int
}

func (r *silent) Read(b []byte) (int, error) {
	if len(r.head) == 0 {
		r.offered = len(b)
		return 0, io.EOF
	}
	n := copy(b, r.head)
	r.head = r.head[n:]
	return n, nil
}

func TestFrameWriteFails(t *testing.T) {
	for _, room := range []int{0, 4} {
		w := &fullWriter{room: room}
		wantErr(t, WriteFrame(w, []byte("body"), 10), io.ErrShortWrite)
	}
}

// fullWriter takes room bytes and fails from there.
type fullWriter struct{ room int }

func (w *fullWriter) Write(b []byte) (int, error) {
	if len(b) > w.room {
		return 0, io.ErrShortWrite
	}
	w.room -= len(b)
	return len(b), nil
}
