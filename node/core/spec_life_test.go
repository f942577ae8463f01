package core_test

import (
	"bytes"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
)

// One test for each clause of gossip/SPEC.md that is about the way into a run and
// out of it, in worlds of whole nodes in virtual time.
func TestSpecLife(t *testing.T) {
	spectest.Run(t, "L", map[string]spectest.Clause{
		"L-1": specJoining, "L-2": spectest.All(specEqualDigests, specReplay), "L-3": specDurable,
		"L-4": spectest.All(specKeyOnly, specKeyAlone, specKeyUnknown, specBegins), "L-5": specMark,
		"L-6": spectest.All(specSetDigest, specHeadersOfRound), "L-7": specLeaves, "L-8": specStays, "L-9": specStepsOnly, "L-10": specStopped,
		"L-11": specOver, "L-12": specMiscalculated, "L-13": specFarewell,
	})
}

func specJoining(t *testing.T, s *spectest.Spec) {
	for _, row := range s.Table(t, "life") {
		if n := core.Numbers[row[0]]; n != s.Number(t, "life", row[0]) {
			t.Errorf("%s is %d, the text says %s", row[0], n, row[1])
		}
	}
	w := third(t, 1, 2, worldConfig{params: budgetOf(600), latencyMs: 40})
	n := w.add(nodeConfig{})
	for n.ready == 0 {
		if n.machine.State() != wire.Joining || n.steps > 0 || len(n.disk.own) > 0 {
			t.Fatalf("in state %v after %d steps", n.machine.State(), n.steps)
		}
		w.runFor(10)
	}
	if n.machine.State() != wire.Training {
		t.Errorf("ready, and in state %v", n.machine.State())
	}
}

// readyAfter is how long a node takes until it is ready.
func (w *world) readyAfter(n *node, limit core.Time) core.Time {
	w.t.Helper()
	began := w.now
	w.runUntil("it is ready", limit, func() bool { return n.ready > 0 })
	return n.ready - began
}

func TestLifeFounder(t *testing.T) {
	w := newWorld(t, 2, worldConfig{params: budgetOf(600)})
	if took := w.readyAfter(w.add(nodeConfig{alone: true}), 1000); took > tickMs || w.nodes[0].machine.Rounds().Closed(0) != 0 {
		t.Errorf("ready after %d ms", took)
	}
}

// aloneMs is for how long the nodes of these worlds look for company.
const aloneMs = 3000

func TestLifeReachesNobody(t *testing.T) {
	w := newWorld(t, 3, worldConfig{params: budgetOf(600)})
	n := w.add(nodeConfig{})
	if took := w.readyAfter(n, 10_000); took < aloneMs || took > aloneMs+2*tickMs {
		t.Errorf("ready after %d ms", took)
	}
	if n.machine.Rounds().Base(0) != 0 || n.installs > 0 {
		t.Error("it did not begin with genesis")
	}
}

func TestLifeFetches(t *testing.T) {
	w := third(t, 4, 1, worldConfig{params: budgetOf(600)})
	n := newNode(w, 1, nodeConfig{})
	w.nodes = append(w.nodes, n)
	n.boot(nil)
	w.runFor(100)
	if n.machine.Phase() != core.Dialling {
		t.Errorf("%v without a session", n.machine.Phase())
	}
	if w.connectAll(); n.machine.Phase() != core.Fetching {
		t.Errorf("%v with one", n.machine.Phase())
	}
	w.runUntil("tips are in place", 5000, func() bool { return n.installs == 1 })
}

func TestLifeComesBack(t *testing.T) {
	w := third(t, 5, 2, worldConfig{params: budgetOf(600)})
	n := w.nodes[1]
	n.cfg.alone = false
	n.crash()
	w.runFor(200)
	n.restartNode()
	if n.machine.Phase() != core.Replaying {
		t.Errorf("%v with its tips and a session", n.machine.Phase())
	}
	if w.runFor(3000); n.installs > 0 || n.ready == 0 {
		t.Errorf("%d installs, ready %v", n.installs, n.ready > 0)
	}
}

// repairsWith are the peers with which a node has repairs under way.
func (n *node) repairsWith() (ids []wire.PeerID) {
	for _, v := range n.machine.Gossip().Peers() {
		if v.Repairing {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

func TestLifeThenRepairs(t *testing.T) {
	for name, begun := range map[string]bool{"a run at work": true, "a run that has not begun": false} {
		w := newWorld(t, 6, worldConfig{params: budgetOf(600), latencyMs: 50})
		w.found(2)
		if begun {
			w.runUntil("a third", patience, func() bool { return w.nodes[0].machine.FoldedTokens() > w.cfg.params.Budget/3 })
		}
		n := w.add(nodeConfig{trusted: []wire.PeerID{w.nodes[0].id}})
		for n.machine.Phase() < core.Replaying && w.now < start+patience {
			w.runFor(1)
		}
		if ids := n.repairsWith(); len(ids) != 1 || ids[0] != w.nodes[0].id || (n.installs > 0) != begun {
			t.Errorf("%s: %d installs, repairs with %v", name, n.installs, ids)
		}
	}
}

func specEqualDigests(t *testing.T, _ *spectest.Spec) {
	w := third(t, 7, 2, worldConfig{params: budgetOf(600), latencyMs: 30})
	equal := false
	w.onReady = func(n *node) {
		equal, _ = n.machine.Gossip().Equal(w.now)
		equal = equal && slices.ContainsFunc(w.nodes[:2], n.equalTo)
	}
	n := w.add(nodeConfig{})
	w.readyAfter(n, 20_000)
	if !equal || !n.tells("digest equal") {
		t.Errorf("equal %v, said %q", equal, n.said)
	}
}

func specReplay(t *testing.T, s *spectest.Spec) {
	w := third(t, 8, 1, worldConfig{params: budgetOf(6000)})
	w.nodes[0].ignores = wire.GetRounds // nothing that came before the node did ever comes
	n := w.add(nodeConfig{})
	w.runUntil("tips are in place", 5000, func() bool { return n.installs > 0 })
	replay := s.Number(t, "life", "replay")
	if took := w.readyAfter(n, 2*replay); took < replay-200 || took > replay+200 || n.tells("digest equal") {
		t.Errorf("ready after %d ms, said %q", took, n.said)
	}
	w = newWorld(t, 8, worldConfig{params: budgetOf(20_000), bytesMs: 0.12})
	w.found(1)
	w.runFor(5000)
	w.nodes[0].ignores = wire.GetRounds
	began := w.now
	n = w.add(nodeConfig{})
	w.runUntil("tips are in place", 300_000, func() bool { return n.installs > 0 })
	fetching := w.now - began
	if took := w.readyAfter(n, 4*fetching); 2*fetching < replay+1000 || took < 2*fetching-500 || took > 2*fetching+500 {
		t.Errorf("fetched for %d ms, ready after %d", fetching, took)
	}
}

func TestLifeBackSoon(t *testing.T) {
	w := third(t, 9, 3, worldConfig{params: budgetOf(1500)})
	for _, n := range w.nodes[1:] {
		n.hang()
	}
	n := w.nodes[0]
	n.cfg.alone = false
	n.crash()
	n.restartNode()
	if took := w.readyAfter(n, 4*beat); took < beat || took > 2*beat+2*tickMs {
		t.Errorf("ready after %d ms", took)
	}
}

func TestLifeNewcomers(t *testing.T) {
	w := newWorld(t, 10, worldConfig{params: budgetOf(600)})
	a, b := w.add(nodeConfig{}), w.add(nodeConfig{})
	if took := w.readyAfter(a, 10_000); took < aloneMs || took > aloneMs+200 {
		t.Errorf("ready after %d ms", took)
	}
	w.readyAfter(b, 1000)
	if a.installs+b.installs > 0 {
		t.Error("one took tips of the other")
	}
}

func TestLifeHolder(t *testing.T) {
	w := third(t, 11, 1, worldConfig{params: budgetOf(3000), bytesMs: 5})
	n := w.add(nodeConfig{})
	w.runUntil("a donor is in sight", 10_000, func() bool {
		seen := false
		n.machine.Gossip().Beats(func(wire.PeerID, *wire.Beat, gossip.Time) { seen = true })
		return seen
	})
	w.nodes[0].crash()
	holder := core.Numbers["holder"]
	if took := w.readyAfter(n, 2*holder); took < holder || took > holder+20*beat || n.installs > 0 {
		t.Errorf("ready after %d ms, %d installs", took, n.installs)
	}
}

func TestLifeBadDonors(t *testing.T) {
	w := third(t, 12, 1, worldConfig{params: budgetOf(3000)})
	liar := w.nodes[0]
	liar.spoils = true
	w.faulty[liar.id] = true
	n := w.add(nodeConfig{trusted: []wire.PeerID{liar.id}})
	failed := 0
	for n.ready == 0 {
		if failed = max(failed, n.machine.Gossip().FailedDonors()); w.now > start+patience {
			t.Fatal("never ready")
		}
		w.runFor(10)
	}
	if int64(failed) != core.Numbers["donors"] || n.installs > 0 {
		t.Errorf("ready after %d donors in vain, %d installs", failed, n.installs)
	}
}

// asked gives a machine a request and returns the body of its answer.
func (n *node) asked(r wire.Request) []byte {
	n.machine.Serve(n.w.now, 1<<40, wire.PeerID{99}, r.Encode())
	for _, e := range n.machine.Effects() {
		if e, ok := e.(gossip.Reply); ok && e.Handle == 1<<40 {
			return e.Response[1:]
		}
	}
	return nil
}

// convicted is a node that holds a delta of its own for a round, one of another
// author, and evidence against a third.
func convicted(t *testing.T) (n *node, round uint32, ids []wire.Digest) {
	w := newWorld(t, 16, worldConfig{params: budgetOf(600)})
	w.found(1)
	w.runFor(2500)
	n = w.nodes[0]
	round = n.machine.Rounds().Closed(0)
	h := wire.Header{Round: round, Base: round - 1, Steps: 8, Tokens: 8 * tokensPerStep}
	good, liar := newNode(w, 8, nodeConfig{}), newNode(w, 9, nodeConfig{})
	for _, p := range []*node{good, liar} {
		n.links[p] = true
	}
	ids = append(ids, w.rogue(good, n, h, w.payloadOf(0, 1)), w.rogue(liar, n, h, w.payloadOf(0, 1)))
	h.Steps--
	ids = append(ids, w.rogue(liar, n, h, w.payloadOf(0, 1)))
	w.runFor(500)
	for _, d := range n.machine.Rounds().Set(0, round) {
		if wire.Digest(d.ID) != ids[0] {
			ids = append(ids, wire.Digest(d.ID))
		}
	}
	if len(ids) != 4 {
		t.Fatalf("%d ids of round %d", len(ids), round)
	}
	return n, round, ids
}

func specSetDigest(t *testing.T, _ *spectest.Spec) {
	n, round, ids := convicted(t)
	ask := []wire.Range{{From: round, To: round}}
	answers, err := wire.DecodeRounds(n.asked(wire.Request{Kind: wire.GetRounds, Ranges: ask}), ask)
	if err != nil || len(answers[0].Sets) != 1 || answers[0].Sets[0] != wire.SetDigest(ids) {
		t.Errorf("answers %+v, %v", answers, err)
	}
}

func specHeadersOfRound(t *testing.T, _ *spectest.Spec) {
	n, round, ids := convicted(t)
	headers, err := wire.DecodeHeaders(n.asked(wire.Request{Kind: wire.GetHeaders, Rounds: []wire.RoundKey{{Round: round}}}))
	if err != nil {
		t.Fatal(err)
	}
	var got []wire.Digest
	for _, h := range headers {
		got = append(got, h.Header.ID(n.w.run))
	}
	slices.SortFunc(got, wire.Digest.Compare)
	slices.SortFunc(ids, wire.Digest.Compare)
	if !slices.Equal(got, ids) {
		t.Errorf("headers of %v, want %v", got, ids)
	}
}

// stateAt is what a node's peer last heard of it.
func (n *node) stateAt(p *node) (state wire.State) {
	p.machine.Gossip().Beats(func(id wire.PeerID, b *wire.Beat, _ gossip.Time) {
		if id == n.id {
			state = b.State
		}
	})
	return state
}

func specLeaves(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 17, worldConfig{params: budgetOf(3000)})
	w.found(2)
	w.runFor(3050)
	n := w.nodes[1]
	steps, published := n.steps, len(n.disk.own)
	if left, _ := n.machine.Rounds().Pending(0); left == 0 {
		t.Fatal("nothing is unpublished")
	}
	n.leave()
	w.runUntil("it is gone", 4000, func() bool { return !n.up })
	if n.steps != steps || len(n.disk.own) <= published || n.stateAt(w.nodes[0]) != wire.Leaving {
		t.Errorf("%d steps more, %d deltas more, and it says %v", n.steps-steps, len(n.disk.own)-published, n.stateAt(w.nodes[0]))
	}
	for p := range w.plan {
		if steps, _ := n.machine.Rounds().Pending(p); steps > 0 {
			t.Errorf("%d steps of fragment %d are unpublished", steps, p)
		}
	}
}

func specStays(t *testing.T, s *spectest.Spec) {
	w := newWorld(t, 18, worldConfig{params: budgetOf(3000)})
	w.found(2)
	w.runFor(3050)
	n := w.nodes[1]
	n.leave()
	announced, deltas := w.now, len(n.disk.own)
	for n.up {
		if len(n.disk.own) > deltas {
			announced, deltas = w.now, len(n.disk.own)
		}
		w.runFor(1)
	}
	if took := w.now - announced; took < s.Number(t, "life", "left") || took > s.Number(t, "life", "left")+2*tickMs {
		t.Errorf("gone %d ms after its last delta", took)
	}
	// One whose payload has to be fetched keeps it until somebody has.
	w = newWorld(t, 18, worldConfig{params: budgetOf(3000)})
	w.found(2)
	w.runFor(1000)
	n = w.nodes[1]
	n.do(func() { n.machine.Leave(w.now) })
	w.runFor(1000)
	if !n.machine.MayLeave() {
		t.Fatal("it may not leave")
	}
	payload := make([]byte, 2*wire.MaxInline)
	round := n.machine.Rounds().Closed(0) + 1
	h := wire.Header{Round: round, Base: round - 1, Steps: 1, Tokens: 1, Precision: 1, Codec: uint8(w.cfg.params.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload)}
	sh := wire.SignHeader(n.key, w.run, h)
	id := sh.Header.ID(w.run)
	n.machine.StoredOwn(w.now, core.StoreOwn{ID: id, Header: sh, Payload: payload, Seq: 1 << 20})
	n.machine.Tick(w.now + 600)
	if n.machine.MayLeave() {
		t.Error("it leaves with a payload that nobody has")
	}
	n.machine.Replied(w.now+600, 1, id)
	if !n.machine.MayLeave() {
		t.Error("it stays though a peer has the payload")
	}
}

func specStepsOnly(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 19, worldConfig{params: budgetOf(100)})
	w.found(1)
	w.runUntil("it is finished", patience, w.allFinished)
	if n := w.nodes[0]; n.trained != w.cfg.params.Budget {
		t.Errorf("%d tokens are stepped for a budget of %d", n.trained, w.cfg.params.Budget)
	}
}

// says has a node hear a beat of a key that is nobody's.
func (n *node) says(key int, b wire.Beat) {
	b.Closed, b.Incarnation = make([]uint32, len(n.w.plan)), 1
	if b.Unpublished == nil {
		b.Unpublished = make([]uint64, len(n.w.plan))
	}
	n.handle++
	b.Seq = n.handle
	m, err := wire.Open(n.w.run, wire.EncodeBeat(testKey(key), n.w.run, b))
	if err != nil {
		n.w.fatalf("%v", err)
	}
	n.do(func() { n.machine.Received(n.w.now, wire.PeerIDOf(testKey(key)), m) })
}

// worker is a lone learner that has folded something, beside a key of which it
// holds a delta, or not.
func worker(t *testing.T, key int, known bool) *node {
	w := newWorld(t, 20, worldConfig{params: budgetOf(3000)})
	w.found(1)
	w.runFor(2000)
	n := w.nodes[0]
	if known {
		other := newNode(w, key, nodeConfig{})
		n.links[other] = true
		round := n.machine.Rounds().Closed(0) + 1
		w.rogue(other, n, wire.Header{Round: round, Base: round - 1, Steps: 1, Tokens: tokensPerStep}, w.payloadOf(0, 1))
		delete(n.links, other)
		w.runFor(200)
	}
	return n
}

// all is the budget in each fragment.
func (n *node) all() []uint64 {
	all := make([]uint64, len(n.w.plan))
	for p := range all {
		all[p] = n.w.cfg.params.Budget
	}
	return all
}

func TestLifeDealt(t *testing.T) {
	met := map[bool]bool{}
	for key := 2; key < 40 && len(met) < 2; key++ {
		n := worker(t, key, true)
		other := wire.PeerIDOf(testKey(key))
		before := bytes.Compare(other[:], n.id[:]) < 0
		if met[before] {
			continue
		}
		met[before] = true
		for missing, want := range map[uint64]bool{tokensPerStep: !before, tokensPerStep + 1: true, 0: false} {
			claims := n.all()
			for p := range claims {
				claims[p] -= n.machine.Rounds().Projected(n.w.now, p) + n.machine.Rounds().Promised(p) + missing
			}
			n.says(key, wire.Beat{State: wire.Training, Unpublished: claims})
			if n.do(func() { n.machine.Tick(n.w.now) }); n.may != want {
				t.Errorf("%d tokens are missing, the other one comes first %v: steps %v", missing, before, n.may)
			}
		}
	}
	if len(met) < 2 {
		t.Error("no key of both sides")
	}
}

func TestLifeClaims(t *testing.T) {
	n := worker(t, 9, true)
	n.says(9, wire.Beat{State: wire.Training, Unpublished: n.all()})
	if n.w.runFor(100); n.may {
		t.Error("steps though what is missing is unpublished elsewhere")
	}
	if n.says(9, wire.Beat{State: wire.Training}); !n.may {
		n.w.runFor(100)
	}
	if !n.may {
		t.Error("does not step though nothing is unpublished")
	}
	n.says(9, wire.Beat{State: wire.Training, TokensPerSecond: 2 * float64(n.w.cfg.params.Budget)})
	n.w.runFor(200)
	early := n.may
	if n.w.runFor(500); !early || n.may {
		t.Errorf("beside one that steps the budget in half a second: steps %v at first, %v then", early, n.may)
	}
	n.says(9, wire.Beat{State: wire.Stopped, TokensPerSecond: 2 * float64(n.w.cfg.params.Budget)})
	if n.w.runFor(700); !n.may {
		t.Error("counts the speed of one that does not step")
	}
}

// A peer that claims the budget, and publishes a step now and then so that it is not
// doubted, is waited for once.
func TestLifeClaimsAreWeighed(t *testing.T) {
	n := worker(t, 9, true)
	liar := newNode(n.w, 10, nodeConfig{})
	n.links[liar] = true
	n.w.every(500, func() {
		r := n.machine.Rounds().Closed(0) + 1
		n.w.rogue(liar, n, wire.Header{Round: r, Base: r - 1, Steps: 1, Tokens: tokensPerStep}, n.w.payloadOf(0, 1))
		n.says(10, wire.Beat{State: wire.Training, Unpublished: n.all()})
	})
	if n.w.runFor(2000); n.may {
		t.Error("steps though what is missing is unpublished elsewhere")
	}
	n.w.runFor(max(core.Numbers["doubt"]*beat, n.w.cfg.params.GraceMaxMs))
	before := n.steps
	n.w.runFor(10_000)
	if got, want := core.Time(n.steps-before), 10_000/n.stepMs(); got < want-1 {
		t.Errorf("takes %d steps beside one that goes on claiming, want %d", got, want)
	}
}

func TestLifeWord(t *testing.T) {
	n := worker(t, 9, false)
	n.says(9, wire.Beat{State: wire.Training, Unpublished: n.all()})
	if n.w.runFor(100); !n.may {
		t.Error("believes one of whom no delta came")
	}
}

func TestLifeDoubt(t *testing.T) {
	n := worker(t, 9, true)
	still := max(core.Numbers["doubt"]*beat, n.w.cfg.params.GraceMaxMs)
	claims := func() { n.says(9, wire.Beat{State: wire.Training, Unpublished: n.all()}) }
	claims()
	n.w.runFor(1000) // what it has is published and folded
	began := n.w.now
	for !n.may && n.w.now < began+2*still {
		claims()
		n.w.runFor(20)
	}
	if took := n.w.now - began; took < still-1000 || took > still+200 {
		t.Errorf("doubts after %d ms, want %d", took, still)
	}
	claims()
	if n.w.runFor(100); !n.may {
		t.Error("believes again without a delta")
	}
}

func specStopped(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 21, worldConfig{params: budgetOf(100)})
	w.found(1)
	n := w.nodes[0]
	stopped := false
	for !n.finished {
		if n.machine.State() == wire.Stopped {
			stopped = true
			steps, _ := n.machine.Rounds().Pending(0)
			if n.may || steps > 0 || !n.machine.Rounds().Settled() {
				t.Fatalf("says stopped: may step %v, %d steps unpublished, settled %v", n.may, steps, n.machine.Rounds().Settled())
			}
		}
		w.runFor(5)
	}
	if !stopped {
		t.Error("never says stopped")
	}
}
