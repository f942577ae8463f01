package outer

import (
	"fmt"

	"atoll/tensor/codec"
)

// ID names a delta: the hash of its header.
type ID = [32]byte

// Author names a learner: its public key.
type Author = [32]byte

// Digest is a BLAKE3 digest of 32 bytes.
type Digest = [32]byte

// Delta is what the header of a delta says: everything but the payload that a fold
// depends on.
type Delta struct {
	ID       ID
	Author   Author
	Fragment int
	Round    uint32 // the round it was published for, from 1
	Base     uint32 // rounds closed when its oldest step was taken, below Round
	Steps    uint32 // inner steps
	Tokens   uint64 // tokens of these steps
	Codec    codec.Kind
	Size     int // payload bytes
	// Invite names what admitted the author to the run, and Uses how many authors that was meant
	// for; 0 for any number, as in a run that is open. See Weights.
	Invite [32]byte
	Uses   uint32
	// Guest says that the author is a guest of the run: what it made counts a little beside the deltas of members. See
	// guestShare.
	Guest bool
	// Revokes is the author, or the invite, that a revocation revokes; zero in every other delta.
	Revokes [32]byte
}

// Check tells whether a delta may be folded at all, from its header alone. The error names
// the field. A delta that fails is invalid for every node of the run.
func (p Params) Check(d Delta) error {
	switch {
	case d.Fragment < 0 || d.Fragment >= p.Fragments:
		return fmt.Errorf("outer: fragment %d; the run has %d", d.Fragment, p.Fragments)
	case d.Revocation():
		return p.checkRevocation(d)
	case d.Base >= d.Round:
		return fmt.Errorf("outer: base %d of round %d; a base is a closed round before it", d.Base, d.Round)
	case d.Steps < 1 || d.Steps > p.MaxSteps:
		return fmt.Errorf("outer: %d steps; 1 to %d are allowed", d.Steps, p.MaxSteps)
	case d.Tokens < 1 || d.Tokens > uint64(d.Steps)*p.MaxTokensPerStep:
		return fmt.Errorf("outer: %d tokens in %d steps; 1 to %d a step are allowed", d.Tokens, d.Steps, p.MaxTokensPerStep)
	case d.Codec != p.Codec:
		return fmt.Errorf("outer: codec %v; the run uses %v", d.Codec, p.Codec)
	case d.Size < 1:
		return fmt.Errorf("outer: payload of %d bytes", d.Size)
	}
	return nil
}

// CheckSize tells whether a payload of size bytes can hold the values of fragment f. It
// needs the plan, so it stands apart from Check; no payload over it need be fetched.
func (p Params) CheckSize(f Fragment, size int) error {
	if most := codec.MaxSize(p.Codec, f.Len); size < 1 || size > most {
		return fmt.Errorf("outer: payload of %d bytes; %d values in %v take at most %d", size, f.Len, p.Codec, most)
	}
	return nil
}

// CheckPayload tells whether Fold would take the payload of a delta that passes Check. It must have
// the size and codec of its header, and finite values for fragment f. Ask before you count a delta
// as held, since the chain of a round is computed from headers.
func (p Params) CheckPayload(f Fragment, d Delta, payload []byte) error {
	if err := checkContainer(d, payload); err != nil || d.Revocation() {
		return err
	}
	return codec.Check(payload, f.Len)
}

// checkContainer tells whether a payload is what its header says, values aside.
func checkContainer(d Delta, payload []byte) error {
	if len(payload) != d.Size {
		return fmt.Errorf("outer: payload of %d bytes; its header says %d", len(payload), d.Size)
	}
	if d.Revocation() {
		return nil // words for people, who see what of them is printable
	}
	kind, err := codec.KindOf(payload)
	if err != nil {
		return err
	}
	if kind != d.Codec {
		return fmt.Errorf("outer: payload in %v; its header says %v", kind, d.Codec)
	}
	return nil
}
