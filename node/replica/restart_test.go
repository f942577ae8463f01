package replica_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
)

func TestRestartOfNothing(t *testing.T) {
	g := newRig(t).start()
	if g.was.Saved != nil || g.was.Marked() || g.was.Tips[0].State != g.tips[0].State {
		t.Errorf("an empty disk has %+v", g.was.Saved)
	}
}

func TestRestart(t *testing.T) {
	g := newRig(t).write(4, true).write(2, false)
	g.check(g.disk.RaiseMark(1, 9))
	_, a, _ := g.signed(0, 9, g.keys[2])
	_, b, _ := g.signed(1, 9, g.keys[2])
	g.check(g.disk.PutEquivocation(wire.Equivocation{A: a, B: b}))
	g.start()
	for p, s := range g.was.Saved {
		if tip := g.was.Tips[p]; tip.Round != 4 || s.Closed != 6 || len(s.Held) != 12 || len(s.Headers) != 12 || s.History[len(s.History)-1].Chain != tip.Chain {
			t.Errorf("fragment %d: tip %d, closed %d, %d held", p, tip.Round, s.Closed, len(s.Held))
		}
		wantRounds(t, "bases", s.Bases, 0, 4)
		want(t, "folded since", g.Machine().Rounds().Fragment(p).Tip().State, g.tips[p].State)
	}
	if g.was.Saved[0].Mark != 0 || g.was.Saved[1].Mark != 9 || !g.was.Marked() {
		t.Errorf("marks %d %d", g.was.Saved[0].Mark, g.was.Saved[1].Mark)
	}
	want(t, "excluded", g.Machine().Rounds().Excluded(outer.Author(wire.PeerIDOf(g.keys[2]))), true)
}

// credited records who has contributed, in the order in which it was told.
type credited struct{ authors []wire.PeerID }

func (c *credited) Contributed(author wire.PeerID)              { c.authors = append(c.authors, author) }
func (c *credited) Know(wire.PeerID)                            {}
func (c *credited) Tick(gossip.Time, bool, []uint32, limit.Fit) {}

// A restart credits authors in the order of folds: the places of an invite go to the first.
func TestRestartCreditsInTheOrderOfFolds(t *testing.T) {
	const authors = 16
	g, c := newRig(t), &credited{}
	var want []wire.PeerID
	for i := range byte(authors) {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{100 + i}, ed25519.SeedSize))
		g.keys[2] = key
		g.write(1, i == 0) // keys[1] has a delta in each round
		want = append(want, wire.PeerIDOf(key))
	}
	g.limiter = c
	g.start()
	got := slices.DeleteFunc(c.authors, func(a wire.PeerID) bool { return a == wire.PeerIDOf(g.keys[1]) })
	if !slices.Equal(got, want) {
		t.Errorf("credited %v, want %v", got, want)
	}
}

// A replica that was stopped before it had folded anything may have genesis on disk. A
// later start needs the link of it, too, to fold the first rounds again.
func TestRestartWithGenesisOnDisk(t *testing.T) {
	g := newRig(t).write(0, true).write(4, true).write(2, false).start()
	for p, s := range g.was.Saved {
		wantRounds(t, "bases", s.Bases, 0, 4)
		if s.History[0].Round != 0 || len(s.History) != 5 {
			t.Errorf("fragment %d: %d links from round %d on", p, len(s.History), s.History[0].Round)
		}
	}
}

// A replica that was killed after it had signed, before any round closed, must still
// know that it has signed.
func TestRestartAfterTheFirstSignature(t *testing.T) {
	g := newRig(t)
	g.check(g.disk.RaiseMark(0, 1))
	if g.start(); g.was.Saved == nil || g.was.Saved[0].Mark != 1 {
		t.Errorf("saved %+v", g.was.Saved)
	}
}

// Bases that do not belong to the recorded chain are no ground to build on.
func TestRestartDropsBasesThatDoNotFit(t *testing.T) {
	g := newRig(t).write(2, true).write(2, false)
	for _, round := range []uint32{4, 9} { // of a fold, and of a round, that was not recorded
		stale := *g.tips[0]
		stale.Round, stale.State = round, outer.Digest{1}
		g.check(g.disk.PutBase(0, &stale))
	}
	damaged := *g.tips[1]
	g.check(g.disk.PutBase(1, &damaged))
	g.errs["Base 1 4"] = replica.ErrGone
	g.check(g.tryStart())
	for p, s := range g.was.Saved {
		wantRounds(t, "bases", s.Bases, 0, 2)
		wantRounds(t, "on disk", g.onDisk(p), 2)
		if g.was.Tips[p].Round != 2 || s.Closed != 4 {
			t.Errorf("fragment %d: tip %d, closed %d", p, g.was.Tips[p].Round, s.Closed)
		}
	}
}

// Own deltas go back to the learner, unless the disk has damaged them: then they are
// others' if a peer has them, and told of.
func TestRestartOfOwnDeltas(t *testing.T) {
	for _, lost := range []bool{false, true} {
		g := newRig(t).write(3, true)
		l := &learner{g: g}
		g.learner = l
		id, h, payload := g.signed(0, 4, g.keys[0])
		g.check(g.disk.PutOwn(core.StoreOwn{ID: id, Header: h, Payload: payload, Seq: 7}))
		if lost {
			g.errs["Payload "+id.String()] = replica.ErrGone
		}
		g.start()
		want(t, "next number", g.was.Next, 8)
		want(t, "restored", l.restored == 1, !lost)
		want(t, "own", g.readable(7) == 1, !lost)
		told := saw[replica.Damaged](g)
		if len(told) > 0 != lost || lost && !errors.Is(told[0].Err, replica.ErrOwnLost) {
			t.Errorf("lost %v, told %v", lost, told)
		}
		own, _ := g.disk.Own() // which has no errors
		want(t, "own deltas on disk", len(own) == 0, lost)
	}
}

// A disk that cannot be read is no ground to begin on.
func TestRestartOfABadDisk(t *testing.T) {
	bad := errors.New("cannot be read")
	for _, what := range []string{"Bases", "Rounds", "Own", "Equivocation", "Payload", "Restore"} {
		g := newRig(t).write(3, true)
		g.learner = &learner{g: g}
		id, h, payload := g.signed(0, 4, g.keys[0])
		g.check(g.disk.PutOwn(core.StoreOwn{ID: id, Header: h, Payload: payload}))
		if g.errs[what] = bad; what == "Restore" {
			g.learner = &learner{g: g, err: bad}
		}
		wantError(t, what, g.tryStart(), bad)
	}
}
