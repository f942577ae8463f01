package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/testnet/fault"
)

// voters is a world in which n learners vote. Its union window is short, so that rounds are soon final.
func voters(n, steps int) Scenario {
	s := calmScenario(n, steps)
	s.Finality = true
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 8
	return s
}

// certified is the least and the most certificates of nodes that are up.
func (w *World) certified() (least, most uint32) {
	least = ^uint32(0)
	for _, n := range w.alive() {
		v, _ := n.machine.Gossip().Finals()
		least, most = min(least, v.Certified), max(most, v.Certified)
	}
	return least, most
}

// ends plays a world to its end, at which all nodes have the certificates and chains that go through them.
func (w *World) ends(t *testing.T) {
	t.Helper()
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	least, most := w.certified()
	t.Logf("%d rounds, %d to %d certificates", w.closed(), least, most)
	if most-least > 1 {
		t.Errorf("%d to %d certificates\n%s", least, most, w)
	}
	for _, n := range w.alive() {
		if v, _ := n.machine.Gossip().Finals(); v.BorneOut == wire.BearsNo {
			t.Errorf("node %d: its chain is not the certified one: %+v", n.index, v)
		}
	}
}

// Members that come later vote, though keys that they never met have deltas in rounds before their tips: guests that made one
// delta each, before anybody else came.
func TestLateMembersVote(t *testing.T) {
	t.Parallel()
	s := voters(2, 6400)
	s.Params.WindowUnion = 64
	s.Founders[1] = NodeSpec{Guest: true, Observer: true, Attack: Attack{Kind: OneClaim, From: 3000}}
	for range 3 {
		s.Faults = append(s.Faults, Fault{At: 70_000, Kind: fault.Join})
	}
	w := newWorld(t, s)
	w.nodes[1].liar.behaviour = behaviour{answer: answerForged, act: func(l *liar) {
		if l.n.w.now < Start+66_000 && l.acted%20 == 0 {
			for p := range l.n.w.plan {
				l.announce(l.forge(p, l.openRound(p)))
			}
		}
	}}
	w.ends(t)
	for _, n := range w.alive() {
		if v, _ := n.machine.Gossip().Finals(); n.liar == nil && !v.Votes {
			t.Errorf("node %d does not vote", n.index)
		}
	}
}

// Rounds are certified as they become final, and all nodes have the certificates.
func TestCertifies(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 4, 7} {
		w := newWorld(t, voters(n, 400*n))
		w.ends(t)
		if least, _ := w.certified(); least < 4 {
			t.Errorf("%d voters: %d certificates in %d rounds", n, least, w.closed())
		}
		for _, n := range w.nodes {
			if v, _ := n.machine.Gossip().Finals(); v.BorneOut != wire.BearsYes || v.Voters != len(w.nodes) || !v.Votes {
				t.Errorf("node %d: %+v", n.index, v)
			}
		}
	}
}

// Of a run that parts only a side with more than two thirds of the voters goes on to certify. When the sides meet, all
// have its certificates, and those who folded something else take its chain.
func TestCertifiesThroughAPartition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		nodes int
		alone []int
		goes  bool
	}{
		"one of five":  {5, []int{4}, true},
		"two of five":  {5, []int{3, 4}, false},
		"two of four":  {4, []int{2, 3}, false},
		"one of three": {3, []int{2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := voters(c.nodes, 1200*c.nodes)
			s.Faults = []Fault{{At: 14_000, Kind: fault.Partition, Others: c.alone}, {At: 40_000, Kind: fault.Merge}}
			s.CalmMs = 41_000
			w := newWorld(t, s)
			w.RunFor(16_000)
			_, before := w.certified()
			w.RunFor(23_000)
			_, after := w.certified()
			t.Logf("%d certificates at the partition, %d at its end\n%s", before, after, w)
			if before == 0 || c.goes != (after > before+3) || !c.goes && after > before+1 {
				t.Errorf("%d certificates at the partition, %d at its end", before, after)
			}
			w.ends(t)
			if least, _ := w.certified(); least <= after+1 {
				t.Errorf("%d certificates at the end, %d when the sides met", least, after)
			}
		})
	}
}

// Voters that are killed, and machines that lose power, never sign two votes of one phase and view, and go on.
func TestVotersComeBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		s := voters(4, 7000)
		s.Seed = seed
		for i := range 20 {
			kind := []fault.Verb{fault.Kill, fault.PowerCut}[i%2]
			at := Time(6000 + 1700*i + 137*int(seed)*i%900)
			s.Faults = append(s.Faults, Fault{At: at, Kind: kind, Node: i % 4}, Fault{At: at + 700, Kind: fault.Start, Node: i % 4})
		}
		s.CalmMs = 42_000
		w := newWorld(t, s)
		w.ends(t)
		if least, _ := w.certified(); least < 8 {
			t.Errorf("seed %d: %d certificates in %d rounds", seed, least, w.closed())
		}
	}
}

// Nodes that join a run of one are among its voters as soon as their deltas are folded, though their own chains begin in the
// middle of the rounds that elect them. Without their votes nothing would be certified any more.
func TestJoinersVote(t *testing.T) {
	t.Parallel()
	for _, joiners := range []int{1, 3} {
		for i := range Time(2) {
			s := voters(1, 1600*(1+joiners))
			s.Params.WindowUnion = 64
			for range joiners {
				s.Faults = append(s.Faults, Fault{At: 70_000 + i*5_500, Kind: fault.Join})
			}
			w := newWorld(t, s)
			w.ends(t)
			v, _ := w.nodes[0].machine.Gossip().Finals()
			if least, _ := w.certified(); v.Voters != 1+joiners || v.Last.Value.Round+64+2*16 < w.closed() {
				t.Errorf("%d joiners: %d certificates, the newest of round %d of %d, %d voters", joiners, least, v.Last.Value.Round, w.closed(), v.Voters)
			}
		}
	}
}

// A restart finds the history again: where every voter is needed, certificates go on soon after it, at their usual pace.
func TestARestartVotesOn(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Verb{fault.Kill, fault.PowerCut} {
		s := voters(3, 3600)
		s.Faults = []Fault{{At: 15_000, Kind: kind, Node: 1}, {At: 15_500, Kind: fault.Start, Node: 1}}
		w := newWorld(t, s)
		w.RunFor(14_900)
		_, before := w.certified()
		w.RunFor(10_000)
		least, _ := w.certified()
		v, _ := w.nodes[1].machine.Gossip().Finals()
		if least < before+3 || v.BorneOut != wire.BearsYes || w.nodes[1].Installs > 0 {
			t.Errorf("%v: %d certificates before, %d after; took tips %d times: %+v", kind, before, least, w.nodes[1].Installs, v)
		}
		w.ends(t)
	}
}

// A key whose disk is lost leaves out the votes that it may have taken part in, and then votes again.
func TestALostDiskVotesAgain(t *testing.T) {
	t.Parallel()
	s := voters(4, 7000)
	s.Faults = []Fault{{At: 15_000, Kind: fault.Wipe, Node: 1}, {At: 15_500, Kind: fault.Start, Node: 1}}
	w := newWorld(t, s)
	w.until(t, "it is ready", 60_000, func() bool { return w.now > Start+16_000 && w.nodes[1].up && w.nodes[1].ready() && !w.nodes[1].keyOnly })
	w.until(t, "it votes", 30_000, func() bool {
		v, _ := w.nodes[1].machine.Gossip().Finals()
		return v.Votes && v.BorneOut == wire.BearsYes
	})
	w.nodes[0].disturb(Fault{Kind: fault.Kill}) // the other three are enough if it votes as well
	_, before := w.certified()
	w.until(t, "they certify", 30_000, func() bool { _, most := w.certified(); return most > before+2 })
	w.nodes[0].disturb(Fault{Kind: fault.Start})
	w.ends(t)
}

// A voter that signs two votes of each phase and view, and shows each to one half, is found out, and stops nobody:
// there are never two certificates of one height.
func TestALiarVotesTwice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		s := voters(4, 2400)
		s.Seed, s.Founders[3].Attack = seed, Attack{Kind: TwoVotes}
		w := newWorld(t, s)
		w.ends(t)
		if least, _ := w.certified(); least < 8 {
			t.Errorf("seed %d: %d certificates in %d rounds", seed, least, w.closed())
		}
		if w.checks.caught["voted twice"] == 0 {
			t.Errorf("seed %d: nobody tells of it: %v", seed, w.checks.caught)
		}
	}
}

// Random worlds keep every promise where nodes vote: joins, restarts, partitions and lost disks.
func TestVotingSchedules(t *testing.T) {
	t.Parallel()
	certificates := uint32(0)
	from, to := seedsUnder(t, votingSeeds)
	for seed := from; seed < to; seed++ {
		s := Explore(seed)
		s.Finality = true
		s.Params.WindowAccept, s.Params.WindowUnion = min(s.Params.WindowAccept, 8), min(s.Params.WindowUnion, 12)
		w, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		w.Finish()
		if w.Err() != nil {
			t.Errorf("seed %d, voting: %v", seed, w.Err())
		}
		_, most := w.certified()
		t.Logf("seed %d: %d certificates in %d rounds, %d nodes", seed, most, w.closed(), len(w.nodes))
		certificates += most
	}
	if uint64(certificates) < to-from {
		t.Errorf("only %d certificates in %d worlds", certificates, to-from)
	}
}

// votingSeeds are few: the schedules are those of TestAnySchedule.
const votingSeeds = 6

// Of two sides that part the one that certified wins when they meet, though the other one folded more tokens in as many
// rounds: five voters of seven, four of them slow, and two that are as fast as the fifth.
func TestTheCertifiedChainWins(t *testing.T) {
	t.Parallel()
	s := voters(7, 9000)
	for i := range 4 {
		s.Founders[i].Slow = 6
	}
	s.Params.HMin = 1
	s.Faults = []Fault{{At: 30_000, Kind: fault.Partition, Others: []int{5, 6}}, {At: 60_000, Kind: fault.Merge}}
	s.CalmMs, s.LimitMs = 61_000, 800_000
	w := newWorld(t, s)
	w.RunFor(59_900)
	tokens := func(n *Node) uint64 { return n.machine.View().FoldedTokens() }
	fast, others := w.nodes[5], w.nodes[0]
	_, most := w.certified()
	v, _ := fast.machine.Gossip().Finals()
	t.Logf("%d certificates, %d on the other side; %d tokens, %d on the other side\n%s", most, v.Certified, tokens(others), tokens(fast), w)
	if most <= v.Certified+2 || tokens(fast) <= tokens(others) {
		t.Fatal("the world shows nothing")
	}
	w.until(t, "one chain", 60_000, w.oneChain)
	if fast.Installs == 0 || others.Installs > 0 {
		t.Errorf("the chain that nobody certified wins: tips were taken %d times there, %d times here", fast.Installs, others.Installs)
	}
	w.ends(t)
}
