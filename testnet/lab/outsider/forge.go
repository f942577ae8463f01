package outsider

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// keyOf is a key of the outsider's: the same for the same purpose and number, in every run.
func keyOf(purpose string, n int) ed25519.PrivateKey {
	seed := sha256.Sum256(binary.BigEndian.AppendUint64([]byte("outsider "+purpose+" "), uint64(n)))
	return ed25519.NewKeyFromSeed(seed[:])
}

// knowledge is what the outsider knows of a run: genesis says it, or somebody who was let in.
type knowledge struct {
	run       wire.RunID
	fragments int
	startedMs int64                // a time of before the run
	codec     uint8                // of the run
	expired   member.Pass          // an invite of the run's owner that has expired
	taken     member.Pass          // one that is for another node alone
	used      member.Pass          // one for a single node, which has come by it
	records   []hello.Signed       // of nodes, as they show them to who is let in
	elsewhere string               // an address of a machine that has to do with nobody
	members   []member.Certificate // of nodes
}

// record is a capability record that is valid in all but its certificate.
func (k knowledge) record(key ed25519.PrivateKey, certificate []byte, addrs ...string) hello.Signed {
	s, err := hello.Sign(key, hello.Record{
		Protocol: hello.Protocol, Run: k.run, Seq: 1, Role: hello.Observer,
		Precision: "f32", Agent: "atoll/outsider", StartedMs: k.startedMs, Certificate: certificate, Addrs: addrs,
	})
	if err != nil {
		panic("outsider: " + err.Error()) // a mistake in the record above
	}
	return s
}

// forgery makes what is no certificate of a run, for a node's key.
type forgery struct {
	name string
	make func(k knowledge, key ed25519.PrivateKey) []byte
}

// forgeries are all kinds of wrong certificates.
var forgeries = []forgery{
	{"none", func(knowledge, ed25519.PrivateKey) []byte { return nil }},
	{"wrong issuer", func(k knowledge, key ed25519.PrivateKey) []byte {
		return admitted(member.Issue(keyOf("owner", 0), k.run, member.Invite{}, keyOf("invite", 0)), k.run, key).Encode()
	}},
	{"wrong run", func(k knowledge, key ed25519.PrivateKey) []byte {
		other := wire.RunID(sha256.Sum256(k.run[:]))
		return admitted(member.Issue(keyOf("owner", 0), other, member.Invite{}, keyOf("invite", 0)), other, key).Encode()
	}},
	{"an owner's signature of another invite", func(k knowledge, key ed25519.PrivateKey) []byte {
		c := admitted(member.Issue(keyOf("owner", 0), k.run, member.Invite{}, keyOf("invite", 0)), k.run, key)
		c.InviteSig = k.expired.Sig
		return c.Encode()
	}},
	{"another node's", func(k knowledge, _ ed25519.PrivateKey) []byte {
		if len(k.members) == 0 {
			return nil
		}
		return k.members[0].Encode()
	}},
	{"garbled", func(k knowledge, key ed25519.PrivateKey) []byte {
		b := admitted(k.expired, k.run, key).Encode()
		b[len(b)/2] ^= 0x40
		return b
	}},
	{"cut short", func(k knowledge, key ed25519.PrivateKey) []byte {
		b := admitted(k.expired, k.run, key).Encode()
		return b[:len(b)-1]
	}},
}

// unusable are invites that the run's owner signed, and that admit the outsider no more, or never did.
var unusable = []forgery{
	{"expired", func(k knowledge, key ed25519.PrivateKey) []byte { return admitted(k.expired, k.run, key).Encode() }},
	{"for another node", func(k knowledge, key ed25519.PrivateKey) []byte {
		c := member.Certificate{Invite: k.taken.Invite, InviteSig: k.taken.Sig, Author: wire.PeerIDOf(key)}
		return c.Encode()
	}},
	{"expiry taken out", func(k knowledge, key ed25519.PrivateKey) []byte {
		c := admitted(k.expired, k.run, key)
		c.Invite.ExpiresMs = 0
		return c.Encode()
	}},
}

// admitted is the certificate of a key by an invite with a secret.
func admitted(p member.Pass, run wire.RunID, key ed25519.PrivateKey) member.Certificate {
	return p.AdmitOther(run, wire.PeerIDOf(key))
}

// Sizes of what the outsider says in gossip.
const (
	poolMessages = 512 // that are made before, and said in turns: signing is no part of the flood
	poolKeys     = 32
	inlineBytes  = 1000
)

// messages are gossip messages that are valid in all but that nobody admitted their authors: headers with a payload, and heartbeats.
func (k knowledge) messages() [][]byte {
	pool := make([][]byte, 0, poolMessages)
	for i := range poolMessages {
		key := keyOf("author", i%poolKeys)
		if i%2 == 0 {
			pool = append(pool, k.header(key, i))
		} else {
			pool = append(pool, k.heartbeat(key, i))
		}
	}
	return pool
}

func (k knowledge) header(key ed25519.PrivateKey, n int) []byte {
	payload := make([]byte, inlineBytes)
	binary.BigEndian.PutUint64(payload, uint64(n))
	h := wire.Header{
		Author: wire.PeerIDOf(key), Fragment: uint16(n % k.fragments), Round: uint32(1 + n/k.fragments), Steps: 1, Tokens: 1,
		Codec: k.codec, Size: inlineBytes, Payload: wire.Sum(payload), Certificate: wire.Sum([]byte(fmt.Sprint("certificate ", n))),
	}
	h.Base = h.Round - 1
	return wire.EncodeHeader(wire.SignHeader(key, k.run, h), payload)
}

func (k knowledge) heartbeat(key ed25519.PrivateKey, n int) []byte {
	return wire.EncodeHeartbeat(key, k.run, wire.Heartbeat{
		Incarnation: k.startedMs, Seq: uint64(n), State: wire.Observing, Steps: uint64(n), Unpublished: make([]uint64, k.fragments),
		Closed: make([]uint32, k.fragments), PeriodMs: wire.MinPeriodMs,
	})
}
