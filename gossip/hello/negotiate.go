package hello

import (
	"cmp"
	"fmt"
	"strconv"
)

// Fields of a record over which a session can fail; see Refusal.
const (
	FieldProtocol = "protocol"
	FieldRun      = "run"
	FieldAuthor   = "author"
)

// Refusal says over which field two nodes cannot work together.
type Refusal struct {
	Field, Ours, Theirs string
	// Ahead says over FieldProtocol whose program is the newer one: above 0 ours, below 0 the peer's.
	Ahead int
}

// Error names the field, both values and the remedy.
func (r *Refusal) Error() string {
	return fmt.Sprintf("%s: we have %s, peer has %s: %s", r.Field, r.Ours, r.Theirs, r.remedy())
}

func (r *Refusal) remedy() string {
	switch r.Field {
	case FieldProtocol:
		if r.Ahead < 0 {
			return "this node is the older one: install the peer's version of atoll here"
		}
		return "the peer is the older one: install this version of atoll there"
	case FieldRun:
		return "the peer is in another run; join with that run's link, or give the address of a peer of this one"
	case FieldAuthor:
		return "both use one key; give each node a folder of its own (a copied folder needs a new key)"
	}
	return "the records do not fit together"
}

// Negotiate decides whether a, our record, and b, the peer's, make a session.
// It is pure and symmetric: Negotiate(b, a) gives the same refusal with Ours and
// Theirs exchanged, or none. The error is a *Refusal.
func Negotiate(a, b Record) error {
	if a.Protocol != b.Protocol {
		return &Refusal{FieldProtocol, a.version(), b.version(), cmp.Compare(a.Protocol, b.Protocol)}
	}
	if a.Run != b.Run {
		return &Refusal{FieldRun, a.Run.String(), b.Run.String(), 0}
	}
	if a.Author == b.Author {
		return &Refusal{FieldAuthor, a.Author.String(), b.Author.String(), 0}
	}
	return nil
}

// version is the protocol with the program that speaks it, which is what has to be replaced.
func (r Record) version() string {
	v := strconv.FormatUint(uint64(r.Protocol), 10)
	if r.Agent != "" {
		v += " (" + r.Agent + ")"
	}
	return v
}
