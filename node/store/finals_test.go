package store

import (
	"bytes"
	"errors"
	"testing"

	"atoll/gossip/wire"
)

// What PutVotes brought survives a kill, whatever else waits for a commit, and all of it or nothing is there.
func TestVotesAreDurable(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	if state, err := s.Votes(); state != nil || err != nil {
		t.Errorf("a new folder has %x, %v", state, err)
	}
	must(t, s.PutVotes([]byte("one"), 0, nil))
	must(t, s.PutVotes([]byte("two"), 0, [][]byte{{1}, {2}}))
	must(t, s.PutVotes(nil, 2, [][]byte{{3}}))
	kill(t, s)
	s = openTest(t, dir)
	if state, err := s.Votes(); err != nil || string(state) != "two" {
		t.Errorf("state %q, %v", state, err)
	}
	for from, want := range map[uint32]int{0: 2, 1: 2, 2: 1, 3: 0} {
		list, err := s.Finals(from, 2)
		if err != nil || len(list) != want || want > 0 && !bytes.Equal(list[0], []byte{byte(from + 1)}) {
			t.Errorf("from height %d: %x, %v", from, list, err)
		}
	}
}

// Votes carry what was put before them, as own deltas do: a certificate never outlives what it was made of.
func TestVotesCommitWhatWaits(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	must(t, s.PutRound(0, 1, Round{}))
	must(t, s.PutVotes([]byte("state"), 0, nil))
	must(t, s.PutRound(0, 2, Round{}))
	kill(t, s)
	s = openTest(t, dir)
	if last, err := s.LastRound(0); err != nil || last != 1 {
		t.Errorf("last round %d, %v", last, err)
	}
}

func TestFinalsEndWhereOneIsMissing(t *testing.T) {
	s := openTest(t, t.TempDir())
	must(t, s.PutVotes(nil, 0, [][]byte{{1}}))
	must(t, s.PutVotes(nil, 2, [][]byte{{3}}))
	if list, err := s.Finals(0, wire.MaxFinals); err != nil || len(list) != 1 {
		t.Errorf("%x, %v", list, err)
	}
	for _, bad := range [][]byte{{}, make([]byte, wire.MaxFinal+1)} {
		if err := s.PutVotes([]byte("x"), 3, [][]byte{bad}); err == nil {
			t.Errorf("a certificate of %d bytes is taken", len(bad))
		}
	}
	if state, err := s.Votes(); state != nil || err != nil {
		t.Errorf("a call that failed left %x, %v", state, err)
	}
}

// A disk that takes nothing leaves neither state nor certificate, and the same call works once it does.
func TestVotesOnAFullDisk(t *testing.T) {
	s := openTest(t, t.TempDir())
	must(t, s.PutVotes([]byte("one"), 0, nil))
	must(t, s.Close())
	if err := s.PutVotes([]byte("two"), 0, [][]byte{{1}}); err == nil {
		t.Error("a closed store takes votes")
	}
	if _, err := s.Finals(0, 1); err == nil {
		t.Error("a closed store gives certificates")
	}
	if _, err := s.Votes(); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("a closed store gives votes: %v", err)
	}
}
