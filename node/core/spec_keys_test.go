package core_test

import (
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// emptied is a node of a world of three that has lost its disk.
func emptied(t *testing.T, seed uint64) (*world, *node) {
	w := newWorld(t, seed, worldConfig{params: budgetOf(3000)})
	w.found(3)
	w.runFor(3000)
	n := w.nodes[1]
	n.crash()
	return w, n
}

func specKeyOnly(t *testing.T, _ *spectest.Spec) {
	w, n := emptied(t, 13)
	for _, p := range w.nodes {
		p.ignores = wire.GetOwn
	}
	n.restartEmpty()
	before := n.steps
	w.runUntil("it has steps to publish", 30_000, func() bool { return n.steps-before > 5*w.cfg.params.H })
	if len(n.disk.own) > 0 || n.known {
		t.Errorf("it signs %d deltas before peers have told what it signed", len(n.disk.own))
	}
	for _, p := range w.nodes {
		p.ignores = 0
	}
	w.runUntil("it signs", 60_000, func() bool { return n.known && len(n.disk.own) > 0 })
}

func specKeyAlone(t *testing.T, s *spectest.Spec) {
	w := newWorld(t, 14, worldConfig{params: budgetOf(3000), stepMs: 1000})
	n := w.add(nodeConfig{alone: true})
	w.runFor(30_000)
	n.crash()
	clear(w.signed) // what it signs again is what this is about
	n.restartEmpty()
	began := w.now
	key := s.Number(t, "life", "key")
	w.runUntil("it goes on", 2*key, func() bool { return n.known })
	if took := w.now - began; took < key || took > key+200 {
		t.Errorf("goes on after %d ms", took)
	}
}

func specMark(t *testing.T, s *spectest.Spec) {
	w := newWorld(t, 15, worldConfig{params: budgetOf(600)})
	w.found(1)
	w.runFor(1500)
	n := w.nodes[0]
	before := n.machine.Rounds().Mark(1)
	h := wire.Header{Fragment: 1, Round: before + 9, Base: before, Steps: 1, Tokens: tokensPerStep}
	w.rogue(n, n, h, w.payloadOf(1, 1))
	margin := uint32(s.Number(t, "life", "margin"))
	if got := n.machine.Rounds().Mark(1); got != before+9+margin || n.raised == 0 {
		t.Errorf("mark %d after a header of round %d", got, before+9)
	}
	if got := n.machine.Rounds().Mark(0); got >= before+9 {
		t.Errorf("mark %d of another fragment", got)
	}
}

func specKeyUnknown(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		linked bool
		says   wire.State // a peer; 0 for none
		waits  bool
	}{
		"no link, nobody":        {false, 0, false},
		"a link, nobody":         {true, 0, true},
		"a link, one who joins":  {true, wire.Joining, true},
		"no link, one who joins": {false, wire.Joining, false},
		"one who trains":         {true, wire.Training, true},
	} {
		w := newWorld(t, 14, worldConfig{params: budgetOf(3000), stepMs: 1000})
		n := w.add(nodeConfig{alone: true})
		w.runFor(1000)
		n.crash()
		n.restartEmpty()
		if !c.linked {
			n.crash()
			n.disk, n.cfg.alone = newDisk(len(w.plan)), true
			n.boot(nil)
		}
		began := w.now
		for !n.known && w.now < began+2*aloneMs {
			if c.says != 0 {
				n.says(9, wire.Beat{State: c.says})
			}
			w.runFor(100)
		}
		if took := w.now - began; n.known == c.waits || n.known && (took < aloneMs || took > aloneMs+200) {
			t.Errorf("%s: signs %v after %d ms", name, n.known, took)
		}
	}
}

// comesBack has nodes with their keys and nothing else be ready when they have waited
// for somebody who has more for the time that a key waits.
func comesBack(t *testing.T, s *spectest.Spec, w *world, nodes ...nodeConfig) {
	t.Helper()
	began, key := w.now, s.Number(t, "life", "key")
	var back []*node
	for _, c := range nodes {
		back = append(back, w.add(c))
	}
	for _, n := range back {
		w.readyAfter(n, 2*key)
		if took := w.now - began; took < key || took > key+20*beat || n.installs > 0 {
			t.Errorf("ready after %d ms, with %d installs", took, n.installs)
		}
	}
}

// A founder comes back to a run that began long ago: alone it waits,
// with others it takes what they have.
func TestKeyFounderBack(t *testing.T) {
	s := spectest.Load(t)
	old := func() *world {
		w := newWorld(t, 2, worldConfig{params: budgetOf(3000)})
		w.now += s.Number(t, "life", "key") + 10_000
		return w
	}
	founder := nodeConfig{alone: true, keyOnly: true}
	comesBack(t, s, old(), founder)
	w := old()
	w.found(2)
	w.runFor(3000)
	n := newNode(w, 20, founder)
	w.nodes = append(w.nodes, n)
	n.boot(nil)
	w.connectAll()
	if took := w.readyAfter(n, 60_000); took > 20*beat || n.installs != 1 {
		t.Errorf("ready after %d ms beside others, with %d installs", took, n.installs)
	}
}

func TestKeyNobodyBack(t *testing.T) {
	s := spectest.Load(t)
	comesBack(t, s, newWorld(t, 3, worldConfig{params: budgetOf(600)}), nodeConfig{keyOnly: true})
}

func TestKeyAllBack(t *testing.T) {
	s := spectest.Load(t)
	comesBack(t, s, newWorld(t, 10, worldConfig{params: budgetOf(600)}), nodeConfig{keyOnly: true}, nodeConfig{keyOnly: true})
}

// specBegins has a node without a link, a peer beside it that knows nothing of the run.
func specBegins(t *testing.T, s *spectest.Spec) {
	key := s.Number(t, "life", "key")
	for age, begins := range map[int64]bool{key - 10_000: true, key + 10_000: false} {
		w := newWorld(t, 14, worldConfig{params: budgetOf(3000), stepMs: 1000})
		w.now += age
		n := w.add(nodeConfig{alone: true, keyOnly: true})
		began := w.now
		for !n.known && w.now < began+2*aloneMs {
			n.says(9, wire.Beat{State: wire.Joining})
			w.runFor(100)
		}
		if n.known != begins {
			t.Errorf("%d ms after the run was made it signs %v", age, n.known)
		}
	}
}

// drafts tells what becomes of a draft of a fragment that is ready now.
func (n *node) drafts(fragment int) (signed, back int) {
	payload := n.w.payloadOf(fragment, 1)
	n.machine.Drafted(n.w.now, outer.Draft{Fragment: fragment, Seq: 1 << 20, Steps: 1, Tokens: tokensPerStep, Payload: payload})
	for _, e := range n.machine.Effects() {
		switch e := e.(type) {
		case core.StoreOwn:
			signed++
			if got, want := e.Header.Header.Round, n.machine.Rounds().Closed(fragment)+1; got != want {
				n.w.fatalf("signs round %d where %d is open", got, want)
			}
		case core.TakeBack:
			back++
		}
	}
	return signed, back
}

func TestKeyTakenBack(t *testing.T) {
	for ahead, want := range map[uint32]int{0: 1, 1: 0, 9: 0} {
		w := newWorld(t, 15, worldConfig{params: budgetOf(3000), stepMs: 100})
		n := w.add(nodeConfig{alone: true})
		w.runFor(1000)
		if ahead > 0 {
			n.machine.Rounds().RaiseMark(1, n.machine.Rounds().Closed(1)+ahead)
		}
		if signed, back := n.drafts(1); signed != want || back != 1-want {
			t.Errorf("a mark %d above closed: %d signed, %d taken back", ahead, signed, back)
		}
	}
	_, n := emptied(t, 15)
	if n.restartEmpty(); n.known {
		t.Fatal("it knows at once")
	}
	if signed, back := n.drafts(1); signed != 0 || back != 1 {
		t.Errorf("before it knows what was signed: %d signed, %d taken back", signed, back)
	}
}

// specDurable has a draft leave only when the machine was told that it is on disk.
func specDurable(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 15, worldConfig{params: budgetOf(3000), stepMs: 100})
	n := w.add(nodeConfig{alone: true})
	w.runFor(1000)
	n.machine.Effects()
	n.machine.Drafted(w.now, outer.Draft{Fragment: 1, Seq: 1 << 20, Steps: 1, Tokens: tokensPerStep, Payload: w.payloadOf(1, 1)})
	var own []core.StoreOwn
	published := func() (headers int) {
		for _, e := range n.machine.Effects() {
			switch e := e.(type) {
			case core.StoreOwn:
				own = append(own, e)
			case gossip.Publish:
				if m, err := wire.Open(w.run, e.Bytes); err == nil && m.Header != nil {
					headers++
				}
			}
		}
		return headers
	}
	if before := published(); before != 0 || len(own) != 1 {
		t.Fatalf("%d headers leave before %d deltas are on disk", before, len(own))
	}
	n.machine.Tick(w.now + 5000)
	if late := published(); late != 0 {
		t.Errorf("%d headers leave while the disk is slow", late)
	}
	if n.machine.StoredOwn(w.now, own[0]); published() != 1 {
		t.Error("the header does not leave")
	}
}
