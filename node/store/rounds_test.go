package store

import (
	"bytes"
	"reflect"
	"testing"

	"atoll/gossip/wire"
)

func TestPutRounds(t *testing.T) {
	s := openTest(t, t.TempDir())
	want := []Round{{Chain: wire.Digest{1}, Tokens: 5}, {Chain: wire.Digest{2}, EndRound: 8, Folded: []wire.Digest{{3}, {4}}}}
	must(t, s.PutRounds(2, 7, want))
	var got []Round
	if err := s.Rounds(2, 0, 100, func(_ uint32, r Round) error { got = append(got, r); return nil }); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if last, err := s.LastRound(2); err != nil || last != 8 {
		t.Errorf("last round %d, %v", last, err)
	}
	if err := s.PutRounds(-1, 7, want); err == nil {
		t.Error("a fragment below 0 is accepted")
	}
}

func TestBaseDigest(t *testing.T) {
	s := openTest(t, t.TempDir())
	blob := bytes.Repeat([]byte("tip"), 100)
	must(t, s.PutBase(3, 4, encoded(blob)))
	if d, err := s.BaseDigest(3, 4); err != nil || d != wire.Sum(blob) {
		t.Errorf("digest %v, %v", d, err)
	}
	_, err := s.BaseDigest(3, 5)
	wantErr(t, err, ErrNotFound)
	if _, err := s.BaseDigest(-1, 4); err == nil {
		t.Error("a fragment below 0 is accepted")
	}
}
