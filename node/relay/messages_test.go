package relay

import (
	"log/slog"
	"testing"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
)

// A relay passes on few heartbeats of a member that sends them without end, as a node does. Runs of the first format chose
// their own periods, and a relay has no bound there.
func TestHeartbeatsAtARelayAreBounded(t *testing.T) {
	const sent = 500
	run, owner, author := wire.RunID{1}, key(20), key(3)
	members := member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	invite := member.Issue(owner, run, member.Invite{Uses: 1}, key(21))
	if _, err := members.Add(invite.AdmitOther(run, wire.PeerIDOf(author))); err != nil {
		t.Fatal(err)
	}
	for document, bounded := range map[string]bool{`{"Rules":1}`: true, `no document`: false} {
		s := &server{run: run, key: key(9), members: members, gate: messagegate.New(run, members), began: time.Now(), log: slog.New(slog.DiscardHandler)}
		s.follow([]byte(document))
		passed := 0
		for i := range sent {
			heartbeat := wire.EncodeHeartbeat(author, run, wire.Heartbeat{Incarnation: 1, Seq: uint64(i + 1), State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
			if s.gate.Check(0, wire.PeerID{8}, heartbeat) == nil {
				passed++
			}
		}
		if passed == 0 || bounded == (passed > sent/10) {
			t.Errorf("%s: %d of %d heartbeats at once are passed on", document, passed, sent)
		}
	}
}
