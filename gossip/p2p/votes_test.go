package p2p

import (
	"context"
	"errors"
	"testing"

	pubsub "github.com/libp2p/go-libp2p-pubsub"
	pb "github.com/libp2p/go-libp2p-pubsub/pb"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/wire"
)

func TestVoteGate(t *testing.T) {
	vote := wire.Message{Vote: &wire.SignedVote{Vote: wire.Vote{Author: wire.PeerID{1}, Phase: wire.Prevote}}}
	var none *VoteGate
	if err := none.Check(0, vote); !errors.Is(err, gossip.ErrHeldBack) {
		t.Errorf("a vote where there are none: %v", err)
	}
	if err := none.Check(0, wire.Message{Beat: &wire.Beat{}}); err != nil {
		t.Errorf("a beat: %v", err)
	}
	g := NewVoteGate(wire.PeerID{9}, 1000)
	if err := g.Check(0, vote); err != nil {
		t.Errorf("while nobody knows the voters: %v", err)
	}
	table, err := finality.NewTable([]wire.PeerID{{2}})
	if err != nil {
		t.Fatal(err)
	}
	g.Set(0, table)
	for order, ask := range map[string]func(int64, wire.Message) error{"before": g.Spares, "after": g.Check} {
		if err := ask(0, vote); !errors.Is(err, gossip.ErrHeldBack) {
			t.Errorf("of no voter, %s its signature is checked: %v", order, err)
		}
	}
}

// What is not passed on is no fault of who sent it.
func TestNotPassedIsIgnored(t *testing.T) {
	from, err := libp2pID(newPerson(1).record.Author)
	if err != nil {
		t.Fatal(err)
	}
	for err, want := range map[error]pubsub.ValidationResult{
		nil: pubsub.ValidationAccept, gossip.ErrHeldBack: pubsub.ValidationIgnore, wire.ErrInvalid: pubsub.ValidationReject,
	} {
		h := &Host{cfg: Config{Check: func(wire.PeerID, []byte) error { return err }}}
		if got := h.validate(context.Background(), from, &pubsub.Message{Message: &pb.Message{}}); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}
