package wire

import (
	"fmt"
)

// Kind is the second byte of a gossip message.
type Kind uint8

// Kinds of gossip messages.
const (
	KindHeader       Kind = iota + 1 // signed header, then the payload if inlined
	KindHeartbeat                    // signed heartbeat
	KindEquivocation                 // two signed headers
)

// messageHead is the length of version and kind.
const messageHead = 2

// Message is an opened gossip message: one of Header, Heartbeat and Equivocation is
// set. Inline is the payload of Header if it came along, else nil. Size is how many bytes it came in.
type Message struct {
	Size         int
	Header       *SignedHeader
	Inline       []byte
	Heartbeat    *Heartbeat
	Equivocation *Equivocation
}

// EncodeHeader returns the gossip message that announces s. inline is the
// payload; one longer than MaxInline stays out and has to be pulled.
func EncodeHeader(s SignedHeader, inline []byte) []byte {
	b := make([]byte, 0, messageHead+SignedHeaderSize+MaxInline)
	b = s.Append(append(b, Version, byte(KindHeader)))
	if len(inline) > MaxInline {
		return b
	}
	return append(b, inline...)
}

// Open decodes a gossip message of the run, within limits, and verifies its
// signatures and the hash of an inlined payload. What it returns does not
// share memory with b.
func Open(run RunID, b []byte) (Message, error) {
	m, err := Decode(b)
	if err != nil {
		return Message{}, err
	}
	if err := m.Verify(run, b); err != nil {
		return Message{}, err
	}
	return m, nil
}

// Verify checks the signatures of a message that Decode made of b.
func (m Message) Verify(run RunID, b []byte) error {
	if err := m.verify(run, b[messageHead:]); err != nil {
		return fmt.Errorf("open message: %w", err)
	}
	return nil
}

func (m Message) verify(run RunID, body []byte) error {
	switch {
	case m.Header != nil:
		return m.Header.Verify(run)
	case m.Heartbeat != nil:
		n := len(body) - len(Signature{})
		return Verify(m.Heartbeat.Author, domainHeartbeat, run, body[:n], Signature(body[n:]))
	}
	return m.Equivocation.Check(run)
}

// Decode is Open without the signatures, which are most of its time. It is for
// bytes that Open has taken before, or whose author does not matter.
func Decode(b []byte) (Message, error) {
	if len(b) < messageHead || len(b) > MaxMessage {
		return Message{}, fmt.Errorf("open message: %w: %d bytes, want %d..%d", ErrSize, len(b), messageHead, MaxMessage)
	}
	if b[0] != Version {
		return Message{}, fmt.Errorf("open message: %w: %d, this atoll speaks %d", ErrVersion, b[0], Version)
	}
	var m Message
	var err error
	body := b[messageHead:]
	switch Kind(b[1]) {
	case KindHeader:
		m, err = decodeHeader(body)
	case KindHeartbeat:
		var heartbeat Heartbeat
		heartbeat, err = decodeHeartbeat(body)
		m.Heartbeat = &heartbeat
	case KindEquivocation:
		var e Equivocation
		e, err = decodeEquivocation(body)
		m.Equivocation = &e
	default:
		err = fmt.Errorf("%w %d", ErrKind, b[1])
	}
	if err != nil {
		return Message{}, fmt.Errorf("open message: %w", err)
	}
	m.Size = len(b)
	return m, nil
}

func decodeHeader(body []byte) (Message, error) {
	if len(body) < SignedHeaderSize {
		return Message{}, fmt.Errorf("header: %w: %d bytes, want at least %d", ErrSize, len(body), SignedHeaderSize)
	}
	s, err := ParseSignedHeader(body[:SignedHeaderSize])
	if err != nil {
		return Message{}, err
	}
	m := Message{Header: &s}
	if inline := body[SignedHeaderSize:]; len(inline) > 0 {
		if err := checkInline(s.Header, inline); err != nil {
			return Message{}, err
		}
		m.Inline = append([]byte(nil), inline...)
	}
	return m, nil
}

func checkInline(h Header, inline []byte) error {
	if len(inline) > MaxInline {
		return fmt.Errorf("inline payload: %w: %d bytes, at most %d", ErrSize, len(inline), MaxInline)
	}
	return h.CheckPayload(inline)
}

// CheckPayload checks that b is the payload that h announces.
func (h Header) CheckPayload(b []byte) error {
	if len(b) != int(h.Size) {
		return fmt.Errorf("payload of %v: %w: %d bytes, header says %d", h.Author, ErrSize, len(b), h.Size)
	}
	if d := Sum(b); d != h.Payload {
		return fmt.Errorf("payload of %v: %w: digest %v, header says %v", h.Author, ErrInvalid, d, h.Payload)
	}
	return nil
}
