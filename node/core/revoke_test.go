package core

import (
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"

	"pgregory.net/rapid"
)

// What owners sign is what the outer step reads: of two invites that end in one round, in whatever order and however much of it comes,
// each ends once all that it keeps are there, and whom it keeps stays.
func TestOuterStepReadsWhatOwnersSign(t *testing.T) {
	if wire.MaxReason != outer.MaxReason {
		t.Errorf("a reason has up to %d bytes, and %d to the outer step", wire.MaxReason, outer.MaxReason)
	}
	invites := [2]wire.PeerID{{1}, {2}}
	kept := [2][]wire.PeerID{{{11}}, {{21}, {22}}}
	rapid.Check(t, func(t *rapid.T) {
		var signed []wire.Header
		var ends [2][]wire.Header
		for i, invite := range invites {
			ends[i] = wire.NewEnd(0, 3, invite, kept[i], []byte("it leaked"))
			signed = append(signed, ends[i]...)
		}
		came := rapid.Permutation(signed).Draw(t, "order")[:rapid.IntRange(0, len(signed)).Draw(t, "came")]
		var set []outer.Delta
		for i, h := range came {
			d := DeltaOf(wire.Digest{byte(i)}, h, nil)
			if err := outertest.Plain(1, 1, 0).Check(d); err != nil {
				t.Fatal(err)
			}
			set = append(set, d)
		}
		table := outer.Revoke(nil, set)
		for i, invite := range invites {
			whole := !slices.ContainsFunc(ends[i], func(h wire.Header) bool { return !slices.Contains(came, h) })
			at := func(author wire.PeerID) uint32 {
				return outer.RevokedAt(table, outer.Delta{Author: outer.Author(author), Invite: invite})
			}
			if out := at(wire.PeerID{99}) == 3; out != whole {
				t.Fatalf("invite %d: all words came: %v; who is not kept is out: %v", i, whole, out)
			}
			if slices.ContainsFunc(kept[i], func(author wire.PeerID) bool { return at(author) != 0 }) {
				t.Fatalf("invite %d: one that is kept is out", i)
			}
		}
	})
}

// Where an end of an invite never counted, as whom it keeps never came, the one that did is what others are told.
func TestEndThatCounts(t *testing.T) {
	m := invited(t, nil, nil)
	invite := wire.PeerID{1}
	for round, kept := range map[uint32][]wire.PeerID{1: {{2}, {3}}, 2: {{2}}} {
		end := wire.NewEnd(0, round, invite, kept, []byte("it leaked"))
		sh := wire.SignHeader(testKey(50), m.cfg.Run, end[len(end)-1])
		m.headers[sh.Header.ID(m.cfg.Run)] = &sh
	}
	if all := m.revocationsOf(invite); len(all) != 2 || all[0].Header.Round != 2 {
		t.Errorf("%+v", all)
	}
}

// What peers tell is kept, those words first that keep somebody, and ends this node where its own link has ended.
func TestToldByPeers(t *testing.T) {
	for _, own := range []bool{true, false} {
		m := invited(t, map[byte]bool{1: false, 2: false}, nil)
		members := m.cfg.Gossip.Members
		m.cfg.Certificate = members.Of(m.self)[0].ID(m.cfg.Run)
		stays := m.self
		if own {
			stays = wire.PeerIDOf(testKey(2))
		}
		var words []member.Word
		for _, h := range wire.NewEnd(0, 1, wire.PeerIDOf(testKey(51)), []wire.PeerID{stays}, []byte("it leaked")) {
			words = append(words, member.Word{Statement: wire.SignHeader(testKey(50), m.cfg.Run, h), Reason: "it leaked"})
		}
		fresh, err := members.AddWords(words...)
		if err != nil {
			t.Fatal(err)
		}
		m.fromGossip(0, gossip.Revoked{Words: fresh})
		e := m.Effects()
		if len(e) != 3 || e[0] != Effect(StoreRevocation{words[0]}) || e[1] != Effect(StoreRevocation{words[1]}) {
			t.Fatalf("%+v", e)
		}
		if r, ok := e[2].(Revoked); !ok || r.Own != own || !slices.Equal(r.Names, []wire.PeerID{wire.PeerIDOf(testKey(51))}) {
			t.Errorf("%+v", e[2])
		}
	}
}
