package replica_test

import (
	"errors"
	"testing"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// votes has the replica of a run that votes start over its disk.
func (g *rig) votes() *rig {
	g.finality = &core.Finality{StepMs: 1000}
	return g
}

// certificateOf is one of a height that nobody has to believe.
func certificateOf(height uint32) finality.Certificate {
	return finality.Certificate{
		Height: height, Seals: []finality.Seal{{}},
		Value: finality.Value{Round: 64 * (height + 1), Points: make([]finality.Point, 2), Voters: []wire.PeerID{{1}}},
	}
}

// Votes and certificates are on the disk when the machine hears of it, and are there after a restart.
func TestVotesAreKept(t *testing.T) {
	g := newRig(t).votes().start()
	state := finality.State{Height: 2, View: 3}
	g.do(gossip.SaveVotes{State: state.Encode(), Certificates: []finality.Certificate{certificateOf(0), certificateOf(1)}}).settle()
	want(t, "errors", len(g.checked), 0)
	again := newRig(t).votes()
	again.disk = g.disk
	again.start()
	want(t, "certificates after a restart", again.was.Final.Last.Height, 1)
	want(t, "the view of the state", again.was.Final.State.View, 3)
	v, votes := again.Machine().Gossip().Finals()
	want(t, "the run votes", votes, true)
	want(t, "certificates that are known", v.Certified, 2)
}

// A disk that takes nothing is told of, and the machine hears of it.
func TestVotesThatCannotBeKept(t *testing.T) {
	g := newRig(t).votes().start()
	full := errors.New("no room")
	g.errs["PutVotes"] = full
	g.do(gossip.SaveVotes{State: finality.State{}.Encode()}).settle()
	wantError(t, "what is told", errors.Join(g.checked...), full)
	if state, _ := g.disk.Votes(); state != nil {
		t.Errorf("%x is on the disk", state)
	}
}

func TestCertificatesAreServed(t *testing.T) {
	g := newRig(t).votes().start()
	g.check(g.disk.PutVotes(nil, []finality.Certificate{certificateOf(0), certificateOf(1), certificateOf(2)}))
	for from, n := range map[uint32]int{0: 3, 2: 1, 3: 0} {
		g.do(gossip.ReplyFinals{Handle: 7, Height: from}).settle()
		body, err := wire.OpenResponse(g.replies[7].Response, wire.GetFinals.MaxResponse())
		g.check(err)
		list, err := wire.DecodeFinals(body)
		g.check(err)
		want(t, "certificates", len(list), n)
		if n > 0 {
			c, err := finality.Parse(list[0])
			g.check(err)
			want(t, "the first height", c.Height, from)
		}
	}
}
