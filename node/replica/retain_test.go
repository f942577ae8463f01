package replica_test

import (
	"errors"
	"fmt"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// retained are the payloads that Retain dropped; -1 if it did nothing.
func (g *rig) retained() int {
	g.Retain()
	g.finish()
	if events := saw[replica.Retained](g); len(events) > 0 {
		return events[0].Dropped
	}
	return -1
}

// overBudget is a replica whose ledger takes more than it may.
func overBudget(t *testing.T) *rig {
	g := newRig(t)
	g.params.WindowAccept, g.params.WindowUnion = 2, 4
	g.policy.KeepBytes = 1
	return g
}

// Over its budget a replica drops payloads of final rounds up to its oldest base on
// disk, from which a replay begins. It looks every 30 s, and not while it drops.
func TestRetain(t *testing.T) {
	g := overBudget(t).write(4, true).write(8, true).start()
	g.Retain()
	g.tick(0).Retain()
	want(t, "looks at once", len(g.work["serve"]), 0)
	if e := saw[replica.Retained](g); len(e) != 1 || e[0].Dropped != 4*2*2 || e[0].Budget != 1 || e[0].Bytes == 0 {
		t.Errorf("retained %+v", e)
	}
	for round, held := range map[uint32]bool{4: false, 5: true} {
		id, _, _ := g.signed(1, round, g.keys[1])
		want(t, "payload held", g.disk.Holds(id), held)
	}
	want(t, "looks after 29 s", g.tick(29_999).retained(), -1)
	want(t, "looks after 30 s", g.tick(1).retained(), 0)

	g.tick(30_000).Retain()
	g.ms += 30_000
	g.Retain()
	want(t, "looks while it drops", len(g.work["serve"]), 1)
}

func TestRetainWithinABudget(t *testing.T) {
	g := overBudget(t).write(4, true).write(8, true)
	g.policy.KeepBytes = 1 << 30
	want(t, "within the budget", g.start().retained(), 0)
	g = overBudget(t).write(4, true).write(8, true)
	g.policy.KeepBytes = 0
	want(t, "without one", g.start().retained(), -1)
}

// Without a base on disk to replay from, payloads stay.
func TestRetainNeedsABase(t *testing.T) {
	g := overBudget(t)
	g.policy.BaseEvery, g.policy.BaseAt = 1000, 999
	want(t, "without a base", g.write(12, false).start().retained(), 0)
}

func TestRetainOnABadDisk(t *testing.T) {
	g := overBudget(t).write(4, true).write(8, true).start()
	g.errs["Bases"] = errors.New("cannot be read")
	want(t, "on a bad disk", g.retained(), -1)
	wantError(t, "told", g.checked[0], g.errs["Bases"])
	g.errs = nil
	want(t, "busy for ever", g.tick(30_000).retained(), 4*2*2)
}

// What is known of final rounds goes into the archive up to the oldest base on disk,
// budget or none. A disk that cannot is told of, and asked again.
func TestArchive(t *testing.T) {
	for _, budget := range []int64{0, 1} {
		g := overBudget(t).write(4, true).write(8, true)
		g.policy.KeepBytes = budget
		g.start().retained()
		g.errs["Archive"] = errors.New("cannot be written")
		g.tick(30_000).retained()
		want(t, "told", len(g.checked), 1)
		wantError(t, "told", g.checked[0], g.errs["Archive"])
		g.errs = nil
		g.tick(30_000).retained()
		want(t, "archived", fmt.Sprint(g.archived), "[[4 4] [4 4] [4 4]]")
	}
}

// Own deltas that are final leave the list that a restart reads, as do those that tips
// discarded or dropped: one may have become durable while these were written. Their payloads stay
// until the adoption that may read them is over.
func TestFinalOwnDeltasAreForgotten(t *testing.T) {
	g := overBudget(t)
	g.learner = &learner{}
	g.write(4, true).write(8, true).start()
	var ids []wire.Digest
	for seq := range uint64(5) {
		ids = append(ids, g.storeOwn(uint32(seq)+1, seq))
	}
	g.finish()
	a := rounds.Adopt{Adopt: outer.Adopt{Tip: g.tips[0]}}
	for seq, fate := range map[uint64]outer.Fate{0: outer.Forgotten, 9: outer.Forgotten, 2: outer.Returned, 3: outer.Discarded, 4: outer.Dropped} {
		a.Changes = append(a.Changes, outer.Change{Own: outer.Own{Seq: seq}, Fate: fate})
	}
	g.Do(a)
	g.run("disk")
	own, err := g.disk.Own()
	g.check(err)
	if len(own) != 1 || own[0].Seq != 1 {
		t.Errorf("a restart reads own deltas %+v", own)
	}
	g.Retain()
	g.run("serve")
	want(t, "the adoption can read", g.disk.Holds(ids[0]) && g.disk.Holds(ids[2]), true)
	g.finish()
	want(t, "final ones that can be read", g.readable(0, 2), 0)
	want(t, "others that can be read", g.readable(1, 3, 4), 3)
	g.tick(30_000).retained()
	for i, held := range []bool{false, true, false, true, true} {
		want(t, "payload held", g.disk.Holds(ids[i]), held)
	}
}

// storeOwn has an own delta of fragment 0 stored.
func (g *rig) storeOwn(round uint32, seq uint64) wire.Digest {
	id, h, payload := g.signed(0, round, g.keys[0])
	g.Do(core.StoreOwn{ID: id, Header: h, Payload: payload, Seq: seq})
	return id
}
