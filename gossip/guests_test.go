package gossip

import (
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// guests makes peers guests of the run, and others members.
func (a *alone) guests(t testing.TB, guests []wire.PeerID, members ...wire.PeerID) {
	t.Helper()
	owner := testKey(50)
	a.core.cfg.Members = member.NewTable(a.run, []wire.PeerID{wire.PeerIDOf(owner)})
	for i, ids := range [][]wire.PeerID{members, guests} {
		pass := member.Issue(owner, a.run, member.Invite{Guests: i == 1}, testKey(52+i))
		for _, id := range ids {
			if _, err := a.core.cfg.Members.Add(pass.AdmitOther(a.run, id)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func peersOf(ids ...byte) (all []wire.PeerID) {
	for _, id := range ids {
		all = append(all, wire.PeerID{id})
	}
	return all
}

// A guest is a stranger, whether its link names it or not.
func TestGuestsAreStrangers(t *testing.T) {
	a := begunWith()
	a.guests(t, []wire.PeerID{{1}, {2}})
	a.core.cfg.Trusted = []wire.PeerID{{2}, {3}}
	for id, known := range map[wire.PeerID]bool{{1}: false, {2}: false, {3}: true} {
		if a.core.known(id) != known || a.core.trusts(id) != known {
			t.Errorf("%v is known: %v, trusted: %v", id, a.core.known(id), a.core.trusts(id))
		}
	}
}

// Most members have left the chain of the node: then it takes the tips of anybody that is no guest.
func specGuestTips(t *testing.T, _ *spectest.Spec) {
	for _, guest := range []bool{false, true} {
		a := specAlone(2, 3, 4)
		if guest {
			a.guests(t, []wire.PeerID{{1}}, peersOf(2, 3, 4, 9)...)
		}
		a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true}
		for id := byte(2); id < 4; id++ {
			for range 2 {
				a.told(id, func(b *wire.Beat) { apart(b); b.Folded = 1000 })
			}
		}
		a.core.repair.sessions = nil
		if m := find[BaseMismatch](a.forks(t, 1)); len(m) != 1 || m[0].Take == guest {
			t.Errorf("of a guest %v: %+v", guest, m)
		}
	}
}

// What a guest closed closes nothing here, and its deltas are taken all the same.
func specGuestCloses(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.guests(t, []wire.PeerID{{1}}, peersOf(2, 3, 4, 9)...)
	q := a.compares(t, 1, 4, 3)
	e := a.shown(q, 9, func(i int, r *wire.RangeAnswer) {
		if r.Closed = 4; i == 0 {
			r.Sets = []wire.Digest{{5}}
		}
	})
	h := a.signed(9, 1)
	e = append(e, a.answer(questions(t, e, wire.GetHeaders)[0], wire.EncodeHeaders([]wire.SignedHeader{h}))...)
	a.core.Settle(a.now, h.Header.ID(a.run), nil)
	if e = append(e, a.core.Effects()...); count[CatchUp](e) != 0 || count[Offer](e) != 1 {
		t.Errorf("%v", e)
	}
}

// A joiner whose link names a guest waits for others, and does not ask guests to vote.
func specGuestDonors(t *testing.T, _ *spectest.Spec) {
	for _, guest := range []bool{false, true} {
		a, ids := joins(1)
		if a.core.cfg.Trusted = ids; guest {
			a.guests(t, ids)
		}
		a.core.FetchTips(a.now)
		if asked := len(questions(t, a.core.Effects(), wire.GetManifest)) > 0; asked == guest {
			t.Errorf("a guest %v: asked %v", guest, asked)
		}
	}
	a, ids := joins(1, 2, 3, 4, 5)
	a.guests(t, ids[3:], ids[:3]...)
	if asked := a.voted(t, ids); len(asked) != 2 {
		t.Errorf("%d of two members vote on the tips of a third", len(asked))
	}
}

// What a guest says of itself holds up no end.
func TestGuestsDoNotSpeak(t *testing.T) {
	a := specAlone(1, 2)
	a.guests(t, []wire.PeerID{{1}}, peersOf(2, 3, 4, 9)...)
	for id, speaks := range map[byte]bool{1: false, 2: true} {
		if p := a.core.peers.find(wire.PeerID{id}); a.core.beats.speaks(p) != speaks {
			t.Errorf("%d speaks: %v", id, !speaks)
		}
	}
}
