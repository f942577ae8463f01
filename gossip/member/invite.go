package member

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"atoll/gossip/wire"
)

// domainInvite is of an owner's signature of an invite.
const domainInvite = "atoll invite 1"

// Invite is what an owner allows to the keys that are signed with it.
type Invite struct {
	Key       wire.PeerID // the public half: it signs nodes
	Alone     bool        // Key is a node's own: it admits that one and no other
	Guests    bool        // it admits guests, whose work counts a little and whose claims do not; never Alone
	Uses      uint32      // nodes that it is meant for: more of them weigh no more than so many; 0 for any number
	ExpiresMs int64       // Unix ms after which no node is admitted that nobody knew before; 0 for never
}

// Expired reports whether the invite admits nobody new at a time in Unix ms.
func (v Invite) Expired(nowMs int64) bool { return v.ExpiresMs != 0 && nowMs > v.ExpiresMs }

// inviteSize is the length of an encoded Invite.
const inviteSize = 32 + 1 + 4 + 8

// append appends the encoding of v to b: fields in order, big-endian.
func (v Invite) append(b []byte) []byte {
	b = append(b, v.Key[:]...)
	b = binary.BigEndian.AppendUint32(append(b, v.kind()), v.Uses)
	return binary.BigEndian.AppendUint64(b, uint64(v.ExpiresMs))
}

// Whom an invite admits, as a byte.
const (
	forMembers byte = iota
	forOne
	forGuests
)

func (v Invite) kind() byte {
	switch {
	case v.Alone:
		return forOne
	case v.Guests:
		return forGuests
	}
	return forMembers
}

// parseInvite decodes exactly inviteSize bytes.
func parseInvite(b []byte) (Invite, error) {
	v := Invite{Key: wire.PeerID(b[:32]), Alone: b[32] == forOne, Guests: b[32] == forGuests, Uses: binary.BigEndian.Uint32(b[33:])}
	expires := binary.BigEndian.Uint64(b[37:])
	switch {
	case b[32] > forGuests:
		return Invite{}, fmt.Errorf("invite: %w: it admits %d, want 0 to %d", wire.ErrInvalid, b[32], forGuests)
	case expires > math.MaxInt64:
		return Invite{}, fmt.Errorf("invite: %w: it expires at %d, want Unix milliseconds", wire.ErrInvalid, expires)
	}
	v.ExpiresMs = int64(expires)
	return v, nil
}

// Pass is an invite as it is handed to people: what the owner signed, and the secret half
// unless the invite is for one key that has its secret already.
type Pass struct {
	Owner  wire.PeerID
	Invite Invite
	Sig    wire.Signature     // of the owner
	Secret ed25519.PrivateKey // nil in a pass for one key
}

// Issue signs an invite of a run with its owner's key. v.Key is set to the public half of
// secret, unless that is nil: then the pass is for the node that v.Key names, which is no guest.
func Issue(owner ed25519.PrivateKey, run wire.RunID, v Invite, secret ed25519.PrivateKey) Pass {
	if v.Alone = secret == nil; v.Alone {
		v.Guests = false
	} else {
		v.Key = wire.PeerIDOf(secret)
	}
	return Pass{Owner: wire.PeerIDOf(owner), Invite: v, Sig: wire.Sign(owner, domainInvite, run, v.append(nil)), Secret: secret}
}

// New is Issue for whoever has the pass, with a secret that nobody has seen.
func New(owner ed25519.PrivateKey, run wire.RunID, v Invite) (Pass, error) {
	_, secret, err := ed25519.GenerateKey(nil)
	if err != nil {
		return Pass{}, fmt.Errorf("make an invite: %w", err)
	}
	return Issue(owner, run, v, secret), nil
}

// Admit signs a node's key with the pass. It fails where a pass for one key is used by
// another.
func (p Pass) Admit(run wire.RunID, node ed25519.PrivateKey) (Certificate, error) {
	author := wire.PeerIDOf(node)
	if p.Secret != nil {
		return p.certify(run, author, p.Secret), nil
	}
	if author != p.Invite.Key {
		return Certificate{}, fmt.Errorf("the invite is for node %v alone, this is node %v: ask the run's owner for another, with `atoll invite --for %s`", p.Invite.Key, author, full(author))
	}
	return p.certify(run, author, node), nil
}

// AdmitOther signs the key of a node that whoever has the pass does not have. The pass must have a secret.
func (p Pass) AdmitOther(run wire.RunID, author wire.PeerID) Certificate {
	return p.certify(run, author, p.Secret)
}

func (p Pass) certify(run wire.RunID, author wire.PeerID, with ed25519.PrivateKey) Certificate {
	c := Certificate{Owner: p.Owner, Invite: p.Invite, InviteSig: p.Sig, Author: author}
	c.Sig = wire.Sign(with, domainCertificate, run, c.stated())
	return c
}

func full(id wire.PeerID) string {
	b, _ := id.MarshalText() // hex: it cannot fail
	return string(b)
}

// A pass as text is base64 of its fields, without padding, so that no shell touches it. What
// is 0 in most takes one byte.
const passVersion = 1

// String is the pass for a link. Whoever reads it can join, if it has the secret.
func (p Pass) String() string {
	b := append([]byte{passVersion}, p.Owner[:]...)
	b = append(b, p.Sig[:]...)
	for _, n := range []uint64{uint64(p.Invite.Uses), uint64(p.Invite.ExpiresMs)} {
		b = binary.AppendUvarint(b, n)
	}
	switch {
	case p.Secret == nil:
		b = append(append(b, passKey), p.Invite.Key[:]...)
	case p.Invite.Guests:
		b = append(append(b, passGuests), p.Secret.Seed()...)
	default:
		b = append(append(b, passSecret), p.Secret.Seed()...)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// What the last 32 bytes of a pass are.
const (
	passKey    byte = iota // the key of the only node that it admits
	passSecret             // the seed of the invite's key
	passGuests             // likewise, of an invite for guests
)

// errPass says that a text is no pass.
var errPass = errors.New("the invite behind # is cut or mistyped: copy the link whole")

// ParsePass is the inverse of String.
func ParsePass(text string) (Pass, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || len(b) < 1+32+64 {
		return Pass{}, errPass
	}
	if b[0] != passVersion {
		return Pass{}, fmt.Errorf("the invite behind # is of version %d, this program knows %d: use the version of atoll that made it", b[0], passVersion)
	}
	p := Pass{Owner: wire.PeerID(b[1:33]), Sig: wire.Signature(b[33:97])}
	b = b[97:]
	var numbers [2]uint64
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return Pass{}, errPass
		}
		numbers[i], b = n, b[size:]
	}
	if numbers[0] > math.MaxUint32 || numbers[1] > math.MaxInt64 || len(b) != 1+32 || b[0] > passGuests {
		return Pass{}, errPass
	}
	p.Invite = Invite{Alone: b[0] == passKey, Guests: b[0] == passGuests, Uses: uint32(numbers[0]), ExpiresMs: int64(numbers[1])}
	if p.Invite.Alone {
		p.Invite.Key = wire.PeerID(b[1:])
		return p, nil
	}
	p.Secret = ed25519.NewKeyFromSeed(b[1:])
	p.Invite.Key = wire.PeerIDOf(p.Secret)
	return p, nil
}

// Check makes sure that an owner of the run signed the pass.
func (p Pass) Check(run wire.RunID) error {
	if err := wire.Verify(p.Owner, domainInvite, run, p.Invite.append(nil), p.Sig); err != nil {
		return fmt.Errorf("the invite behind # is not of run %v, or mistyped: copy the link whole", run)
	}
	return nil
}
