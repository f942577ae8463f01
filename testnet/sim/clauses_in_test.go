package sim

import (
	"strings"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/tensor/codec"
)

func specJoining(t *testing.T, _ *spectest.Spec) {
	w := atWork(t, calmScenario(2, 600))
	w.setNetwork(Link{LatencyMs: 40, JitterMs: w.link.JitterMs})
	n := w.comes(w.nodes...)
	w.look(t, "it is ready", 10, 20_000, func() bool {
		if n.ready() {
			return true
		}
		if n.machine.View().State() != wire.Joining || n.Steps > 0 || n.ownRecords() > 0 {
			t.Fatalf("in state %v after %d steps", n.machine.View().State(), n.Steps)
		}
		return false
	})
	if n.machine.View().State() != wire.Training {
		t.Errorf("ready, and in state %v", n.machine.View().State())
	}
}

// ageBy makes the run older by so many ms than the time that a key waits.
func (w *World) ageBy(ms Time) {
	w.s.Params.CreatedMs = w.now - keyMs - ms
}

// waitsForKey wants nodes with nothing but their keys to be ready from genesis when
// they have waited for somebody who has more.
func (w *World) waitsForKey(t *testing.T, nodes ...*Node) {
	t.Helper()
	began := w.now
	for _, n := range nodes {
		w.readyAfter(t, n, 2*keyMs)
		if took := w.now - began; took < keyMs || took > keyMs+20*heartbeat || n.Installs > 0 {
			t.Errorf("ready after %d ms, with %d installs", took, n.Installs)
		}
	}
}

// A node whose link names nobody is ready at once, from genesis. A node that comes back
// to an old run without its disk waits for a peer that has more, or takes what others
// have.
func TestFounderBegins(t *testing.T) {
	t.Parallel()
	w := few(t, 1, 600)
	if took := w.readyAfter(t, w.nodes[0], 1000); took > w.s.TickMs || w.nodes[0].machine.Rounds().Fragment(0).Closed() != 0 {
		t.Errorf("ready after %d ms", took)
	}
	w = deserted(t, calmScenario(1, 3000))
	w.ageBy(10_000)
	w.waitsForKey(t, w.comesBack(true))
	w = few(t, 2, 3000)
	w.RunFor(3000)
	w.ageBy(10_000)
	n := w.comesBack(true)
	w.connect(n, w.nodes[0])
	if took := w.readyAfter(t, n, 60_000); took > 20*heartbeat || n.Installs != 1 {
		t.Errorf("ready after %d ms beside others, with %d installs", took, n.Installs)
	}
}

// A newcomer that reaches nobody whom its link names does not begin the run, whomever else it meets, and however old its key is.
// It takes the model once it reaches one.
func specUnanswered(t *testing.T, _ *spectest.Spec) {
	w := atWork(t, calmScenario(2, 60_000))
	a, dead := w.nodes[0], w.nodes[1]
	dead.crash()
	dead.gone = true
	n, back := w.comes(dead), w.comesBack(false, dead)
	w.outsider(9).meets(t, n)
	w.connect(n, back)
	if w.RunFor(keyMs + 60_000); n.ready() || back.ready() || !n.machine.View().Unanswered() {
		t.Errorf("ready %v and %v, unanswered %v", n.ready(), back.ready(), n.machine.View().Unanswered())
	}
	w.connect(n, a)
	if w.readyAfter(t, n, 60_000); n.Installs != 1 {
		t.Errorf("%d installs", n.Installs)
	}
	if w.readyAfter(t, back, 60_000); back.Installs != 1 {
		t.Errorf("%d installs of one that came back", back.Installs)
	}
}

// A node without tips begins to fetch them with its first session.
func TestFetchesWithTheFirstSession(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(1, 600))
	n := w.comes()
	w.RunFor(100)
	if n.machine.View().Phase() != core.Dialling {
		t.Errorf("%v without a session", n.machine.View().Phase())
	}
	if w.connect(n, w.nodes[0]); n.machine.View().Phase() != core.Fetching {
		t.Errorf("%v with one", n.machine.View().Phase())
	}
	w.until(t, "a snapshot is in place", 5000, func() bool { return n.Installs == 1 })
}

// A node that comes back with its tips fetches none.
func TestComesBackWithItsTips(t *testing.T) {
	t.Parallel()
	w := atWork(t, calmScenario(2, 600))
	n := w.nodes[1]
	n.founder = false
	n.crash()
	w.RunFor(200)
	n.restart()
	if w.connect(n, w.nodes[0]); n.machine.View().Phase() != core.Replaying {
		t.Errorf("%v with its tips and a session", n.machine.View().Phase())
	}
	if w.RunFor(3000); n.Installs > 0 || !n.ready() {
		t.Errorf("%d installs, ready %v", n.Installs, n.ready())
	}
}

// repairsWith are the peers with which a node has repairs under way.
func (n *Node) repairsWith() (ids []wire.PeerID) {
	for _, v := range n.machine.Gossip().Peers().All() {
		if v.Repairing {
			ids = append(ids, v.ID)
		}
	}
	return ids
}

// When a snapshot is in place, or the run has not begun, a joiner repairs with its source.
func TestRepairsWithItsSource(t *testing.T) {
	t.Parallel()
	for name, begun := range map[string]bool{"a run at work": true, "a run that has not begun": false} {
		s := calmScenario(2, 600)
		s.Link.LatencyMs = 50
		w := newWorld(t, s)
		if begun {
			w = atWork(t, s)
		}
		n := w.comes(w.nodes[0])
		w.look(t, "it replays", 1, 20_000, func() bool { return n.machine.View().Phase() >= core.Replaying })
		if ids := n.repairsWith(); len(ids) != 1 || ids[0] != w.nodes[0].id || (n.Installs > 0) != begun {
			t.Errorf("%s: %d installs, repairs with %v", name, n.Installs, ids)
		}
	}
}

func specEqualDigests(t *testing.T, _ *spectest.Spec) {
	for seed := range uint64(2) {
		s := calmScenario(3, 1000)
		s.Seed, s.Link.Loss, s.Link.LatencyMs = seed, 0.05, 30
		w := atWork(t, s)
		n := w.comes(w.nodes...)
		w.look(t, "it is ready", 1, 20_000, n.ready)
		equal, _ := n.machine.Gossip().Chains().Equal(n.clock())
		one := n.equalTo(w.nodes[0]) || n.equalTo(w.nodes[1]) || n.equalTo(w.nodes[2])
		if !equal || !one || !n.told("digest equal") {
			t.Errorf("seed %d: equal by heartbeats %v and by tips %v, said %q", seed, equal, one, w.checks.told[n])
		}
		w.Finish()
	}
}

// Deltas take longer than the rounds of the learner that is alone.
func specOutrun(t *testing.T, s *spectest.Spec) {
	times, replay := s.Number(t, "life", "outrun"), s.Number(t, "life", "replay")
	for seed := range uint64(2) {
		c := calmScenario(1, 20_000)
		c.Seed, c.Params, c.Link.LatencyMs = seed, Params(1, 20_000, codec.F32), 500
		w := atWork(t, c)
		repairs := int64(0)
		w.nodes[0].answering(func(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
			if q.Kind == wire.GetHeaders {
				repairs++ // the rounds that differ fit into one answer
			}
			return honest
		})
		n := w.comes(w.nodes[0])
		w.look(t, "it is ready", 1, replay/2, n.ready)
		if repairs != times || !n.told("all that a peer had closed") {
			t.Errorf("seed %d: ready after %d repairs, said %q", seed, repairs, w.checks.told[n])
		}
		w.RunFor(replay)
		if !w.oneChain() {
			t.Errorf("seed %d: no chain in common\n%s", seed, w)
		}
	}
}

func specReplay(t *testing.T, s *spectest.Spec) {
	replay := s.Number(t, "life", "replay")
	const slow = 40_000
	for name, hidden := range map[string]Time{"a snapshot at once": 0, "a snapshot after a while": slow} {
		w := atWork(t, calmScenario(1, 20_000))
		began := w.now
		w.nodes[0].answering(func(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
			if q.Kind == wire.GetManifest && w.now < began+hidden || q.Kind == wire.GetRounds {
				return nil // nothing that came before the node did ever comes
			}
			return honest
		})
		n := w.comes(w.nodes[0])
		w.look(t, "a snapshot is in place", 10, 100_000, func() bool { return n.Installs > 0 })
		want := max(replay, 2*(w.now-began))
		if took := w.readyAfter(t, n, 4*replay); took < want-500 || took > want+500 || n.told("digest equal") || hidden > 0 && want < replay+1000 {
			t.Errorf("%s: ready after %d ms, want %d, said %q", name, took, want, w.checks.told[n])
		}
	}
}

// A node that comes back with its tips is ready within two heartbeat periods. If others are
// there it shows their digests by then.
func TestBackSoon(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		others, mute bool
		least, most  Time
	}{
		"nobody":      {false, false, 0, heartbeat},
		"a mute peer": {false, true, heartbeat, 2 * heartbeat},
		"others":      {true, false, 0, 2 * heartbeat},
	} {
		w := atWork(t, calmScenario(3, 600))
		n := w.nodes[0]
		n.founder = false
		n.crash()
		w.RunFor(3000)
		for _, p := range w.nodes[1:] {
			if !c.others {
				p.crash()
			}
		}
		n.restart()
		if c.mute {
			w.outsider(9).meets(t, n)
		}
		if took := w.readyAfter(t, n, 4*heartbeat); took < c.least || took > c.most+2*w.s.TickMs+5 || c.others && !n.equalTo(w.nodes[1]) {
			t.Errorf("%s: ready after %d ms", name, took)
		}
	}
}

// Newcomers that know only each other, and peers that say nothing, begin from genesis;
// those that come back wait longer for somebody who has more.
func TestNewcomersBegin(t *testing.T) {
	t.Parallel()
	w := deserted(t, calmScenario(1, 600))
	a := w.comes()
	b := w.comes(a)
	w.outsider(9).meets(t, a) // and never sends a heartbeat
	if took := w.readyAfter(t, a, 10_000); took < aloneMs || took > aloneMs+200 {
		t.Errorf("ready after %d ms", took)
	}
	w.readyAfter(t, b, 1000)
	if a.Installs+b.Installs > 0 {
		t.Error("one took a snapshot of the other")
	}
	w.Finish()
	w = deserted(t, calmScenario(1, 600))
	a = w.comesBack(false)
	w.waitsForKey(t, a, w.comesBack(false, a))
}

// A joiner waits for a peer that holds more than genesis and fell silent, says so, and begins
// by itself in the end.
func TestWaitsForAHolder(t *testing.T) {
	t.Parallel()
	for _, back := range []bool{true, false} {
		w := atWork(t, calmScenario(1, 20_000))
		source := w.nodes[0]
		source.deaf(always, wire.GetManifest)
		n := w.comes(source)
		w.until(t, "a snapshot source is in sight", 10_000, func() bool {
			seen := false
			n.machine.Gossip().Peers().Heartbeats(func(wire.PeerID, *wire.Heartbeat, gossip.Time) { seen = true })
			return seen
		})
		source.crash()
		gone := w.now
		w.RunFor(holderMs / 2)
		if stage, _ := n.machine.View().JoinStage(); n.ready() || stage != "waits for a peer that holds more than genesis and is silent" || !n.told("waits up to 10 minutes") {
			t.Errorf("ready %v, shows %q, and said %q", n.ready(), stage, w.checks.told[n])
		}
		if back {
			source.liar = nil
			source.restart()
		}
		w.readyAfter(t, n, holderMs)
		if took := w.now - gone; (n.Installs > 0) != back || !back && (took < holderMs || took > holderMs+20*heartbeat || !n.told("trains from genesis")) {
			t.Errorf("the snapshot source is back %v: ready after %d ms, %d installs, said %q", back, took, n.Installs, w.checks.told[n])
		}
	}
}

// A member that finds only guests waits no longer for the members that closed what guests hold than for one that fell silent.
// Guests that hold nothing keep it no longer than newcomers do.
func TestGuestsKeepNoMemberFromTraining(t *testing.T) {
	if !longMode() {
		t.Skip("takes seconds: ATOLL_LONG=1 runs it")
	}
	t.Parallel()
	for name, c := range map[string]struct {
		begun, back bool
		least, most Time
	}{
		"they hold nothing":          {false, false, aloneMs, aloneMs + 20*heartbeat},
		"the member does not return": {true, false, holderMs, holderMs + 20*heartbeat},
		"the member returns":         {true, true, holderMs / 2, holderMs/2 + 20*heartbeat},
	} {
		s := hosted(1, 2, 200, 1)
		s.LimitMs = 3 * holderMs
		w := newWorld(t, s)
		if c.begun {
			w.until(t, "guests fold some rounds", 60_000, func() bool { return w.nodes[1].machine.View().FoldedTokens() > 100*TokensPerStep })
		}
		w.nodes[0].crash()
		n, began := w.comes(w.nodes[1:]...), w.now
		if c.back {
			w.RunFor(holderMs / 2)
			w.nodes[0].restart()
		} else {
			w.nodes[0].gone = true
		}
		w.readyAfter(t, n, 2*holderMs)
		if took := w.now - began; took < c.least || took > c.most || (n.Installs > 0) != c.back || n.told("trains from genesis") == c.back {
			t.Errorf("%s: ready after %d ms, %d installs, said %q", name, took, n.Installs, w.checks.told[n])
		}
		w.Finish()
	}
}

// A source of broken snapshots is found out, and others are asked. Where there are none, the
// joiner begins from genesis, and says why.
func TestSourcesOfBrokenSnapshots(t *testing.T) {
	t.Parallel()
	for sources := range 2 {
		w := atWork(t, calmScenario(1+sources, 6000))
		w.nodes[0].answering(brokenSnapshot)
		n := w.comes(w.nodes[0])
		w.readyAfter(t, n, 200_000)
		alone, wrong := sources == 0, n.machine.Gossip().Wrong(w.nodes[0].id)
		if alone != (n.Installs == 0) || alone != n.told("what is proven to be none of this run") || !wrong {
			t.Errorf("beside %d honest snapshot sources: ready after %d installs, a proof %v, said %q", sources, n.Installs, wrong, w.checks.told[n])
		}
	}
}

// A joiner that gets nothing of a snapshot from the only member that it hears waits for as long as that lasts, says so every ten seconds,
// and takes the snapshot once it comes.
func TestWaitsForWhoGivesNothing(t *testing.T) {
	t.Parallel()
	for i, kind := range []wire.RequestKind{wire.GetManifest, wire.GetChunk} {
		if !taken(i, 2) {
			continue
		}
		w := atWork(t, calmScenario(1, 60_000))
		source, deaf := w.nodes[0], true
		source.deaf(func() bool { return deaf }, kind)
		n, began := w.comes(source), w.now
		w.RunFor(holderMs + 60_000)
		said := 0
		for _, text := range w.checks.told[n] {
			if strings.Contains(text, "nothing of the run's snapshot for") {
				said++
			}
		}
		stage, _ := n.machine.View().JoinStage()
		if n.ready() || said < 60 || said > int((w.now-began)/10_000) || !strings.Contains(stage, "nothing comes of the snapshot of "+source.id.String()) {
			t.Errorf("%v: ready %v after %d ms, said so %d times, and shows %q", kind, n.ready(), w.now-began, said, stage)
		}
		deaf = false
		if w.readyAfter(t, n, 300_000); n.Installs == 0 || w.Err() != nil {
			t.Errorf("%v: %d installs: %v", kind, n.Installs, w.Err())
		}
	}
}
