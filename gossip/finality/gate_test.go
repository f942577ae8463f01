package finality

import (
	"testing"

	"atoll/gossip/wire"
)

func voteOf(author byte, height uint32) wire.Vote {
	return wire.Vote{Author: wire.PeerID{author}, Phase: wire.Prevote, Height: height}
}

// passes counts how many of n votes at one time pass.
func passes(g *Gate, now Time, n int, v wire.Vote) (passed int) {
	for range n {
		if g.Pass(now, v) {
			passed++
		}
	}
	return passed
}

// Of each voter no more pass than it makes, at once and over time; who is no voter of the height passes nothing.
func TestGateOfVoters(t *testing.T) {
	g := NewGate(wire.PeerID{9}, 1000)
	table, err := NewTable([]wire.PeerID{{1}, {2}})
	if err != nil {
		t.Fatal(err)
	}
	g.Set(5, table)
	for _, author := range []byte{1, 2} {
		if n := passes(g, 0, 100, voteOf(author, 5)); n != gateBurst {
			t.Errorf("%d votes of voter %d pass at once, want %d", n, author, gateBurst)
		}
	}
	if n := passes(g, 2000, 100, voteOf(1, 5)); n != 2*gatePerStep {
		t.Errorf("%d pass after two steps, want %d", n, 2*gatePerStep)
	}
	if n := passes(g, 100_000, 100, voteOf(1, 5)); n != gateBurst {
		t.Errorf("%d pass after a long time, want %d", n, gateBurst)
	}
	if passes(g, 100_000, 1, voteOf(3, 5)) != 0 || passes(g, 100_000, 1, voteOf(2, 4)) != 0 {
		t.Error("no voter, or a height that is over, passes")
	}
	if n := passes(g, 100_000, 100, voteOf(9, 4)); n != 100 {
		t.Errorf("%d own votes pass", n)
	}
	if passes(g, 100_000, 5, voteOf(2, 5)) != 5 || passes(g, 50_000, 100, voteOf(2, 5)) != gateBurst-5 {
		t.Error("a clock that went back")
	}
}

// Where the voters are not known all authors together have as many votes as voters make, however many there are. So have
// those of heights to come who do not vote now.
func TestGateOfStrangers(t *testing.T) {
	g, all := NewGate(wire.PeerID{}, 1000), 0
	for author := range 200 {
		all += passes(g, 0, 100, voteOf(byte(author+1), 0))
	}
	if all != gateBurst*gateOthers {
		t.Errorf("%d votes of 200 authors pass, want %d", all, gateBurst*gateOthers)
	}
	if n := len(g.shares); n != 1 {
		t.Errorf("%d shares are kept", n)
	}
	table, _ := NewTable([]wire.PeerID{{1}})
	g.Set(0, table)
	if passes(g, 0, 100, voteOf(2, 1)) != 0 {
		t.Error("their share is full again")
	}
	if n := passes(g, 0, 100, voteOf(1, 1)); n != gateBurst {
		t.Errorf("%d votes of a voter for the next height pass, want %d", n, gateBurst)
	}
	g.Set(1, Table{})
	if passes(g, 100_000, 1, voteOf(2, 0)) != 0 {
		t.Error("voters are forgotten")
	}
}

// What a vote looks like before its signature is checked takes nothing from its author, and says whether it would pass.
func TestGateSpares(t *testing.T) {
	table, _ := NewTable([]wire.PeerID{{1}})
	g := NewGate(wire.PeerID{9}, 1000)
	g.Set(0, table)
	for range 10 * gateBurst {
		if !g.Spares(0, voteOf(1, 0)) {
			t.Fatal("a forgery took a vote of a voter")
		}
	}
	if n := passes(g, 0, 100, voteOf(1, 0)); n != gateBurst {
		t.Errorf("%d votes pass", n)
	}
	if g.Spares(0, voteOf(1, 0)) || g.Spares(0, voteOf(2, 0)) {
		t.Error("one too many, or of nobody who votes, has its signature checked")
	}
}

// A voter whose certificates are lost signs nothing where it may have signed before.
func TestResumeWithoutCertificates(t *testing.T) {
	r, at := notProposing(t)
	r.v = New(Config{Run: testRun, Key: keys(4)[at], Every: every, StepMs: 10}, r.chain)
	r.v.Resume(&r.last, &State{Height: 3})
	r.tick(0)
	r.get(r.signer[r.proposer(0)](wire.Propose, 0, r.chain.value(2*every), 0))
	r.get(r.all(others(at)[:3], wire.Prevote, 0, r.chain.value(2*every))...)
	r.tick(1000)
	if len(r.out) > 0 || r.v.Voting() {
		t.Errorf("signed %+v", r.out)
	}
	r.v.VoteFrom(1)
	r.tick(1000)
	if len(r.out) == 0 || !r.v.Voting() {
		t.Error("signs nothing")
	}
}

// Votes are those that are kept, without those that are named, and no more than asked for.
func TestVotesOfAVoter(t *testing.T) {
	r, at := notProposing(t)
	r.tick(0)
	value := r.chain.value(2 * every)
	r.get(r.signer[r.proposer(0)](wire.Propose, 0, value, 0))
	r.get(r.all(others(at)[:2], wire.Prevote, 0, value)...)
	all := r.v.Votes(100, func(wire.SignedVote) bool { return false })
	if len(all) != 5 { // a proposal, three prevotes, and its own precommit
		t.Fatalf("%d votes: %+v", len(all), all)
	}
	skipped := all[1]
	some := r.v.Votes(100, func(s wire.SignedVote) bool { return s == skipped })
	if few := r.v.Votes(2, func(wire.SignedVote) bool { return false }); len(some) != 4 || len(few) != 2 || r.v.Bears() != wire.BearsYes {
		t.Errorf("%d without one, %d of two, bears %v", len(some), len(few), r.v.Bears())
	}
}

// A chain that goes elsewhere at an older certificate is another one, whether it got to the newest or not.
func TestBearsByOlderCertificates(t *testing.T) {
	all := keys(4)
	mine, theirs := &ledger{closed: 3 * every, voters: idsOf(all)}, &ledger{closed: 10 * every, voters: idsOf(all)}
	v := New(Config{Run: testRun, Every: every, StepMs: 10}, mine)
	list := []Certificate{}
	for h := range uint32(200) {
		list = append(list, sealedBy(all, h, theirs.value((h+1)*every), 0, 1, 2))
	}
	if err := v.Learn(0, list[:5]); err != nil || v.Bears() != wire.BearsUnknown {
		t.Fatalf("of certificates beyond the chain: %v, %v", v.Bears(), err)
	}
	mine.closed = 6 * every
	if v.Bears() != wire.BearsYes {
		t.Errorf("the chain got there: %v", v.Bears())
	}
	mine.fork, mine.name = 5*every+1, 1
	if err := v.Learn(0, list[5:]); err != nil || v.Bears() != wire.BearsNo || len(v.open) > maxOpen {
		t.Errorf("it went elsewhere long ago: %v, %d are kept, %v", v.Bears(), len(v.open), err)
	}
}
