package node

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/ledger"
	"atoll/node/replica"
	"atoll/node/show"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// Trouble of a replica is shown, with what is done about it.
func TestWhatIsShown(t *testing.T) {
	left := core.Left{Own: [][]wire.Digest{{{1}, {2}}}, Tokens: []uint64{300}, Final: []uint64{100}}
	for _, c := range []struct {
		event      any
		kind, text string
	}{
		{replica.Damaged{Err: fmt.Errorf("tip: %w", outer.ErrDamaged)}, "memory damaged", "folds them again"},
		{replica.Damaged{Err: replica.ErrNoBase}, "damaged", "folds again from an older one"},
		{replica.Damaged{Err: replica.ErrOwnLost}, "damaged", "lost unless a peer holds it"},
		{replica.Damaged{Err: replica.ErrGone}, "damaged", "fetches it again"},
		{replica.DraftFailed{Err: outer.ErrDamaged}, "memory damaged", "folds them again"},
		{replica.DraftFailed{Err: outer.ErrUnread}, "damaged", "loses the unpublished work"},
		{replica.DraftFailed{Err: errors.New("the codec does not like it")}, "", ""},
		{replica.Installed{Tips: []*outer.Tip{{}}, Left: left}, "left a chain", "2 own deltas, about 300 tokens"},
		{replica.Installed{Tips: []*outer.Tip{{}}}, "", ""},
		{replica.Retained{Kept: replica.Kept{Bytes: 7}, Budget: 1}, "disk", "needs more than the 1 B of --keep"},
		{replica.Retained{Kept: replica.Kept{Bytes: 7, Dropped: 2}, Budget: 7}, "", ""},
		{replica.FoldFailed{Err: core.ErrOvertaken}, "", ""},
		{replica.NotInstalled{Err: core.ErrUnfit}, "", ""},
		{replica.GivenUp{Round: 3}, "", ""},
		{core.RaiseMark{Round: 9}, "key", "signs nothing up to round 9"},
	} {
		n := newViewer()
		watcher{n}.Saw(c.event)
		watcher{n}.Saw(c.event)
		switch said := len(n.screen.Events()); {
		case c.kind == "" && said > 0 || c.kind != "" && said == 0:
			t.Errorf("%T: events %+v", c.event, n.screen.Events())
		case c.kind == "disk" && said > 1:
			t.Errorf("%T: said %d times", c.event, said)
		case c.kind != "" && (n.lastEvent().Kind != c.kind || !strings.Contains(n.lastEvent().Text, c.text)):
			t.Errorf("%T: event %+v", c.event, n.lastEvent())
		}
	}
}

// A fold that other tips have overtaken is as it has to be; another that fails is not.
func TestOvertakenFoldsAreNoErrors(t *testing.T) {
	for err, want := range map[error]string{fmt.Errorf("fold fragment 2: %w", core.ErrOvertaken): "level=INFO", errors.New("no space left"): "level=ERROR"} {
		var said strings.Builder
		n := newViewer()
		n.log = slog.New(slog.NewTextHandler(&said, nil))
		watcher{n}.Saw(replica.FoldFailed{Err: err})
		if !strings.Contains(said.String(), want) || !strings.Contains(said.String(), err.Error()) {
			t.Errorf("%v: says %q, want %s", err, said.String(), want)
		}
	}
}

// newViewer is a node as far as its screen needs it.
func newViewer() *node {
	n := &node{log: slog.New(slog.DiscardHandler), folder: folder{ledger: ledger.New(nil, nil, outer.Params{}, nil)}}
	n.screen = show.New(n.log, nil, n.self, 1, outer.Params{WindowUnion: 4})
	return n
}

func (n *node) lastEvent() status.Event {
	events := n.screen.Events()
	return events[len(events)-1]
}

// The owner of a guest that meets nobody learns that no round closes.
func TestAloneAsAGuest(t *testing.T) {
	_, owner := ownedGenesis(1000)
	run, self := wire.RunID{1}, key(9)
	for _, guest := range []bool{false, true} {
		c, err := member.Issue(owner, run, member.Invite{Guests: guest}, key(8)).Admit(run, self)
		must(t, err)
		n := &node{identity: identity{self: wire.PeerIDOf(self)}, membership: membership{members: member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})}, shown: shown{screen: newViewer().screen}}
		_, err = n.members.Add(c)
		must(t, err)
		if text := n.aloneText(); strings.Contains(text, "only beside a member") != guest {
			t.Errorf("a guest (%v) reads %q", guest, text)
		}
	}
}

func key(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}
