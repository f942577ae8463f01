package sim

import (
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// wiped is a world of so many in which the last one has lost its disk, to be started again.
func wiped(t *testing.T, s Scenario) (*World, *Node) {
	t.Helper()
	w := newWorld(t, s)
	w.RunFor(3000)
	n := w.nodes[len(w.nodes)-1]
	n.disturb(Fault{Kind: fault.Wipe})
	return w, n
}

// slow scenarios are for what takes minutes.
func slow(learners int) Scenario {
	s := calmScenario(learners, 6000)
	s.StepMs = 1000
	return s
}

func specKeyOnly(t *testing.T, _ *spectest.Spec) {
	w, n := wiped(t, calmScenario(3, 3000))
	deaf := true
	for _, p := range w.nodes[:2] {
		p.deaf(func() bool { return deaf }, wire.GetOwn)
	}
	n.restart()
	before := n.Steps
	w.until(t, "it has steps to publish", 30_000, func() bool { return n.Steps-before > 5*w.s.Params.H })
	if n.ownRecords() > 0 || !n.keyOnly {
		t.Errorf("it signs %d deltas before peers have told what it signed", n.ownRecords())
	}
	deaf = false
	w.until(t, "it signs", 60_000, func() bool { return !n.keyOnly && n.ownRecords() > 0 })
}

func specKeyAlone(t *testing.T, s *spectest.Spec) {
	key := s.Number(t, "life", "key")
	for others, least := range map[int]Time{0: key, 1: 60_000} {
		w, n := wiped(t, slow(1+others))
		for _, p := range w.nodes[:others] {
			p.deaf(always, wire.GetOwn)
		}
		n.restart()
		began := w.now
		w.until(t, "it signs", 2*key, func() bool { return !n.keyOnly })
		if took := w.now - began; took < least || took > key+200 {
			t.Errorf("beside %d that do not answer it signs after %d ms", others, took)
		}
	}
}

// A learner that may not sign for minutes stalls nobody at the end, and ends with the others.
func specComesBack(t *testing.T, _ *spectest.Spec) {
	w, n := wiped(t, calmScenario(3, 600))
	others := w.nodes[:2]
	for _, p := range others {
		p.deaf(always, wire.GetOwn)
	}
	n.restart()
	w.until(t, "it is in", 30_000, func() bool { return n.machine.View().Phase() == core.Ready && n.unpublished() > 0 })
	w.RunFor(2 * heartbeat)
	still, longest := map[*Node]Time{}, Time(0)
	w.look(t, "all are finished", 20, 60_000, func() bool {
		for _, p := range others {
			b := p.machine.Gossip().Peers().Heartbeat(n.id)
			if b.State != wire.Observing || slices.ContainsFunc(b.Unpublished, func(tokens uint64) bool { return tokens > 0 }) {
				t.Fatalf("says %v, and that %d tokens are unpublished", b.State, b.Unpublished)
			}
			if p.may || p.machine.Rounds().Status().Ended {
				still[p] = w.now
			}
			longest = max(longest, w.now-still[p])
		}
		return w.allFinished()
	})
	if longest >= doubtMs {
		t.Errorf("others stand still for %d ms, as if they had believed it", longest)
	}
	if !n.keyOnly || n.unpublished() == 0 {
		t.Error("it may sign, or had nothing to publish: this world tests nothing")
	}
}

func specKeyUnknown(t *testing.T, s *spectest.Spec) {
	for name, c := range map[string]struct {
		linked bool
		says   wire.State // a peer; 0 for none
		older  Time       // than the time that a key waits
		waits  bool
	}{
		"no link, nobody":             {says: 0, older: -10_000},
		"a link, nobody":              {linked: true, older: -10_000, waits: true},
		"a link, one who joins":       {linked: true, says: wire.Joining, older: -10_000, waits: true},
		"no link, one who joins":      {says: wire.Joining, older: -10_000},
		"no link, one who trains":     {says: wire.Training, older: -10_000, waits: true},
		"no link, in an old run":      {says: wire.Joining, older: 10_000, waits: true},
		"no link, nobody, long after": {says: 0, older: 10_000, waits: true},
	} {
		w := deserted(t, slow(1))
		w.ageBy(c.older)
		n, peer := w.comesBack(!c.linked), w.outsider(9)
		began := w.now
		for n.keyOnly && w.now < began+2*aloneMs {
			if c.says != 0 {
				peer.sends(n, wire.Heartbeat{State: c.says})
			}
			w.RunFor(100)
		}
		if took := w.now - began; n.keyOnly != c.waits || !n.keyOnly && (took < aloneMs || took > aloneMs+200) {
			t.Errorf("%s: signs %v after %d ms", name, !n.keyOnly, took)
		}
	}
}

// A newcomer that reached nobody knows nothing of what others signed before. Its word does not do for one
// that lost its disk and meets it alone; once they have met the others it does.
func specKeyMeetsNewcomer(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, calmScenario(3, 3000))
	w.RunFor(3000)
	n, newcomer := w.nodes[2], w.join(NodeSpec{Slow: 1})
	w.partition(Fault{Others: []int{newcomer.index}})
	w.RunFor(10_000)
	n.disturb(Fault{Kind: fault.Wipe})
	w.partition(Fault{Others: []int{n.index, newcomer.index}})
	n.restart()
	w.until(t, "they meet", 60_000, func() bool { return slices.Contains(n.links, newcomer) })
	before := n.ownRecords()
	if w.RunFor(30_000); !n.keyOnly || n.ownRecords() > before {
		t.Errorf("it signs %d deltas beside one that met nobody", n.ownRecords()-before)
	}
	w.merge()
	w.until(t, "it signs", 60_000, func() bool { return !n.keyOnly && n.ownRecords() > before })
}

func specMark(t *testing.T, s *spectest.Spec) {
	w := few(t, 1, 600)
	w.RunFor(1500)
	n := w.nodes[0]
	before := n.machine.Rounds().Fragment(1).Mark()
	h := headerAt(1, before)
	h.Round = before + 9
	w.outsiderWith(n.key).shows(n, h)
	w.RunFor(10) // the disk's time
	want := before + 9 + uint32(s.Number(t, "life", "margin"))
	written, _ := n.disk.Mark(1) // which has no errors
	if got := n.machine.Rounds().Fragment(1).Mark(); got != want || written != want {
		t.Errorf("mark %d, %d on disk, after a header of round %d", got, written, before+9)
	}
	if got := n.machine.Rounds().Fragment(0).Mark(); got >= before+9 {
		t.Errorf("mark %d of another fragment", got)
	}
}

// offers tells what becomes of a draft of a fragment that is ready now.
func (n *Node) offers(t *testing.T, fragment int) (signed, back int) {
	payload := n.w.payload(fragment)
	n.machine.SignDraft(n.clock(), fragment, outer.Draft{Fragment: fragment, Seq: 1 << 20, Steps: 1, Tokens: TokensPerStep, Payload: payload}, nil)
	for _, e := range n.machine.Effects() {
		switch e := e.(type) {
		case core.StoreOwn:
			signed++
			if got, want := e.Header.Header.Round, n.machine.Rounds().Fragment(fragment).Closed()+1; got != want {
				t.Errorf("signs round %d where %d is open", got, want)
			}
		case core.ReturnDraft:
			back++
		}
	}
	return signed, back
}

// A draft leaves only when the machine was told that it is on disk.
func specDurable(t *testing.T, _ *spectest.Spec) {
	w := few(t, 1, 3000)
	w.RunFor(1000)
	n := w.nodes[0]
	var own []core.StoreOwn
	published := func() (headers int) {
		for _, e := range n.machine.Effects() {
			switch e := e.(type) {
			case core.StoreOwn:
				own = append(own, e)
			case core.IO:
				p, is := e.Effect.(gossip.Publish)
				if m, err := wire.Open(w.run, p.Bytes); is && err == nil && m.Header != nil {
					headers++
				}
			}
		}
		return headers
	}
	n.machine.SignDraft(n.clock(), 1, outer.Draft{Fragment: 1, Seq: 1 << 20, Steps: 1, Tokens: TokensPerStep, Payload: w.payload(1)}, nil)
	if before := published(); before != 0 || len(own) != 1 {
		t.Fatalf("%d headers leave before %d deltas are on disk", before, len(own))
	}
	n.machine.Tick(n.clock() + 5000)
	if late := published(); late != 0 {
		t.Errorf("%d headers leave while the disk is slow", late)
	}
	if n.machine.StoredOwn(n.clock(), own[0], nil); published() != 1 {
		t.Error("the header does not leave")
	}
}

// Steps go into a later delta where the node may not sign the round that is open.
func TestDraftsThatMayNotBeSigned(t *testing.T) {
	t.Parallel()
	for ahead, want := range map[uint32]int{0: 1, 1: 0, 9: 0} {
		w := few(t, 1, 3000)
		w.RunFor(1000)
		n := w.nodes[0]
		if ahead > 0 {
			n.machine.Rounds().RaiseMark(1, n.machine.Rounds().Fragment(1).Closed()+ahead)
		}
		if signed, back := n.offers(t, 1); signed != want || back != 1-want {
			t.Errorf("a mark %d above closed: %d signed, %d returned", ahead, signed, back)
		}
	}
	_, n := wiped(t, calmScenario(3, 3000))
	if n.restart(); !n.keyOnly {
		t.Fatal("it knows at once")
	}
	if signed, back := n.offers(t, 1); signed != 0 || back != 1 {
		t.Errorf("before it knows what was signed: %d signed, %d returned", signed, back)
	}
}

// asked gives a machine a request and returns the body of its answer.
func (n *Node) asked(r wire.Request) []byte {
	const handle = 1 << 40
	n.machine.Step(n.clock(), gossip.Requested{Handle: handle, From: wire.PeerID{99}, Request: r.Encode()})
	for _, e := range n.machine.Effects() {
		if io, ok := e.(core.IO); ok {
			if e, ok := io.Effect.(gossip.Reply); ok && e.Handle == handle {
				return e.Response[1:]
			}
		}
	}
	return nil
}

// convicted is a node that holds a delta of its own for a round, one of another
// author, and an equivocation proof against a third.
func convicted(t *testing.T) (n *Node, round uint32, ids []wire.Digest) {
	w := few(t, 1, 600)
	w.RunFor(2500)
	n = w.nodes[0]
	round = n.machine.Rounds().Fragment(0).Closed()
	h := headerAt(0, round-1)
	good, liar := w.outsider(8), w.outsider(9)
	ids = append(ids, good.shows(n, h), liar.shows(n, h))
	h.Steps++
	ids = append(ids, liar.shows(n, h))
	w.RunFor(500)
	for _, d := range n.machine.Rounds().Fragment(0).Set(round) {
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
