package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/testnet/fault"
)

// losesBases takes all bases of a fragment above a round off the disk of a node that is down.
func (n *Node) losesBases(t *testing.T, p int, above uint32) {
	t.Helper()
	kept, _ := n.disk.Bases(p)
	for _, round := range kept {
		if round > above {
			_ = n.disk.DropBase(p, round)
		}
	}
	if n.disk.Commit(); len(kept) == 0 {
		t.Fatal("it had no bases")
	}
}

// losesPayload takes the payloads of a round off the disk.
func (n *Node) losesPayload(t *testing.T, p int, round uint32) {
	t.Helper()
	l, known := n.disk.Record(p, round)
	if !known || len(l.Folded) == 0 {
		t.Fatalf("there is no record of round %d", round)
	}
	for _, id := range l.Folded {
		_ = n.disk.DropPayload(wire.Digest(id))
		n.book.settles(diskLost, []wire.Digest{wire.Digest(id)})
	}
}

// comesBackWith kills nodes after 20 s, changes what their disks have, and starts them again.
func (w *World) comesBackWith(change func(n *Node), nodes ...*Node) {
	w.RunFor(20_000)
	for _, n := range nodes {
		n.disturb(Fault{Kind: fault.Kill})
		change(n)
	}
	w.RunFor(300)
	for _, n := range nodes {
		n.disturb(Fault{Kind: fault.Start})
	}
}

// A node whose disk has lost what it takes to fold its chain again takes tips as a joiner does. What it had certified
// stays (checkFinal looks at each round), and it votes on.
func TestLostChainIsTakenFromPeers(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(n *Node){
		"all bases of a fragment": func(n *Node) { n.losesBases(t, 2, 0) },
		"all bases of all":        func(n *Node) { n.losesBases(t, 0, 0); n.losesBases(t, 1, 0); n.losesBases(t, 2, 0) },
		"bases and payloads":      func(n *Node) { n.losesBases(t, 1, 0); n.losesPayload(t, 1, 3); n.losesPayload(t, 1, 7) },
		"payloads after a base": func(n *Node) {
			closed := n.machine.Rounds().Fragment(0).Closed()
			n.losesBases(t, 0, closed-13)
			n.losesPayload(t, 0, closed-n.w.s.Params.WindowUnion)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, voters(3, 3600))
			n := w.nodes[1]
			w.comesBackWith(lose, n)
			_, before := w.certified()
			if n.machine.View().State() != wire.Joining {
				t.Errorf("it says %v", n.machine.View().State())
			}
			w.look(t, "it is ready", 5, 10_000, func() bool {
				return n.ready()
			})
			if n.Installs != 1 || !n.told("takes the model from a peer") {
				t.Errorf("it took tips %d times\n%v", n.Installs, w.checks.told[n])
			}
			w.until(t, "all certify", 20_000, func() bool { least, _ := w.certified(); return least > before+4 })
			w.ends(t)
		})
	}
}

// A node that finds nobody to take tips from folds again what its disk has, and the run goes on to its end. If that is all that
// there was, it is the same chain, and it certifies on.
func TestLostBasesAlone(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		w := newWorld(t, voters(n, 900*n))
		w.comesBackWith(func(n *Node) { n.losesBases(t, 1, 0) }, w.nodes...)
		_, before := w.certified()
		if took := w.readyAfter(t, w.nodes[0], 30_000); took < aloneMs {
			t.Errorf("%d nodes: ready after %d ms", n, took)
		}
		if !w.nodes[0].told("goes on with what the disk has") || w.nodes[0].Installs > 0 {
			t.Errorf("%d nodes: %d installs\n%v", n, w.nodes[0].Installs, w.checks.told[w.nodes[0]])
		}
		w.ends(t)
		if least, _ := w.certified(); least < before+4 {
			t.Errorf("%d nodes: %d certificates, %d before", n, least, before)
		}
	}
}

// If a part of that is lost the node goes on, on another chain than was certified: it knows so, and certifies no more.
func TestLostPayloadsAlone(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]bool{"as it starts": false, "when it folds": true} {
		w := newWorld(t, voters(1, 900))
		n := w.nodes[0]
		var round uint32
		w.comesBackWith(func(n *Node) {
			round = n.machine.Rounds().Fragment(0).Closed() - w.s.Params.WindowUnion
			if n.losesBases(t, 0, round-5); !later {
				n.losesPayload(t, 0, round)
			}
		}, n)
		if later {
			n.losesPayload(t, 0, round)
		}
		_, before := w.certified()
		w.look(t, name+": it goes on", 1, 30_000, func() bool { return n.told("goes on with what the disk has") })
		n.borne = 0 // so from here on nothing that it says it goes through may be another chain
		w.until(t, name+": what is final is folded", 60_000, func() bool {
			v, _ := n.machine.Gossip().Finals()
			return n.ready() && v.BorneOut == wire.BearsNo
		})
		if w.Finish(); w.Err() != nil {
			t.Fatal(name, w.Err())
		}
		if v, _ := n.machine.Gossip().Finals(); v.BorneOut != wire.BearsNo || v.Certified > before || w.closed() < round+40 {
			t.Errorf("%s: %d rounds, %+v, %d certificates before", name, w.closed(), v, before)
		}
	}
}

// The worlds in which three voters are killed and lose power all the time, and some lose payloads of final rounds, and all
// bases: no node ever has another chain at a certified round that it had come to.
func TestVotersWhoseDisksAreDamaged(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, 11, 19, 20, 25} {
		w := newWorld(t, damagedVoters(seed))
		if w.Finish(); w.Err() != nil {
			t.Errorf("seed %d: %v", seed, w.Err())
		}
	}
}

// damagedVoters is a world of three voters, one of whom goes down every 0.9 s, by a kill or for want of power.
func damagedVoters(seed uint64) Scenario {
	s := Small(3, 200, nil, seed)
	s.Finality = true
	s.Params.WindowAccept, s.Params.WindowUnion = 4, 8
	for i, kind := range []fault.Verb{fault.Kill, fault.PowerCut} {
		for at := Time(6000 + 900*i); at < 60_000; at += 1800 {
			node := int(at / 900 % 3)
			s.Faults = append(s.Faults, Fault{At: at, Kind: kind, Node: node}, Fault{At: at + 500, Kind: fault.Start, Node: node})
		}
	}
	s.CalmMs = 61_000
	return s
}
