package relay

import (
	"crypto/ed25519"
	"errors"
	"testing"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// A relay passes votes on in a run that has them, as its genesis says, and no vote otherwise.
func TestVotesPassARelay(t *testing.T) {
	for document, want := range map[string]bool{
		`{"Format":2,"Outer":{"H":24},"Finality":true}`: true,
		`{"Format":2,"Finality":false}`:                 false,
		`{"Format":2}`:                                  false,
		`no document`:                                   false,
	} {
		if hasVotes([]byte(document)) != want {
			t.Errorf("%s: %v", document, !want)
		}
	}
	run, key := wire.RunID{1}, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	s := &server{run: run}
	vote := wire.EncodeVote(wire.SignVote(key, run, wire.Vote{Phase: wire.Prevote}))
	if err := s.check(wire.PeerID{}, vote); !errors.Is(err, gossip.ErrHeldBack) {
		t.Errorf("while genesis is not known: %v", err)
	}
	s.gate.Store(p2p.NewVoteGate(wire.PeerID{}, finality.DefaultStepMs))
	if err := s.check(wire.PeerID{}, vote); err != nil {
		t.Errorf("in a run that votes: %v", err)
	}
	if err := s.check(wire.PeerID{}, wire.EncodeVote(wire.SignVote(key, wire.RunID{2}, wire.Vote{Phase: wire.Prevote}))); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("of another run: %v", err)
	}
}
