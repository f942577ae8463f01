package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// FrameHead is the length of a frame's head: its body's length, big-endian.
const FrameHead = 4

// firstRead is what ReadFrame allocates before a byte has arrived. From there
// the buffer grows with what arrives, so a peer that announces MaxPayload and
// sends nothing costs little.
const firstRead = 64 << 10

// WriteFrame writes b, at most limit bytes, with its length before it.
func WriteFrame(w io.Writer, b []byte, limit int) error {
	if len(b) > limit {
		return fmt.Errorf("write frame: %w: %d bytes, at most %d", ErrSize, len(b), limit)
	}
	var head [FrameHead]byte
	binary.BigEndian.PutUint32(head[:], uint32(len(b)))
	if _, err := w.Write(head[:]); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if _, err := w.Write(b); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	return nil
}

// ReadFrame reads what WriteFrame wrote, at most limit bytes. At the end of
// the stream its error is io.EOF before a frame, io.ErrUnexpectedEOF within.
func ReadFrame(r io.Reader, limit int) ([]byte, error) {
	var head [FrameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("read frame: %w", err)
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, fmt.Errorf("read frame: %w: peer announces %d bytes, at most %d", ErrSize, n, limit)
	}
	var body bytes.Buffer
	body.Grow(int(min(n, firstRead)))
	if _, err := io.CopyN(&body, r, n); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("read frame of %d bytes: %w", n, err)
	}
	return body.Bytes(), nil
}
