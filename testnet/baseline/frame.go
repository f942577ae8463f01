package baseline

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
)

// Limits on a ring. Within them every number of a frame's head fits its field.
const (
	// MaxMembers is how many members one run has at once: a world of one machine has
	// no more processes.
	MaxMembers = 256
	// maxBuckets is how many buckets a vector has at most: of bucketValues each, it
	// would be of 4 thousand million values, which no member holds.
	maxBuckets = 1 << 16
)

// A ring stream begins with its magic and the view that it is of. Each frame is a head
// and a payload. Numbers are little-endian.
const (
	ringMagic  = "atollring1"
	helloBytes = len(ringMagic) + 8
	headBytes  = 8 + 4 + 2 + 4 // round, bucket, hop, bytes of payload
)

// writeHello begins a ring stream of a view.
func writeHello(w io.Writer, view uint64) error {
	_, err := w.Write(binary.LittleEndian.AppendUint64([]byte(ringMagic), view))
	return err
}

// readHello reads the view that a ring stream is of.
func readHello(r io.Reader) (view uint64, err error) {
	var b [helloBytes]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, fmt.Errorf("begin of a ring stream: %w", err)
	}
	if !bytes.HasPrefix(b[:], []byte(ringMagic)) {
		return 0, fmt.Errorf("begin of a ring stream: %q is no ring of this version", b[:len(ringMagic)])
	}
	return binary.LittleEndian.Uint64(b[len(ringMagic):]), nil
}

// roundFrame is a frame of a round.
type roundFrame struct {
	round uint64
	Frame
}

func (f roundFrame) write(w io.Writer) error {
	b := make([]byte, 0, headBytes+len(f.Payload))
	b = binary.LittleEndian.AppendUint64(b, f.round)
	b = binary.LittleEndian.AppendUint32(b, uint32(f.Bucket))
	b = binary.LittleEndian.AppendUint16(b, uint16(f.Hop))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(f.Payload)))
	_, err := w.Write(append(b, f.Payload...))
	return err
}

// readFrame reads a frame. size says how long the payload of a bucket and hop is: what
// has another length is refused before a byte of it is read.
func readFrame(r io.Reader, size func(bucket, hop int) (int, error)) (roundFrame, error) {
	var head [headBytes]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return roundFrame{}, fmt.Errorf("read frame: %w", err)
	}
	f := roundFrame{round: binary.LittleEndian.Uint64(head[0:])}
	f.Bucket, f.Hop = int(binary.LittleEndian.Uint32(head[8:])), int(binary.LittleEndian.Uint16(head[12:]))
	got := binary.LittleEndian.Uint32(head[14:])
	want, err := size(f.Bucket, f.Hop)
	if err != nil {
		return roundFrame{}, fmt.Errorf("read frame: %w", err)
	}
	if uint64(got) != uint64(want) {
		return roundFrame{}, fmt.Errorf("read frame of bucket %d, hop %d: it announces %d bytes of %d", f.Bucket, f.Hop, got, want)
	}
	f.Payload = make([]byte, want)
	if _, err := io.ReadFull(r, f.Payload); err != nil {
		return roundFrame{}, fmt.Errorf("read frame of %d bytes: %w", want, err)
	}
	return f, nil
}
