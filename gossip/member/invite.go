package member

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
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
	Invite Invite
	Sig    wire.Signature     // of an owner
	Secret ed25519.PrivateKey // nil in a pass for one key
}

// Issue signs an invite of a run with its owner's key. v.Key is set to the public half of
// secret, unless that is nil: then the pass is for the node that v.Key names, which is no guest. The time is rounded up to whole seconds.
func Issue(owner ed25519.PrivateKey, run wire.RunID, v Invite, secret ed25519.PrivateKey) Pass {
	if v.Alone = secret == nil; v.Alone {
		v.Guests = false
	} else {
		v.Key = wire.PeerIDOf(secret)
	}
	v.ExpiresMs = wholeSeconds(v.ExpiresMs)
	return Pass{Invite: v, Sig: wire.Sign(owner, domainInvite, run, v.append(nil)), Secret: secret}
}

// New is Issue for whoever has the pass, with a secret that nobody has seen.
func New(owner ed25519.PrivateKey, run wire.RunID, v Invite) (Pass, error) {
	seed := make([]byte, ed25519.SeedSize) // half of it is zero, which is left out of links: the key is of 128 bits, and hashing the seed spreads them
	if _, err := rand.Read(seed[:ed25519.SeedSize/2]); err != nil {
		return Pass{}, fmt.Errorf("make an invite: %w", err)
	}
	return Issue(owner, run, v, ed25519.NewKeyFromSeed(seed)), nil
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
	c := Certificate{Invite: p.Invite, InviteSig: p.Sig, Author: author}
	c.Sig = wire.Sign(with, domainCertificate, run, c.stated())
	return c
}

func full(id wire.PeerID) string {
	b, _ := id.MarshalText() // hex: it cannot fail
	return string(b)
}

// wholeSeconds rounds a time in ms up.
func wholeSeconds(ms int64) int64 { return (min(ms, math.MaxInt64-999) + 999) / 1000 * 1000 }

// Encode returns the pass as bytes: what the seed is, and its length, in one; the seed without the zeros at its end, or the key of the
// only node that is admitted; uses and seconds of expiry as varints; the owner's signature. The seed is not at the end, which messages
// about a bad link may quote.
func (p Pass) Encode() []byte {
	kind, secret := p.Invite.kind(), p.Invite.Key[:]
	if p.Secret != nil {
		secret = bytes.TrimRight(p.Secret.Seed(), "\x00")
	}
	b := append([]byte{kind<<6 | byte(len(secret))}, secret...)
	b = binary.AppendUvarint(b, uint64(p.Invite.Uses))
	b = binary.AppendUvarint(b, uint64(p.Invite.ExpiresMs/1000))
	return append(b, p.Sig[:]...)
}

// String is the pass for a file. Whoever reads it can join, if it has the secret.
func (p Pass) String() string { return base64.RawURLEncoding.EncodeToString(p.Encode()) }

// errPass says that bytes are no pass.
var errPass = errors.New("the invite is cut or mistyped: copy it whole")

// ParsePass is the inverse of String.
func ParsePass(text string) (Pass, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return Pass{}, errPass
	}
	return DecodePass(b)
}

// DecodePass is the inverse of Encode.
func DecodePass(b []byte) (Pass, error) {
	if len(b) == 0 {
		return Pass{}, errPass
	}
	kind, size := b[0]>>6, int(b[0]&(1<<6-1))
	if b = b[1:]; kind > forGuests || size > ed25519.SeedSize || size > len(b) || kind == forOne && size != ed25519.SeedSize {
		return Pass{}, errPass
	}
	secret := make([]byte, ed25519.SeedSize)
	copy(secret, b[:size])
	b = b[size:]
	var numbers [2]uint64
	for i := range numbers {
		n, size := binary.Uvarint(b)
		if size <= 0 {
			return Pass{}, errPass
		}
		numbers[i], b = n, b[size:]
	}
	if numbers[0] > math.MaxUint32 || numbers[1] > math.MaxInt64/1000 || len(b) != len(wire.Signature{}) {
		return Pass{}, errPass
	}
	p := Pass{Sig: wire.Signature(b)}
	p.Invite = Invite{Alone: kind == forOne, Guests: kind == forGuests, Uses: uint32(numbers[0]), ExpiresMs: int64(numbers[1]) * 1000}
	if p.Invite.Alone {
		p.Invite.Key = wire.PeerID(secret)
		return p, nil
	}
	p.Secret = ed25519.NewKeyFromSeed(secret)
	p.Invite.Key = wire.PeerIDOf(p.Secret)
	return p, nil
}

// Check makes sure that an owner of the run signed the pass.
func (p Pass) Check(run wire.RunID, owners []wire.PeerID) error {
	if err := verifyInvite(run, p.Invite, p.Sig, owners); err != nil {
		return fmt.Errorf("the invite is not of run %v: %w", run, err)
	}
	return nil
}
