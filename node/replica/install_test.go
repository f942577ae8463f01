package replica_test

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/testnet/sim/memory"
)

// inWindow is a replica whose links go three rounds back.
func inWindow(t *testing.T) *rig {
	g := newRig(t)
	g.params.WindowUnion, g.params.WindowAccept = 4, 2
	return g
}

// another is a source of the snapshot of a round, on a chain whose rounds lack a delta.
func another(t *testing.T, round int) *rig {
	g := inWindow(t)
	g.keys = slices.Clone(g.keys[1:2])
	g.keys = append(g.keys, g.keys...)[:2]
	return g.write(round, true).write(2, false).start()
}

// fetch brings the chunks of a source's snapshot, and returns what installs them.
func (g *rig) fetch(source *rig) core.InstallSnapshot {
	g.t.Helper()
	g.source = source
	g.Machine().Step(g.now, gossip.PeerUp{Peer: wire.PeerIDOf(source.keys[0])})
	g.Machine().Gossip().FetchSnapshot(g.now)
	for g.Execute(); len(g.work["install"]) == 0; g.Execute() {
		if g.run("loop")+g.run("disk")+g.run("fold") == 0 {
			g.t.Fatal("the snapshot does not come")
		}
	}
	g.run("disk")
	g.work["install"] = nil
	last := make([]uint32, len(g.plan))
	for p := range last {
		last[p], _ = g.disk.LastRound(p) // which has no errors
	}
	return core.InstallSnapshot{Manifest: source.offer(), Common: g.Machine().Gossip().Chains().Common(), Closed: last}
}

// ownRound puts a round of fragment 0 on the disk that folded an own delta alone.
func (g *rig) ownRound() wire.Digest {
	g.t.Helper()
	id, h, payload := g.signed(0, g.tips[0].Round+1, g.keys[0])
	g.check(g.disk.PutOwn(core.StoreOwn{ID: id, Header: h, Payload: payload, Seq: 1}))
	set := []outer.Contribution{{Delta: core.DeltaOf(id, h.Header, nil), Payload: payload}}
	tip, out, err := outer.Fold(g.params, g.plan[0], g.tips[0], h.Header.Round, set)
	g.check(err)
	g.check(g.disk.PutRounds(0, []outer.Link{core.LinkOf(tip, out.Folded)}))
	g.tips[0] = tip
	return id
}

// A snapshot of another chain replaces bases and records of all fragments. Folds and drops that
// were wanted before do not touch them. A restart begins with them.
func TestInstall(t *testing.T) {
	other := another(t, 5)
	g := inWindow(t).write(2, true).write(2, true).start()
	g.disk.Full = true
	g.closes(0, 1) // a round that waits for its record
	g.disk.Full = false
	install := g.fetch(other)
	g.Do(install)
	g.Do(rounds.WantFold{Job: job, Start: 4, Sets: make([][]outer.Delta, 1), Keep: []uint32{5}})
	g.Do(rounds.DropBase{Fragment: 0, Round: 5})
	fold := g.work["fold"]
	g.work["fold"] = nil
	g.run("install")
	g.work["fold"] = fold
	g.finish()
	if e := saw[replica.Installed](g); len(e) != 1 || e[0].From != install.Manifest.Author || g.failed != nil {
		t.Fatalf("installed %+v, failed with %v", e, g.failed)
	}
	failed := saw[replica.FoldFailed](g)
	if len(failed) != 1 {
		t.Fatalf("folds that failed: %v", failed)
	}
	wantError(t, "an old fold", failed[0].Err, core.ErrOvertaken)
	for p := range g.plan {
		tip, _ := other.disk.Base(p, 5) // which has no errors
		want(t, "tip", g.Machine().Rounds().Fragment(p).Tip().State, tip.State)
		wantRounds(t, "on disk", g.onDisk(p), 5)
		wantRounds(t, "in memory", g.inMemory(p), 5)
		wantRounds(t, "records", g.records(p), 3, 4, 5)
	}
	if _, err := g.fold(rounds.WantFold{Job: job + 1, Start: 5, Sets: make([][]outer.Delta, 1)}); err != nil {
		t.Errorf("a new fold: %v", err)
	}
	wantRounds(t, "records then", g.records(0), 3, 4, 5, 6)
	record, _ := g.disk.Record(0, 5)
	want(t, "what waited was of the old chain", record.Chain, g.Machine().Rounds().Fragment(0).Tip().Chain)
	g.start()
	for p := range g.plan {
		tip, _ := other.disk.Base(p, 5)
		want(t, "tip after a restart", g.was.Tips[p].State, tip.State)
	}
}

// Records below a snapshot of the own chain stay.
func TestInstallOnTheOwnChain(t *testing.T) {
	ahead := inWindow(t)
	ahead.keys[0] = ahead.keys[1]
	ahead.write(6, true).write(2, false).start()
	g := inWindow(t).write(4, false).start()
	g.do(g.fetch(ahead))
	for p := range g.plan {
		wantRounds(t, "records", g.records(p), 1, 2, 3, 4, 5, 6)
	}
}

// A disk that fails leaves the chain that was, on disk and in memory, and keeps the
// chunks: the snapshot is taken once it has room.
func TestInstallOnABadDisk(t *testing.T) {
	bad := errors.New("cannot be read")
	for _, what := range []string{"full", "Own", "Rounds"} {
		other := another(t, 5)
		g := inWindow(t).write(2, true).write(2, true).start()
		install := g.fetch(other)
		old := g.Machine().Rounds().Fragment(0).Tip()
		if g.disk.Full = what == "full"; !g.disk.Full {
			g.errs[what] = bad
		}
		g.do(install)
		failed := saw[replica.NotInstalled](g)
		if len(failed) != 1 || errors.Is(failed[0].Err, core.ErrUnfit) || len(g.checked) != 1 {
			t.Fatalf("%s: not installed %v, told %v", what, failed, g.checked)
		}
		wantError(t, what, failed[0].Err, map[bool]error{true: memory.ErrFull, false: bad}[g.disk.Full])
		g.disk.Full, g.errs = false, map[string]error{}
		want(t, "tip", g.Machine().Rounds().Fragment(0).Tip(), old)
		wantRounds(t, "on disk", g.onDisk(0), 2, 4)
		if _, err := g.base(0, 2); err != nil {
			t.Errorf("%s: an old base: %v", what, err)
		}
		if g.do(install); len(saw[replica.Installed](g)) != 1 {
			t.Errorf("%s: the same snapshot does not fit any more", what)
		}
	}
}

// A failed install is the snapshot source's doing only where it does not fit the run: then the
// chunks go.
func TestWhoseSnapshotDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*rig, *wire.Manifest)
		unfit bool
	}{
		{"another state", func(_ *rig, m *wire.Manifest) { m.Fragments[0].State[0] ^= 1 }, true},
		{"one fragment", func(_ *rig, m *wire.Manifest) { m.Fragments = m.Fragments[:1] }, true},
		{"a chunk is missing", func(g *rig, m *wire.Manifest) {
			first, _ := g.disk.Chunk(m.Fragments[0].Chunks[0]) // which is there
			_ = g.disk.DropChunks()
			_ = g.disk.PutChunk(m.Fragments[0].Chunks[0], first)
		}, false},
	} {
		g := inWindow(t).write(4, true).start()
		install := g.fetch(another(t, 5))
		c.spoil(g, &install.Manifest)
		g.do(install)
		failed := saw[replica.NotInstalled](g)
		if len(failed) != 1 || errors.Is(failed[0].Err, core.ErrUnfit) != c.unfit {
			t.Fatalf("%s: %v", c.what, failed)
		}
		want(t, c.what+": chunks stay", g.disk.HasChunk(install.Manifest.Fragments[0].Chunks[0]), !c.unfit)
	}
}

// An own delta that the chain which is left folded, and the new one does not, is no
// longer in flight after a restart: its progress left the parameters when it was folded.
// Nor is one that was in flight, of a round that the new chain closed without it: that leaves
// the parameters with the tips. One that waits for its round still is.
func TestInstallForgetsWhatTheOtherChainLeavesOut(t *testing.T) {
	g := inWindow(t).write(3, true)
	mine := g.ownRound()
	g.start()
	missed, h, payload := g.signed(1, 4, g.keys[0])
	g.check(g.disk.PutOwn(core.StoreOwn{ID: missed, Header: h, Payload: payload, Seq: 2}))
	waits, h, payload := g.signed(1, 6, g.keys[0])
	g.check(g.disk.PutOwn(core.StoreOwn{ID: waits, Header: h, Payload: payload, Seq: 3}))
	g.do(g.fetch(another(t, 5)))
	left := saw[replica.Installed](g)[0].Left
	if !slices.Equal(left.Own[0], []wire.Digest{mine}) || left.Tokens[0] != 100 || !slices.Equal(left.Own[1], []wire.Digest{missed}) {
		t.Errorf("left behind: %+v", left)
	}
	own, err := g.disk.Own()
	g.check(err)
	if len(own) != 1 || own[0].ID != waits {
		t.Errorf("own deltas in flight: %+v", own)
	}
}

// Where the history that comes with the snapshot begins after the fork, what is lost is what
// was folded since others last showed the same.
func TestLeftBehindBeforeTheHistory(t *testing.T) {
	g := inWindow(t)
	g.keys[0] = g.keys[2] // whose deltas the other chain lacks
	g.common = []uint32{2, 0}
	g.write(5, true).start()
	g.do(g.fetch(another(t, 6)))
	left := saw[replica.Installed](g)[0].Left
	want(t, "of fragment 0: rounds 3 to 5", len(left.Own[0]), 3)
	want(t, "of fragment 1: all five", len(left.Own[1]), 5)
}

// Own deltas that both chains fold, older than the history that comes with the snapshot: their
// records go, and a restart must not take them for in flight.
func TestInstallForgetsWhatWasFoldedBeforeTheHistory(t *testing.T) {
	g := inWindow(t).write(1, true)
	g.ownRound()
	g.common = []uint32{2, 2}
	g.start()
	g.do(g.fetch(another(t, 6)))
	if left := saw[replica.Installed](g)[0].Left; len(left.Own[0]) != 0 {
		t.Errorf("left behind: %v, though others had folded it", left.Own[0])
	}
	if own, err := g.disk.Own(); err != nil || len(own) != 0 {
		t.Errorf("in flight after a restart: %+v, %v", own, err)
	}
}
