package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
)

// owned is a run of two owners, and its genesis as far as a relay reads it.
func owned(t *testing.T) (run wire.RunID, document []byte) {
	t.Helper()
	document, err := json.Marshal(map[string]any{"Rules": 1, "Owners": []wire.PeerID{wire.PeerIDOf(key(20)), wire.PeerIDOf(key(30))}})
	if err != nil {
		t.Fatal(err)
	}
	return wire.RunID(wire.Sum(document)), document
}

// relayIn is a relay that the first owner invited and that remembers in a folder.
func relayIn(t *testing.T, dir string, run wire.RunID) *server {
	t.Helper()
	pass := member.Issue(key(20), run, member.Invite{}, key(21))
	s, err := open(Config{Key: key(9), Dir: dir, Profile: p2p.Local}, joinlink.Link{Run: run, Invite: &pass}, 0, p2p.NewRecords())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.host.Close() })
	return s
}

// admit has a relay judge a node that an owner invited.
func admit(t *testing.T, s *server, owner, seed byte) error {
	t.Helper()
	pass := member.Issue(key(owner), s.run, member.Invite{}, key(owner+1))
	c, err := pass.Admit(s.run, key(seed))
	if err != nil {
		t.Fatal(err)
	}
	return s.admits(hello.Record{Author: wire.PeerIDOf(key(seed)), Certificate: c.Encode()})
}

// passes reports whether a relay passes on what a node says.
func passes(s *server, seed byte) bool {
	heartbeat := wire.EncodeHeartbeat(key(seed), s.run, wire.Heartbeat{Incarnation: 1, Seq: 1, State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
	return s.check(wire.PeerID{8}, heartbeat) == nil
}

// A relay lets in whom any owner of the run invited, and passes on nothing of whom any owner revoked; also after a restart,
// before it meets anybody.
func TestAllOwnersCountAtARelay(t *testing.T) {
	const first, second, honest, revoked, stranger = 20, 30, 1, 2, 3
	run, document := owned(t)
	dir := t.TempDir()
	s := relayIn(t, dir, run)
	for owner, seed := range map[byte]byte{first: 4, 40: 5} {
		if err := admit(t, s, owner, seed); err != nil {
			t.Errorf("before genesis, which says who the owners are: %v", err)
		}
	}
	if s.accept(document); !passes(s, 4) || passes(s, 5) {
		t.Error("who came before genesis is not judged by it")
	}
	for owner, seed := range map[byte]byte{first: honest, second: revoked} {
		if err := admit(t, s, owner, seed); err != nil {
			t.Errorf("invited by owner %d: %v", owner, err)
		}
	}
	if admit(t, s, 40, stranger) == nil {
		t.Error("the invite of no owner lets in")
	}
	if !passes(s, honest) || !passes(s, revoked) || passes(s, stranger) {
		t.Error("not just what members say passes")
	}
	say := func(owner byte, name wire.PeerID) {
		word := wire.SignHeader(key(owner), run, wire.NewRevocation(0, 1, wire.Digest(name), []byte("it lies")))
		s.event(t.Context(), p2p.Message{Data: wire.EncodeHeader(word, nil)})
	}
	say(second, wire.PeerIDOf(key(revoked)))
	say(40, wire.PeerIDOf(key(honest)))
	check := func(when string, s *server) {
		t.Helper()
		if s.members.Member(wire.PeerIDOf(key(revoked))) || admit(t, s, second, revoked) == nil {
			t.Errorf("%s: the revoked one is a member", when)
		}
		if !s.members.Member(wire.PeerIDOf(key(honest))) || s.document() == nil {
			t.Errorf("%s: a member is none, or genesis is not known", when)
		}
	}
	check("heard", s)
	if passes(s, revoked) {
		t.Error("what the revoked one says passes")
	}
	if err := s.host.Close(); err != nil {
		t.Fatal(err)
	}
	check("after a restart", relayIn(t, dir, run))
}

// What a crash or a full disk left of an entry does not damage those that come after.
func TestEntriesCutShort(t *testing.T) {
	run, document := owned(t)
	dir := t.TempDir()
	s := relayIn(t, dir, run)
	s.begin(document)
	if err := admit(t, s, 20, 1); err != nil {
		t.Fatal(err)
	}
	cutShort := func() {
		whole, err := os.ReadFile(s.files.members)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.files.members, append(whole, "cut short"...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cutShort()
	if err := os.WriteFile(s.files.genesis, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = relayIn(t, dir, run)
	if s.document() != nil {
		t.Error("takes a damaged genesis")
	}
	if err := admit(t, s, 20, 2); err != nil {
		t.Fatal(err)
	}
	cutShort() // by a disk that was full for a moment: the relay goes on
	if err := admit(t, s, 20, 3); err != nil {
		t.Fatal(err)
	}
	s = relayIn(t, dir, run)
	for seed := range byte(3) {
		if !s.members.Member(wire.PeerIDOf(key(seed + 1))) {
			t.Errorf("member %d is forgotten", seed+1)
		}
	}
}

// A relay whose genesis is damaged has it from a peer, and with it those again whom other owners admitted and revoked.
func TestMembersOutliveGenesis(t *testing.T) {
	const second, honest, revoked = 30, 1, 2
	run, document := owned(t)
	dir := t.TempDir()
	s := relayIn(t, dir, run)
	s.accept(document)
	for _, seed := range []byte{honest, revoked} {
		if err := admit(t, s, second, seed); err != nil {
			t.Fatal(err)
		}
	}
	word := wire.SignHeader(key(second), run, wire.NewRevocation(0, 1, wire.Digest(wire.PeerIDOf(key(revoked))), []byte("it lies")))
	s.event(t.Context(), p2p.Message{Data: wire.EncodeHeader(word, nil)})
	if err := os.WriteFile(s.files.genesis, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	s = relayIn(t, dir, run)
	s.accept(document)
	if !s.members.Member(wire.PeerIDOf(key(honest))) || s.members.Member(wire.PeerIDOf(key(revoked))) {
		t.Error("not just the one that is not revoked is a member")
	}
	if admit(t, s, second, revoked) == nil {
		t.Error("the revoked one is admitted")
	}
}

// A relay that was away while an owner revoked a node hears of it from the first that comes, knows it after a restart, and tells others
// why. What no owner signed counts for nothing.
func TestRelayHearsWhatItMissed(t *testing.T) {
	run, document := owned(t)
	dir := t.TempDir()
	s := relayIn(t, dir, run)
	word := func(owner, name byte) member.Word {
		h := wire.NewRevocation(0, 1, wire.Digest(wire.PeerIDOf(key(name))), []byte("it lies"))
		return member.Word{Statement: wire.SignHeader(key(owner), run, h), Reason: "it lies"}
	}
	pass := member.Issue(key(20), run, member.Invite{}, key(21))
	tell := func(seed byte, words ...member.Word) {
		h := invitedNode(t, run, seed, &pass)
		list := wire.PeerList{}
		for _, w := range words {
			list.Words = append(list.Words, w.Encode())
		}
		h.Handle(func(_ context.Context, _ wire.PeerID, request []byte) []byte {
			if r, err := wire.DecodeRequest(request); err == nil && r.Kind == wire.GetGenesis {
				return wire.Found(document)
			}
			return wire.Found(list.Encode())
		})
		if _, err := h.Dial(t.Context(), s.host.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		for up := false; !up; {
			e := <-s.host.Events()
			_, up = e.(p2p.PeerUp)
			s.event(t.Context(), e)
		}
		s.work.Wait()
	}
	tell(1, word(40, 3))
	tell(2, word(30, 4))
	if err := s.host.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*server{s, relayIn(t, dir, run)} {
		if admit(t, s, 20, 3) != nil || admit(t, s, 20, 4) == nil {
			t.Error("not just the revoked one is refused")
		}
		list, err := wire.DecodePeerList(s.peerList(wire.PeerID{7}))
		if err != nil || len(list.Words) != 1 || !bytes.Equal(list.Words[0], word(30, 4).Encode()) {
			t.Errorf("tells %d words, %v", len(list.Words), err)
		}
	}
}
