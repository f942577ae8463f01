package sim

import (
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// verifier remembers what checking a signature came to: it is a pure function of
// the bytes, and all nodes of a world check the same ones.
type verifier struct {
	headers map[wire.SignedHeader]error
	records map[string]opened
	signed  int // messages that cores made

	certificates map[member.Certificate]error
}

type opened struct {
	record *hello.Record
	err    error
}

// verifyEvery: one in so many of the messages that cores have signed is verified,
// the others are taken as they are. The result of checking a signature that was
// just made is known, and checks would be a tenth of a world's time.
const verifyEvery = 16

// ownMessage opens a message that a core has made.
func (v *verifier) ownMessage(run wire.RunID, b []byte) (wire.Message, error) {
	v.signed++
	if v.signed%verifyEvery == 0 {
		return wire.Open(run, b)
	}
	return wire.Decode(b)
}

// maxVerified bounds each of the memories; they begin anew beyond it.
const maxVerified = 1 << 17

func newVerifier() verifier {
	return verifier{headers: map[wire.SignedHeader]error{}, records: map[string]opened{}, certificates: map[member.Certificate]error{}}
}

func (v *verifier) header(run wire.RunID, h wire.SignedHeader) error {
	err, known := v.headers[h]
	if !known {
		if len(v.headers) >= maxVerified {
			clear(v.headers)
		}
		err = h.Verify(run)
		v.headers[h] = err
	}
	return err
}

func (v *verifier) certificate(run wire.RunID, c member.Certificate, owners []wire.PeerID) error {
	err, known := v.certificates[c]
	if !known {
		if len(v.certificates) >= maxVerified {
			clear(v.certificates)
		}
		err = c.Verify(run, owners)
		v.certificates[c] = err
	}
	return err
}

func (v *verifier) open(s hello.Signed) (*hello.Record, error) {
	key := string(s.Encode())
	o, known := v.records[key]
	if !known {
		if len(v.records) >= maxVerified {
			clear(v.records)
		}
		record, err := s.Open()
		o = opened{&record, err}
		v.records[key] = o
	}
	return o.record, o.err
}
