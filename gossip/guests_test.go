package gossip

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// guests makes peers guests of the run, and others members.
func (a *alone) guests(t testing.TB, guests []wire.PeerID, members ...wire.PeerID) {
	t.Helper()
	owner := testKey(50)
	a.core.env.Config.Members = member.NewTable(a.run, []wire.PeerID{wire.PeerIDOf(owner)})
	a.core.env.cfg.Members = a.core.env.Config.Members
	for i, ids := range [][]wire.PeerID{members, guests} {
		pass := member.Issue(owner, a.run, member.Invite{Guests: i == 1}, testKey(52+i))
		for _, id := range ids {
			if _, err := a.core.env.cfg.Members.Add(pass.AdmitOther(a.run, id)); err != nil {
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
	a.core.env.Config.Trusted = []wire.PeerID{{2}, {3}}
	for id, known := range map[wire.PeerID]bool{{1}: false, {2}: false, {3}: true} {
		if a.core.env.Known(id) != known || a.core.env.Trusts(id) != known {
			t.Errorf("%v is known: %v, trusted: %v", id, a.core.env.Known(id), a.core.env.Trusts(id))
		}
	}
}

// Most members have left the chain of the node: then it takes the snapshot of anybody that is no guest.
func specGuestSnapshot(t *testing.T, _ *spectest.Spec) {
	for _, guest := range []bool{false, true} {
		a := specAlone(2, 3, 4)
		if guest {
			a.guests(t, []wire.PeerID{{1}}, peersOf(2, 3, 4, 9)...)
		}
		a.chain.contributed = map[wire.PeerID]bool{{2}: true, {3}: true, {4}: true}
		for id := byte(2); id < 4; id++ {
			for range 2 {
				a.told(id, func(b *wire.Heartbeat) { apart(b); b.Folded = 1000 })
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
	a.core.Complete(a.now, h.Header.ID(a.run), nil)
	if e = append(e, a.core.Effects()...); count[CatchUp](e) != 0 || count[Offer](e) != 1 {
		t.Errorf("%v", e)
	}
}

// A joiner whose link names a guest waits for others, and does not ask guests to vote.
func specGuestSources(t *testing.T, _ *spectest.Spec) {
	for _, guest := range []bool{false, true} {
		a, ids := joins(1)
		if a.core.env.Config.Trusted = ids; guest {
			a.guests(t, ids)
		}
		a.core.FetchSnapshot(a.now)
		if asked := len(questions(t, a.core.Effects(), wire.GetManifest)) > 0; asked == guest {
			t.Errorf("a guest %v: asked %v", guest, asked)
		}
	}
	a, ids := joins(1, 2, 3, 4, 5)
	a.guests(t, ids[3:], ids[:3]...)
	if asked := a.voted(t, ids); len(asked) != 2 {
		t.Errorf("%d of two members vote on the snapshot of a third", len(asked))
	}
}

// Guests give chunks of a member's snapshot where no other member has the right ones.
func specGuestChunks(t *testing.T, _ *spectest.Spec) {
	for members := 1; members <= 2; members++ {
		a, ids := joins(1, 2, 3, 4)
		a.guests(t, ids[members:], ids[:members]...)
		a.core.env.Config.Trusted = ids[:1]
		e := a.gives(a.begins(t), 1, a.tipsOf(ids[0], 5, 1))
		chunk := questions(t, e, wire.GetChunk)[0]
		for _, id := range ids[1:members] {
			q := questions(t, e, wire.GetSnapshot)
			if len(q) != 1 || q[0].call.To != id {
				t.Fatalf("asks %+v, there is another member", q)
			}
			e = a.fails(q[0], wire.NotFound)
		}
		if q := questions(t, e, wire.GetSnapshot); len(q) > 0 {
			t.Fatalf("asks %+v, the source is there", q)
		}
		q := questions(t, a.answer(chunk, []byte("wrong")), wire.GetSnapshot)
		if len(q) != len(ids)-members {
			t.Fatalf("beside %d members asks %+v", members, q)
		}
		guest := q[0].call.To
		e = a.gives(q[0], slices.Index(ids, guest)+1, a.tipsOf(guest, 5, 1))
		if q := questions(t, e, wire.GetChunk); len(q) == 0 || q[0].call.To != guest {
			t.Errorf("beside %d members asks %+v for chunks", members, q)
		}
	}
}

// What a guest says of itself holds up no end.
func TestGuestsDoNotSpeak(t *testing.T) {
	a := specAlone(1, 2)
	a.guests(t, []wire.PeerID{{1}}, peersOf(2, 3, 4, 9)...)
	for id, speaks := range map[byte]bool{1: false, 2: true} {
		if p := a.core.env.Find(wire.PeerID{id}); a.core.peers.Heartbeats.Speaks(p) != speaks {
			t.Errorf("%d speaks: %v", id, !speaks)
		}
	}
}

// admitted signs a header of a key for a round, by an invite for guests or another, and makes its certificate known.
func (a *alone) admitted(t testing.TB, key int, round uint32, tokens uint64, guests bool) wire.SignedHeader {
	t.Helper()
	c := a.certificate(t, key, guests)
	if _, err := a.core.env.cfg.Members.Add(c); err != nil {
		t.Fatal(err)
	}
	return a.names(key, round, tokens, c)
}

// certificate is that of a key, by an invite for guests or another.
func (a *alone) certificate(t testing.TB, key int, guests bool) member.Certificate {
	t.Helper()
	invite := 52
	if guests {
		invite = 53
	}
	c, err := member.Issue(testKey(50), a.run, member.Invite{Guests: guests}, testKey(invite)).Admit(a.run, testKey(key))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// names signs a header that names a certificate.
func (a *alone) names(key int, round uint32, tokens uint64, c member.Certificate) wire.SignedHeader {
	return wire.SignHeader(testKey(key), a.run, wire.Header{Round: round, Steps: 1, Tokens: tokens, Size: 1, Certificate: c.ID(a.run)})
}

// Two deltas of a guest for one round are two deltas, whichever way they come, and its key is not marked. Who became a member
// answers for what it signs as one.
func specGuestsProveNothing(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		first, second bool // it signs as a guest
		want          int
	}{
		"a guest": {true, true, 0}, "a member": {false, false, 1}, "becomes a member": {true, false, 0}, "was a member": {false, true, 0},
	} {
		for _, held := range []bool{false, true} {
			a := newAlone()
			a.guests(t, nil, peersOf(1)...)
			a.up(1)
			one, two := a.admitted(t, 9, 1, 1, c.first), a.admitted(t, 9, 1, 2, c.second)
			if held {
				a.chain.store(one, []byte{1})
			} else {
				a.brought(1, one)
			}
			e := a.brought(1, two)
			if count[EquivocationFound](e) != c.want || count[Publish](e) != c.want || count[Offer](e) != 1-c.want {
				t.Errorf("%s, the first held %v: %v", name, held, e)
			}
			if marked := a.core.headers.Against(one.Header.Author) != ""; marked != (c.want == 1) {
				t.Errorf("%s, the first held %v: marked %v", name, held, marked)
			}
			a = newAlone()
			a.guests(t, nil, peersOf(1)...)
			proof := wire.Equivocation{A: a.admitted(t, 9, 1, 1, c.first), B: a.admitted(t, 9, 1, 2, c.second)}
			a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Equivocation: &proof}})
			if e := a.core.Effects(); count[EquivocationFound](e) != c.want {
				t.Errorf("%s, by gossip: %v", name, e)
			}
			if _, stopped := a.core.env.cfg.Members.Stranger(wire.Message{Equivocation: &proof}); stopped == (c.want == 1) {
				t.Errorf("%s: passed on %v", name, !stopped)
			}
		}
	}
	a := newAlone()
	a.guests(t, nil, peersOf(1)...)
	a.brought(1, a.admitted(t, 9, 1, 1, true))
	a.brought(1, a.admitted(t, 9, 1, 2, false))
	if e := a.brought(1, a.admitted(t, 9, 1, 3, false)); count[EquivocationFound](e) != 1 {
		t.Errorf("two deltas of a member that was a guest: %v", e)
	}
}

// Equivocation proof with a certificate that is not known is not taken until it is.
func specUnknownProveNothing(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.guests(t, nil, peersOf(1)...)
	c := a.certificate(t, 9, false)
	proof := wire.Equivocation{A: a.names(9, 1, 1, c), B: a.names(9, 1, 2, c)}
	for _, known := range []bool{false, true} {
		if known {
			a.admitted(t, 9, 1, 1, false)
		}
		_, stopped := a.core.env.cfg.Members.Stranger(wire.Message{Equivocation: &proof})
		a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Equivocation: &proof}})
		if e := a.core.Effects(); (count[EquivocationFound](e) == 1) != known || stopped == known {
			t.Errorf("known %v: passed on %v, %v", known, !stopped, e)
		}
	}
}

// fetchesOf has a repair with peer 1 bring the header of a key that nobody here knows, and then what admits it.
func (a *alone) fetchesOf(t *testing.T, key int, guests bool) []Effect {
	t.Helper()
	c := a.certificate(t, key, guests)
	e := a.answer(a.lists(t, 1), wire.EncodeHeaders([]wire.SignedHeader{a.names(key, 1, 1, c)}))
	return a.answer(questions(t, e, wire.GetCertificates)[0], wire.EncodeCertificates([][]byte{c.Encode()}))
}

// In a repair a guest brings deltas of members, and a member those of all.
func specGuestsBringNoGuests(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct{ from, of, taken bool }{{true, true, false}, {true, false, true}, {false, true, true}, {false, false, true}} {
		a := newAlone()
		if c.from {
			a.guests(t, peersOf(1))
		} else {
			a.guests(t, nil, peersOf(1)...)
		}
		if e := a.fetchesOf(t, 9, c.of); (count[Offer](e) == 1) != c.taken || blamed(e) != nil {
			t.Errorf("from a guest %v, of a guest %v: %v", c.from, c.of, e)
		}
	}
}

// What a guest brings in a repair takes no more room than an invite has. What a member holds is known, whatever room there is.
func TestGuestsFillTheirRoom(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("thousands of signatures")
	}
	for _, guest := range []bool{false, true} {
		a := newAlone()
		if guest {
			a.guests(t, peersOf(1))
		} else {
			a.guests(t, nil, peersOf(1)...)
		}
		pass := member.Issue(testKey(50), a.run, member.Invite{Guests: true}, testKey(53))
		for n := 0; ; n++ {
			if _, err := a.core.env.cfg.Members.Add(pass.AdmitOther(a.run, wire.PeerID{byte(n), byte(n >> 8), 7})); err != nil {
				break
			}
		}
		if e := a.fetchesOf(t, 9, true); (count[Admitted](e) == 0) != guest {
			t.Errorf("from a guest %v: %d certificates more", guest, count[Admitted](e))
		}
	}
}

// Headers before the snapshot are kept once what admits their authors is known. Where one peer does not have it, the next is
// asked.
func specHistoryAdmitted(t *testing.T, _ *spectest.Spec) {
	a, chain := taken()
	a.guests(t, nil, peersOf(1, 2)...)
	for key := range chain.folded {
		h := chain.folded[key][0].Header
		h.Certificate = a.certificate(t, 5, h.Fragment == 0).ID(a.run)
		chain.folded[key] = []wire.SignedHeader{wire.SignHeader(testKey(5), a.run, h)}
	}
	list := [][]byte{a.certificate(t, 5, true).Encode(), a.certificate(t, 5, false).Encode()}
	kept := func(gives [][]byte) (n int) {
		t.Helper()
		e, asked := a.asked(t, func(keys []wire.RoundKey) (all []wire.SignedHeader) {
			for _, k := range keys {
				all = append(all, chain.folded[k]...)
			}
			return all
		})
		q := questions(t, e, wire.GetCertificates)
		if !asked || len(q) != 1 || len(q[0].Certificates) != len(list) || count[StoreHeader](e) != 0 {
			t.Fatalf("asks %+v, keeps %d", q, count[StoreHeader](e))
		}
		if a.core.history.complete() {
			t.Error("complete without what admits the authors")
		}
		e = a.answer(q[0], wire.EncodeCertificates(gives))
		if n = count[StoreHeader](e); blamed(e) != nil || n > 0 && count[Admitted](e) != len(list) {
			t.Errorf("blames %v, %d certificates kept", blamed(e), count[Admitted](e))
		}
		return n
	}
	if n := kept([][]byte{}); n != 0 {
		t.Errorf("keeps %d headers without any certificate", n)
	}
	if n := kept(list); n != 6 {
		t.Errorf("keeps %d headers of 6", n)
	}
	for key := range chain.folded {
		for _, h := range chain.folded[key] {
			chain.kept[h.Header.ID(a.run)] = true
		}
	}
	if !a.core.history.complete() {
		t.Error("asks on though all came")
	}
}

// Guests that answer one question and no other leave slots for repairs with members, also with one that did not answer the
// last time.
func TestGuestsHoldNoRepairs(t *testing.T) {
	for _, stalls := range []bool{false, true} {
		a := newAlone()
		a.guests(t, peersOf(1, 2, 3), peersOf(4)...)
		a.holds(9, 0, 5, 100) // something is folded
		for id := byte(1); id <= 3; id++ {
			e := a.shown(a.compares(t, id, 8, 0), 8, func(i int, r *wire.RangeAnswer) {
				if i == 0 {
					r.Sets = []wire.Digest{{5}, {6}, {7}}
				}
			})
			if len(questions(t, e, wire.GetHeaders)) != 1 {
				t.Fatalf("the repair with %d does not go on", id)
			}
		}
		a.up(4)
		a.told(4, func(b *wire.Heartbeat) { b.Closed[0] = 7 })
		repairOf(a.core.env.Find(wire.PeerID{4})).stalls = stalls
		a.core.Compare(a.now, wire.PeerID{4})
		if q := questions(t, a.core.Effects(), wire.GetRounds); len(q) != 1 || q[0].to != 4 {
			t.Errorf("stalled before %v: asks %+v", stalls, q)
		}
	}
}

// A joiner says that it waits for a member where only guests are here.
func TestJoinerAmongGuests(t *testing.T) {
	for guests := range 3 {
		a, ids := joins(1, 2)
		a.guests(t, ids[:guests], ids[guests:]...)
		a.core.FetchSnapshot(a.now)
		if text, _ := a.core.JoinPhase(); strings.Contains(text, "waits for a member") != (guests == 2) {
			t.Errorf("with %d guests of 2 peers: says %q", guests, text)
		}
	}
}

// A guest leaves out of closed rounds what other guests made and a member does not hold, and nobody else does.
func specGuestConforms(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct{ self, peer, author, out bool }{
		{true, false, true, true}, {false, false, true, false}, {true, true, true, false}, {true, false, false, false},
	} {
		a := newAlone()
		h := a.signed(9, 1)
		var guests, members []wire.PeerID
		for id, guest := range map[wire.PeerID]bool{a.core.env.cfg.Self: c.self, {1}: c.peer, h.Header.Author: c.author} {
			if guest {
				guests = append(guests, id)
			} else {
				members = append(members, id)
			}
		}
		a.guests(t, guests, members...)
		h.Header.Certificate = a.core.env.cfg.Members.Of(h.Header.Author)[0].ID(a.run)
		a.chain.store(h, []byte{1})
		a.chain.closed[0] = 2
		q := a.compares(t, 1, 4, 3)
		e := a.shown(q, 4, func(i int, r *wire.RangeAnswer) {
			if r.Closed = 4; i == 0 {
				r.Sets = []wire.Digest{{5}}
			}
		})
		e = a.answer(questions(t, e, wire.GetHeaders)[0], wire.EncodeHeaders(nil))
		if out := find[LeaveOut](e); (len(out) == 1 && out[0].ID == h.Header.ID(a.run)) != c.out {
			t.Errorf("%+v: leaves out %v", c, out)
		}
	}
}
