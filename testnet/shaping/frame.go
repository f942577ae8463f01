package shaping

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// This file is what two shaped connections say to each other over their socket: at first
// shapeMagic, then frames.

// shapeMagic tells that the other end is shaped as well.
const shapeMagic = "atoll-shaped-link-1\n"

// Kinds of frames.
const (
	frameData  = iota + 1 // bytes of the stream, and when they arrive
	frameAck              // they have arrived, and when the sender knows it
	frameFull             // they have arrived, and a router would have dropped them
	frameClose            // the stream ends here
)

// frame is a message of a shaped connection. Both ends share the machine, and so its clock.
type frame struct {
	kind byte
	size int    // bytes that follow
	at   uint64 // where they stand in the stream
	due  time.Time
}

// frameHeader is the length of a frame without its bytes.
const frameHeader = 1 + 4 + 8 + 8

func (f frame) append(b []byte) []byte {
	b = append(b, f.kind)
	b = binary.BigEndian.AppendUint32(b, uint32(f.size))
	b = binary.BigEndian.AppendUint64(b, f.at)
	return binary.BigEndian.AppendUint64(b, uint64(f.due.UnixNano()))
}

var errUnshaped = errors.New("the other end of a shaped link is not shaped: start both nodes with atoll testnet-node and --shape, the one whose link is to stay as it is with --shape rate=none")

// readMagic fails for an end that is not shaped.
func readMagic(in *bufio.Reader) error {
	b, err := in.Peek(len(shapeMagic))
	for i := range b {
		if b[i] != shapeMagic[i] {
			return errUnshaped
		}
	}
	if err == nil {
		_, err = in.Discard(len(shapeMagic))
	}
	return err
}

// readShaped takes a frame and its bytes. One that is cut off by a deadline stays where it is.
func readShaped(in *bufio.Reader) (f frame, payload []byte, err error) {
	b, err := in.Peek(frameHeader)
	if err != nil {
		return f, nil, err
	}
	f = frame{b[0], int(binary.BigEndian.Uint32(b[1:])), binary.BigEndian.Uint64(b[5:]), time.Unix(0, int64(binary.BigEndian.Uint64(b[13:])))}
	if f.kind < frameData || f.kind > frameClose || f.size > maxShapeChunk {
		return f, nil, fmt.Errorf("a shaped link brought a frame of kind %d with %d bytes: this is not its protocol", f.kind, f.size)
	}
	if b, err = in.Peek(frameHeader + f.size); err != nil {
		return f, nil, err
	}
	payload = append(payload, b[frameHeader:]...)
	_, err = in.Discard(frameHeader + f.size)
	return f, payload, err
}
