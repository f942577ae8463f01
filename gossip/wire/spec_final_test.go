package wire_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// What nodes tell and ask each other about votes.

func specCertifiedBeat(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "message beat")
	keys := s.Hex(t, "certified beat keys")
	signed := slices.Concat([]byte{raw[2] + byte(len(s.Table(t, "beat finality")))}, raw[3:len(raw)-64], keys)
	sig := wire.Sign(keyOf(t, s), domain(t, s, domainBeat), runOf(t, s), signed)
	certified := slices.Concat(raw[:2], signed, sig[:])
	m := must[wire.Message](t)(wire.Open(runOf(t, s), certified))
	b := *m.Beat
	if b.Certified != 1000 || b.Certificate != binary.BigEndian.Uint64(s.Hex(t, "value digest")) || b.BorneOut != wire.BearsYes {
		t.Errorf("opened as %d, %x, %d", b.Certified, b.Certificate, b.BorneOut)
	}
	same(t, "encoded", wire.EncodeBeat(keyOf(t, s), runOf(t, s), b), certified)
	b.Certified, b.Certificate, b.BorneOut = 0, 0, 0
	same(t, "without", wire.EncodeBeat(keyOf(t, s), runOf(t, s), b), raw)
}

func specCertifiedBeatRefused(t *testing.T, s *spectest.Spec) {
	open := func(change func(b *wire.Beat)) error {
		m := must[wire.Message](t)(wire.Open(runOf(t, s), s.Hex(t, "message beat")))
		change(m.Beat)
		_, err := wire.Open(runOf(t, s), wire.EncodeBeat(keyOf(t, s), runOf(t, s), *m.Beat))
		return err
	}
	refused(t, "all of them", open(func(b *wire.Beat) { b.Certified, b.Certificate, b.BorneOut = 1, 1, wire.BearsNo }), nil)
	refused(t, "certified alone", open(func(b *wire.Beat) { b.Certified = 1 }), nil)
	refused(t, "above 2", open(func(b *wire.Beat) { b.Certified, b.BorneOut = 1, 3 }), wire.ErrInvalid)
	refused(t, "a certificate of none", open(func(b *wire.Beat) { b.Certificate = 1 }), wire.ErrInvalid)
	refused(t, "none is borne out", open(func(b *wire.Beat) { b.BorneOut = wire.BearsYes }), wire.ErrInvalid)
}

func specGetFinals(t *testing.T, s *spectest.Spec) {
	for _, name := range []string{"votes", "finals"} {
		r, fields := requested(t, s, name)
		if uint64(r.Height) != fields[0].(uint64) || r.Height != 300 {
			t.Errorf("%s: height %d", name, r.Height)
		}
	}
}

func specKnownVotes(t *testing.T, s *spectest.Spec) {
	r, fields := requested(t, s, "votes")
	vote := s.Hex(t, "vote")
	v := must[wire.SignedVote](t)(wire.OpenVote(runOf(t, s), vote))
	want := binary.BigEndian.Uint64(digest(vote))
	if v.Short() != want || r.Known[0] != want || fields[1].([]any)[0].(uint64) != want {
		t.Errorf("%x and %x, want %x", v.Short(), r.Known, want)
	}
}

func specVotesBody(t *testing.T, s *spectest.Spec) {
	raw := s.Hex(t, "body votes")
	votes := must[[]wire.SignedVote](t)(wire.DecodeVotes(raw))
	if len(votes) != 1 || !bytes.Equal(votes[0].Encode(), s.Hex(t, "vote for none")) {
		t.Errorf("%+v", votes)
	}
	same(t, "encoded", wire.EncodeVotes(votes), raw)
	most := int(s.Number(t, "limits", "MaxVotes"))
	_, err := wire.DecodeVotes(wire.EncodeVotes(slices.Repeat(votes, most)))
	refused(t, "the most", err, nil)
	_, err = wire.DecodeVotes(wire.EncodeVotes(slices.Repeat(votes, most+1)))
	refused(t, "more", err, wire.ErrSize)
	_, err = wire.DecodeVotes(wire.Marshal([][]byte{{0x80}}))
	refused(t, "no vote", err, wire.ErrSize)
}

func specFinalsBody(t *testing.T, s *spectest.Spec) {
	c := s.Hex(t, "finality certificate")
	list := must[[][]byte](t)(wire.DecodeFinals(wire.EncodeFinals([][]byte{c, {1}})))
	same(t, "the first", list[0], c)
	same(t, "the second", list[1], []byte{1})
	most, largest := int(s.Number(t, "limits", "MaxFinals")), int(s.Number(t, "limits", "MaxFinal"))
	_, err := wire.DecodeFinals(wire.Marshal(slices.Repeat([][]byte{c}, most+1)))
	refused(t, "more", err, wire.ErrSize)
	for _, size := range []int{0, largest + 1} {
		_, err = wire.DecodeFinals(wire.Marshal([][]byte{make([]byte, size)}))
		refused(t, "its size", err, wire.ErrSize)
	}
	body := wire.EncodeFinals(slices.Repeat([][]byte{make([]byte, largest)}, most))
	if n := len(body); n+1 > wire.GetFinals.MaxResponse() || n < largest {
		t.Errorf("%d bytes of the largest, an answer has at most %d", n, wire.GetFinals.MaxResponse())
	}
	if list := must[[][]byte](t)(wire.DecodeFinals(wire.EncodeFinals(slices.Repeat([][]byte{c}, 2*most)))); len(list) != most {
		t.Errorf("%d of many", len(list))
	}
}
