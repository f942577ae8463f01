package replica_test

import (
	"errors"
	"fmt"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/testnet/sim/memory"
)

// learner says what a test wants it to.
type learner struct {
	g        *rig
	seq      uint64
	err      error // of all methods
	loss     outer.Loss
	returned []outer.Own
	closed   []uint32 // at the last step
	restored int
	lost     []int
}

func (l *learner) Draft(p int) (outer.Draft, error) {
	l.seq++
	_, _, payload := l.g.signed(p, 1, l.g.keys[0])
	return outer.Draft{Fragment: p, Seq: l.seq, Steps: 8, Tokens: 100, Payload: payload}, l.err
}

func (l *learner) Return(_ int, o outer.Own) error {
	l.returned = append(l.returned, o)
	return l.err
}

func (l *learner) Follow(outer.Adopt) (outer.Loss, error) { return l.loss, l.err }

func (l *learner) Lost(p int) (outer.Loss, error) {
	l.lost = append(l.lost, p)
	return outer.Loss{Lost: outer.Work{Steps: 3, Tokens: 1536}}, l.err
}

func (l *learner) Stepped(_ int, closed []uint32) { l.closed = closed }

func (l *learner) Restore(_ int, own, _ []uint64) error {
	l.restored += len(own)
	return l.err
}

// readable counts the own deltas whose payloads the learner can read back.
func (g *rig) readable(seqs ...uint64) (n int) {
	for _, seq := range seqs {
		if _, err := g.OwnPayload(seq); err == nil {
			n++
		}
	}
	return n
}

// learning is a replica with a learner, which has taken some steps.
func learning(t *testing.T) (*rig, *learner) {
	g := newRig(t)
	l := &learner{g: g}
	g.learner = l
	g.start()
	for range 30 {
		g.Stepped(512)
		g.tick(10)
	}
	return g, l
}

// Progress becomes a delta that is durable before it is announced.
func TestDraft(t *testing.T) {
	g, _ := learning(t)
	own, err := g.disk.Own()
	g.check(err)
	want(t, "own deltas", len(own) > 0, true)
	id := own[0].ID
	payload, err := g.OwnPayload(own[0].Seq)
	g.check(err)
	want(t, "payload", wire.Sum(payload), own[0].Header.Payload)
	if known, held := g.Machine().Rounds().Fragment(int(own[0].Header.Fragment)).Known(1, outer.ID(id)); !known || !held {
		t.Errorf("the machine knows it: %v, holds it: %v", known, held)
	}
	if _, err := g.OwnPayload(99); err == nil {
		t.Error("it reads an own delta that is not there")
	}
}

// What the disk refuses goes back to the learner; where disk and machine disagree about
// what was signed the node ends.
func TestOwnDeltaThatIsNotStored(t *testing.T) {
	g, l := learning(t)
	g.disk.Full = true
	id := g.storeOwn(3, 7)
	g.finish()
	if g.disk.Holds(id) || len(l.returned) != 1 || l.returned[0].Seq != 7 || l.returned[0].Tokens != 100 || g.failed != nil {
		t.Errorf("stored %v, returned %v, failed with %v", g.disk.Holds(id), l.returned, g.failed)
	}
	wantError(t, "told", g.checked[len(g.checked)-1], memory.ErrFull)
	want(t, "own", g.readable(7), 0)

	l.err = errors.New("no such draft")
	g.do(core.ReturnDraft{Own: outer.Own{Seq: 8}})
	wantError(t, "returned twice", g.failed, l.err)

	g.failed, g.errs["PutOwn"] = nil, fmt.Errorf("%w: a round is signed twice", replica.ErrFatal)
	g.storeOwn(4, 9)
	g.finish()
	wantError(t, "signed twice", g.failed, replica.ErrFatal)
}

// A draft that fails on damage has the tip made anew, and one that cannot read an own
// delta has the learner begin anew from it; both give up what is unpublished.
func TestDraftThatFails(t *testing.T) {
	for _, c := range []struct {
		err    error
		repair bool
	}{{outer.ErrDamaged, true}, {outer.ErrUnread, true}, {errors.New("the codec does not like it"), false}} {
		g, l := learning(t)
		g.closes(0, 1)
		l.err = c.err
		if errors.Is(c.err, outer.ErrDamaged) {
			g.Machine().Rounds().Fragment(0).Tip().Global[0]++
		}
		g.Do(rounds.WantDraft{Fragment: 0})
		g.run("learn")
		l.err = nil
		saw[replica.Adopted](g)
		g.finish().tick(3_600_000)
		g.tick(3_600_000)
		if e := saw[replica.DraftFailed](g); len(e) != 1 || !errors.Is(e[0].Err, c.err) || g.failed != nil {
			t.Errorf("%v: told %v, failed with %v", c.err, e, g.failed)
		}
		repaired := false
		for _, a := range saw[replica.Adopted](g) {
			repaired = repaired || a.Repair && a.MayRepair() && a.Tip.Sound()
		}
		want(t, c.err.Error(), repaired, c.repair)
	}
}

// The learner is told which rounds its parameters stand on. One that cannot adopt ends the node.
func TestAdopt(t *testing.T) {
	g, l := learning(t)
	tip := &outer.Tip{Round: 9}
	l.loss = outer.Loss{Found: outer.ErrDamaged}
	g.Do(rounds.Adopt{Adopt: outer.Adopt{Fragment: 1, Tip: tip}})
	saw[replica.Adopted](g)
	g.finish().Stepped(512)
	if e := saw[replica.Adopted](g); len(e) != 1 || !e[0].MayRepair() || l.closed[1] != 9 {
		t.Errorf("adopted %+v, steps stand on rounds %v", e, l.closed)
	}
	l.err = errors.New("a tip of another fragment")
	g.do(rounds.Adopt{Adopt: outer.Adopt{Fragment: 1, Tip: &outer.Tip{Round: 10}}}).Stepped(512)
	wantError(t, "bad adoption", g.failed, l.err)
	want(t, "closed", l.closed[1], 9)
}

// An observer has no learner: nobody drafts, and tips are told of.
func TestObserver(t *testing.T) {
	g := newRig(t).start()
	g.do(rounds.WantDraft{}, core.ReturnDraft{}, rounds.Adopt{Adopt: outer.Adopt{Tip: g.tips[0]}})
	if len(saw[replica.Adopted](g)) != 1 || len(saw[replica.DraftFailed](g)) != 0 || g.failed != nil {
		t.Errorf("failed with %v", g.failed)
	}
}

// Another's delta is stored once it decodes, and forgotten where the machine knows it no more.
func TestStoreDelta(t *testing.T) {
	g := newRig(t).start()
	id, h, payload := g.signed(0, 1, g.keys[1])
	store := func(payload []byte) int {
		g.do(core.StoreDelta{ID: id, Header: &h, Payload: payload})
		return len(saw[replica.PayloadOnDisk](g))
	}
	want(t, "what does not decode", store([]byte("junk")), 0)
	g.disk.Full = true
	want(t, "on a full disk", store(payload), 0)
	want(t, "held", g.disk.Holds(id), false)
	g.disk.Full = false
	want(t, "stored", store(payload), 1)
	want(t, "held, unknown to the machine", g.disk.Holds(id), false)
	if err := g.disk.PutDelta(id, &h, payload); err != nil {
		t.Fatal(err)
	}
	g.do(core.ForgetDelta{ID: id}, core.ForgetDelta{ID: id})
	want(t, "held after it is forgotten", g.disk.Holds(id), false)
}

// What nobody waits for is written as well.
func TestWrites(t *testing.T) {
	g := newRig(t).start()
	_, h, _ := g.signed(0, 1, g.keys[1])
	g.do(core.RaiseMark{Fragment: 1, Round: 6}, core.MarksKnown{})
	g.do(gossip.StoreHeader{Header: h}, gossip.Fetching{At: []uint32{3, 4}}, core.StoreEquivocation{Equivocation: wire.Equivocation{A: h, B: h}})
	mark, _ := g.disk.Mark(1) // which has no errors
	want(t, "mark", mark, 6)
	_, known, _ := g.disk.Header(h.Header.ID(run))
	want(t, "header", known, true)
	wantRounds(t, "fetching", g.disk.Fetching, 3, 4)
	_, _, proofs := g.disk.Sizes()
	want(t, "proofs", proofs, 1)
	want(t, "marks told", len(saw[core.RaiseMark](g))+len(saw[core.MarksKnown](g)), 2)
}

// Chunks that nobody needs are dropped some time after the last one came.
func TestChunksGoWhenNobodyNeedsThem(t *testing.T) {
	g := newRig(t).start().tick(1)
	want(t, "phase", g.Machine().View().Phase(), core.Ready)
	store := gossip.StoreChunk{Digest: wire.Digest{1}, Bytes: []byte("chunk")}
	g.do(store, gossip.Fetching{At: []uint32{3, 4}})
	for _, c := range []struct {
		ms   int64
		held bool
	}{{59_999, true}, {1, false}, {1, false}} {
		g.tick(c.ms).DropOldChunks()
		g.finish()
		want(t, "held", g.disk.HasChunk(store.Digest), c.held)
	}
	wantRounds(t, "fetching", g.disk.Fetching)
	g.DropOldChunks()
	want(t, "drops nothing twice", len(g.work["disk"]), 0)
	g.disk.Full = true
	g.do(store)
	wantError(t, "told", g.checked[len(g.checked)-1], memory.ErrFull)
}

// A joiner keeps all chunks.
func TestChunksOfAJoinerStay(t *testing.T) {
	g := newRig(t)
	g.joins = true
	g.start().do(gossip.StoreChunk{Digest: wire.Digest{1}, Bytes: []byte("chunk")})
	g.tick(100_000).DropOldChunks()
	g.finish()
	want(t, "held", g.disk.HasChunk(wire.Digest{1}), true)
}

// The watcher is told of news, and of effects that are a process's own.
func TestNewsIsTold(t *testing.T) {
	g := newRig(t).start()
	g.do(core.News{Event: rounds.Closed{}}, core.Finished{}, core.MayStep{Yes: true})
	if g.failed != nil || len(saw[rounds.Closed](g)) != 1 || len(saw[core.Finished](g)) != 1 {
		t.Errorf("news: %v", g.failed)
	}
}

// A device that is gone costs what was unpublished, in every fragment.
func TestLearnerLost(t *testing.T) {
	g, l := learning(t)
	g.LearnerLost()
	g.finish()
	events := saw[replica.StepsLost](g)
	want(t, "fragments", len(l.lost), len(l.closed))
	want(t, "events", len(events), len(l.closed))
	for p, e := range events {
		want(t, "fragment", e.Fragment, p)
		want(t, "tokens", e.Loss.Lost.Tokens, uint64(1536))
	}
	g2, l2 := learning(t)
	l2.err = errors.New("the program is wrong")
	g2.LearnerLost()
	want(t, "failed", errors.Is(g2.failed, l2.err), true)
}
