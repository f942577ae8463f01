package relay

import (
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

// A relay that came by a link for guests lets in guests and members, and nobody else. Its own link has the same invite.
func TestGuestsRelay(t *testing.T) {
	run, owner := wire.RunID{7}, key(20)
	guests := member.Issue(owner, run, member.Invite{Guests: true}, key(21))
	members := member.Issue(owner, run, member.Invite{}, key(22))
	link := startWith(t, joinlink.Link{Run: run, Invite: &guests})[0]
	if link.Invite == nil || link.Invite.String() != guests.String() {
		t.Errorf("its link has the invite %+v", link.Invite)
	}
	for seed, pass := range map[byte]*member.Pass{1: &guests, 2: &members} {
		if _, err := invitedNode(t, run, seed, pass).Dial(t.Context(), link.Peers[0]); err != nil {
			t.Errorf("with an invite %+v: %v", pass.Invite, err)
		}
	}
	if _, err := node(t, run, 3).Dial(t.Context(), link.Peers[0]); err == nil {
		t.Error("a stranger gets in")
	}
}
