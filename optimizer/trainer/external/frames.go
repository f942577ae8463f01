package external

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
)

// maxFrame bounds a message, in bytes: a list of 40,000 pieces. What is longer is no message
// of this protocol.
const maxFrame = 1 << 20

// Protocol is the version of PROTOCOL.md.
const Protocol = 1

// Device is one kind of hardware that a learner trains on.
type Device struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Count       int    `json:"count"`
	MemoryBytes uint64 `json:"memory_bytes"`
}

// answer is what a learner says: the fields of all its messages.
type answer struct {
	Type string `json:"type"`

	Protocol  int      `json:"protocol"`
	Token     string   `json:"token"`
	Name      string   `json:"name"`
	Version   string   `json:"version"`
	Devices   []Device `json:"devices"`
	Precision string   `json:"precision"`
	Evaluates bool     `json:"evaluates"`

	Layout          string  `json:"layout"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	MemoryBytes     uint64  `json:"memory_bytes"`

	Tokens int     `json:"tokens"`
	Loss   float64 `json:"loss"`
	Bytes  int     `json:"bytes"`

	Error  string `json:"error"`
	Remedy string `json:"remedy"`
	Kind   string `json:"kind"`
}

// Requests of a node.
type (
	plain struct {
		Type string `json:"type"`
	}
	refused struct {
		Type  string `json:"type"`
		Error string `json:"error"`
	}
	run struct {
		Type      string       `json:"type"`
		Slab      string       `json:"slab"`
		Begin     int64        `json:"begin"`
		Values    int          `json:"values"`
		Tensors   []tensorSpec `json:"tensors"`
		Layout    string       `json:"layout"`
		Recipe    string       `json:"recipe"`
		Seed      uint64       `json:"seed"`
		Author    string       `json:"author"`
		Rows      int          `json:"rows"`
		Context   int          `json:"context"`
		Text      string       `json:"text"`
		HeldOut   string       `json:"held_out"`
		Tokenizer string       `json:"tokenizer"`
		Resume    string       `json:"resume"`
		Steps     int64        `json:"steps"`
	}
	tensorSpec struct {
		Name   string `json:"name"`
		Shape  []int  `json:"shape"`
		Offset int    `json:"offset"`
	}
	move struct {
		Type   string   `json:"type"` // load or flush
		Pieces [][2]int `json:"pieces"`
	}
	step struct {
		Type   string   `json:"type"`
		Number int64    `json:"number"`
		LR     float64  `json:"lr"`
		Starts []uint64 `json:"starts"`
	}
	evaluate struct {
		Type   string   `json:"type"`
		Starts []uint64 `json:"starts"`
	}
	save struct {
		Type string `json:"type"`
		Path string `json:"path"`
	}
)

// WriteFrame writes one message.
func WriteFrame(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(b) > maxFrame {
		return fmt.Errorf("a message of %d bytes; the limit is %d", len(b), maxFrame)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

// ReadFrame reads the JSON of one message.
func ReadFrame(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxFrame {
		return nil, fmt.Errorf("%q is no frame: its length would be %d bytes, the limit is %d; nothing else may be written to the control connection", head[:], n, maxFrame)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return b, err
}

// readFrame reads what a learner says.
func readFrame(r io.Reader) (a answer, err error) {
	b, err := ReadFrame(r)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(b, &a); err != nil {
		return a, fmt.Errorf("the learner sent %.80q, which is no message: %w", b, err)
	}
	return a, nil
}

// isClosed reports whether an error says that the other end is gone.
func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
