package relay

import (
	"crypto/ed25519"
	"errors"
	"log/slog"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// A relay passes votes on in a run that has them, as its genesis says, and no vote otherwise.
func TestVotesPassARelay(t *testing.T) {
	run, key := wire.RunID{1}, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	following := func(document string) *server {
		s := &server{run: run, key: key, gate: p2p.NewMessageGate(run, nil), began: time.Now()}
		s.follow([]byte(document))
		return s
	}
	for document, want := range map[string]bool{
		`{"Format":2,"Outer":{"H":24},"Finality":true}`: true,
		`{"Format":2,"Finality":false}`:                 false,
		`{"Format":2}`:                                  false,
		`no document`:                                   false,
	} {
		if votes := following(document).gate.Votes.Load() != nil; votes != want {
			t.Errorf("%s: %v", document, votes)
		}
	}
	s := following("no document")
	vote := wire.EncodeVote(wire.SignVote(key, run, wire.Vote{Phase: wire.Prevote}))
	if err := s.check(wire.PeerID{}, vote); !errors.Is(err, gossip.ErrHeldBack) {
		t.Errorf("while genesis is not known: %v", err)
	}
	s.gate.Votes.Store(p2p.NewVoteGate(wire.PeerID{}, finality.DefaultStepMs))
	if err := s.check(wire.PeerID{}, vote); err != nil {
		t.Errorf("in a run that votes: %v", err)
	}
	if err := s.check(wire.PeerID{}, wire.EncodeVote(wire.SignVote(key, wire.RunID{2}, wire.Vote{Phase: wire.Prevote}))); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("of another run: %v", err)
	}
}

// Of a member that beats without end a relay passes few beats on, as a node does. Before it has the
// document it knows no bound.
func TestBeatsAtARelayAreBounded(t *testing.T) {
	const sent = 500
	run, owner, author := wire.RunID{1}, key(20), key(3)
	members := member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	invite := member.Issue(owner, run, member.Invite{Uses: 1}, key(21))
	if _, err := members.Add(invite.AdmitOther(run, wire.PeerIDOf(author))); err != nil {
		t.Fatal(err)
	}
	for document, bounded := range map[string]bool{`{"Format":2}`: true, `no document`: false} {
		s := &server{run: run, key: key(9), members: members, gate: p2p.NewMessageGate(run, members), began: time.Now(), log: slog.New(slog.DiscardHandler)}
		s.follow([]byte(document))
		passed := 0
		for i := range sent {
			beat := wire.EncodeBeat(author, run, wire.Beat{Incarnation: 1, Seq: uint64(i + 1), State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
			if s.gate.Check(0, wire.PeerID{8}, beat) == nil {
				passed++
			}
		}
		if passed == 0 || bounded == (passed > sent/10) {
			t.Errorf("%s: %d of %d beats at once are passed on", document, passed, sent)
		}
	}
}
