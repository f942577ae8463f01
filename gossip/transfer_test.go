package gossip

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/wire"
)

// sources is a world of n nodes at rest that have trained. Each has a link of so
// many bytes per ms and tips of so many chunks per fragment.
func sources(t *testing.T, seed uint64, n, chunks int, rate float64) *world {
	return ran(t, seed, n, options{tipBytes: chunks * wire.ChunkSize, link: rate})
}

// tips are the bytes of all tips.
func (w *world) snapshotSize() int64 { return int64(w.opt.fragments * w.tipBytes()) }

func (n *node) joined() bool { return slices.ContainsFunc(n.effects, isSnapshot) }

// trains makes the nodes go on with a round each period, which those that join
// later close as well.
func (w *world) trains(period Time, size int) {
	founders := w.nodes
	for _, n := range founders {
		n.state = wire.Training
	}
	var next func()
	next = func() {
		r := founders[len(founders)-1].chain.closed[0] + 1
		for _, n := range founders {
			n.round(r, size)
		}
		w.after(period*3/4, func() {
			for _, n := range w.nodes {
				n.closeAll(r)
			}
		})
		w.after(period, next)
	}
	w.after(1, next)
}

// A join takes at most a round and 1.3 times what its bytes take on the joiner's
// link: with one source, with four, and with one of four that dies midway.
func TestJoinTakesAsLongAsItsBytes(t *testing.T) {
	const rate, period, size = 1000, 500, 4000
	for _, c := range []struct {
		sources int
		dies    bool
	}{{1, false}, {4, false}, {4, true}, {2, true}} {
		t.Run(fmt.Sprintf("%d sources, one dies %v", c.sources, c.dies), func(t *testing.T) {
			w := sources(t, 60, c.sources, 8, rate)
			w.trains(period, size)
			w.runUntil(w.now + 2*period)
			began := w.now
			n := w.join(w.nodes[0].id)
			if c.dies {
				w.after(w.snapshotSize()/2/rate, func() { w.kill(0) })
			}
			if !w.runUntilTrue(w.now+120_000, func() bool {
				equal, _ := n.core.Chains().Equal(w.now)
				return n.joined() && equal
			}) {
				t.Fatal("the joiner never shows the digests of a peer")
			}
			took, bytes := w.now-began, w.snapshotSize()+n.received
			if most := Time(1.3*float64(bytes)/rate) + period; took > most {
				t.Errorf("joined after %d ms, %d bytes at %d bytes/ms and a round are %d", took, bytes, rate, most)
			}
			if n.received == 0 {
				t.Error("no round closed while the joiner was on its way")
			}
			if n.link.got+n.link.cut > w.snapshotSize()+wire.ChunkSize {
				t.Errorf("%d bytes of chunks came, and %d of half ones, for a snapshot of %d", n.link.got, n.link.cut, w.snapshotSize())
			}
		})
	}
}

// Over the thinnest links a chunk takes longer than a node waits on others. What comes late counts all the same, so the
// joiner is in about when its bytes had the time to come, and nobody counts as a failed source. ATOLL_LONG=1 has links between
// the thinnest and the widest.
func TestJoinOverThinLinks(t *testing.T) {
	t.Parallel()
	rates := []float64{12, 100} // bytes per ms: 0.1 and 0.8 Mbit/s
	if long {
		rates = []float64{12, 25, 50, 100}
	}
	for _, rate := range rates {
		for _, n := range []int{1, 4} {
			w := sources(t, 68, n, 4, rate)
			joiner := w.join(w.nodes[0].id)
			needs := Time(float64(w.snapshotSize()) / rate)
			began, failed := w.now, ""
			if !w.runUntilTrue(w.now+4*needs, func() bool {
				failed = cmp.Or(failed, joiner.core.Fetch().Lacks)
				return joiner.joined()
			}) {
				t.Errorf("%g bytes/ms, %d sources: not in after %d ms, its bytes take %d: %v", rate, n, w.now-began, needs, joiner.core.snapshot.transfer.String())
				continue
			}
			if took := w.now - began; took > needs*3/2 || failed != "" {
				t.Errorf("%g bytes/ms, %d sources: in after %d ms, its bytes take %d; a source failed: %q", rate, n, took, needs, failed)
			}
		}
	}
}

// Wherever in the transfer its source dies, what came is kept, and at most one
// chunk came in vain.
func TestSourceDiesAtEachChunk(t *testing.T) {
	const chunks = 3
	for k := range 3*chunks + 1 {
		w := sources(t, 61, 3, chunks, 500)
		n := w.join(w.nodes[0].id)
		if !w.runUntilTrue(w.now+60_000, func() bool { return len(n.chunks) >= k }) {
			t.Fatalf("%d chunks never came", k)
		}
		w.kill(0)
		if !w.runUntilTrue(w.now+120_000, w.equal) {
			t.Fatalf("source died after %d chunks: the joiner did not get in", k)
		}
		if n.link.got != w.snapshotSize() || n.link.cut > wire.ChunkSize {
			t.Errorf("source died after %d chunks: %d bytes came whole and %d in vain, for a snapshot of %d", k, n.link.got, n.link.cut, w.snapshotSize())
		}
	}
}

// Wherever in the transfer the joiner dies, it goes on where it was, with the
// source it had or with another.
func TestJoinerDiesAtEachChunk(t *testing.T) {
	t.Parallel()
	const chunks = 3
	for k := range 3 * chunks {
		w := sources(t, 62, 3, chunks, 500)
		w.trains(2000, 2000) // a manifest of the present snapshot would be of other rounds
		n := w.join(w.nodes[0].id)
		if !w.runUntilTrue(w.now+60_000, func() bool { return len(n.chunks) >= k }) {
			t.Fatalf("%d chunks never came", k)
		}
		stored, came := len(n.chunks), n.link.got
		w.kill(n.index)
		if k%2 == 1 {
			w.kill(0)
		}
		w.runUntil(w.now + 3000)
		n.up = true
		n.boot()
		n.core.env.Config.Trusted = []wire.PeerID{w.nodes[0].id, w.nodes[1].id}
		w.merge()
		n.do(func() { n.core.FetchSnapshot(w.now) })
		if !w.runUntilTrue(w.now+60_000, n.joined) {
			t.Fatalf("joiner died after %d chunks and did not get in", k)
		}
		left := int64(3*chunks-stored) * wire.ChunkSize
		if k > 0 && n.link.got-came > left {
			t.Errorf("with %d chunks stored it fetched %d bytes more, want %d", stored, n.link.got-came, left)
		}
	}
}

// A source that takes requests and answers none holds nothing up for long.
func TestSilentSource(t *testing.T) {
	for name, mute := range map[string]wire.RequestKind{
		"no manifest": wire.GetManifest, "no chunks": wire.GetChunk, "no snapshot of given rounds": wire.GetSnapshot,
	} {
		t.Run(name, func(t *testing.T) {
			w := sources(t, 63, 3, 3, 1000)
			w.nodes[0].ignores = mute
			n := w.join(w.nodes[0].id)
			if !w.runUntilTrue(w.now+60_000, w.equal) {
				t.Fatalf("%v", n.core.snapshot.transfer)
			}
			if most := w.snapshotSize() * 2; n.link.got > most {
				t.Errorf("%d bytes came for a snapshot of %d", n.link.got, w.snapshotSize())
			}
		})
	}
}

// On a capped downlink, where few chunks are asked for at once, sources that never answer do not take all slots.
func TestMuteSourcesOnCappedLink(t *testing.T) {
	w := sources(t, 69, 4, 3, 1000)
	for _, n := range w.nodes[:3] {
		n.ignores = wire.GetChunk
	}
	n := w.join(w.nodes[0].id)
	n.core.SetDown(100)
	const most = 120_000 // nine chunks, and a source that is still for each
	if !w.runUntilTrue(w.now+most, n.joined) {
		t.Errorf("not in after %d ms: %v", most, n.core.snapshot.transfer.String())
	}
}

// The only source serves no chunks: the joiner tries on, and gets in when it does.
func TestOnlySourceIsSlowToAnswer(t *testing.T) {
	w := sources(t, 64, 1, 2, 1000)
	w.nodes[0].ignores = wire.GetChunk
	n := w.join(w.nodes[0].id)
	w.runUntil(w.now + 2*progressMs)
	if f := n.core.Fetch(); f.Lacks == "" || !f.Any || f.Source != w.nodes[0].id || f.Wrong > 0 {
		t.Errorf("of a source that gives nothing it says %+v", f)
	}
	w.nodes[0].ignores = 0
	if !w.runUntilTrue(w.now+4*progressMs, w.equal) {
		t.Error("the joiner gave up")
	}
}

// The disk of a joiner fills up after any number of chunks. It fetches little in
// vain until there is room, blames nobody, and then gets in with what it had.
func TestFullDiskOfAJoiner(t *testing.T) {
	t.Parallel()
	const chunks, minutes = 4, 2
	for _, k := range []int{0, 1, 3*chunks - 1, 3 * chunks} {
		w := sources(t, 66, 2, chunks, 2000)
		n := w.join(w.nodes[0].id)
		n.full = k == 0
		if !w.runUntilTrue(w.now+60_000, func() bool { return len(n.chunks) >= k }) {
			t.Fatalf("%d chunks never came", k)
		}
		n.full = true
		w.runUntil(w.now + minutes*60_000)
		if f := n.core.Fetch(); f.Lacks != "" || f.Wrong > 0 {
			t.Errorf("full after %d chunks: a source is said to have failed: %+v", k, f)
		}
		for _, p := range n.core.env.List {
			if snapshotOf(p).badSnapshots != 0 || p.Refused != "" {
				t.Errorf("full after %d chunks: a source is blamed: %d, %q", k, snapshotOf(p).badSnapshots, p.Refused)
			}
		}
		inVain := n.link.got - int64(len(n.chunks))*wire.ChunkSize
		if most := int64(maxChunkCalls+minutes*60_000/fetch.DiskRetryMs) * wire.ChunkSize; inVain > most {
			t.Errorf("full after %d chunks: %d bytes came in vain, at most %d", k, inVain, most)
		}
		came, stored := n.link.got, len(n.chunks)
		n.full = false
		if !w.runUntilTrue(w.now+60_000, w.equal) {
			t.Fatalf("full after %d chunks: the joiner did not get in when there was room", k)
		}
		if left := int64(3*chunks-stored+1) * wire.ChunkSize; n.link.got-came > left {
			t.Errorf("full after %d chunks: %d bytes came when there was room, want %d", k, n.link.got-came, left)
		}
	}
}

// A node that is in the run and wants another snapshot, which nobody gives, goes on
// reconciling rounds with the others.
func TestRepairGoesOnWithoutSources(t *testing.T) {
	w := sources(t, 67, 3, 1, 1000)
	for _, n := range w.nodes {
		n.state = wire.Training
		n.ignores = wire.GetManifest
	}
	n := w.nodes[0]
	n.do(func() { n.core.FetchSnapshot(w.now) })
	w.partition(1)
	w.runUntil(w.now + 2000)
	for range 4 {
		r := w.nodes[1].chain.closed[0] + 1
		w.nodes[1].round(r, 1000)
		w.runUntil(w.now + 1000)
		w.nodes[1].closeAll(r)
		w.nodes[2].closeAll(r)
	}
	if w.merge(); w.equal() {
		t.Fatal("nothing to repair")
	}
	for range 30 { // a fold that fails asks again and again
		n.do(func() { n.core.FetchSnapshot(w.now) })
		w.runUntil(w.now + 2000)
	}
	if !w.equal() {
		t.Error("nothing was repaired while no source gave any snapshot")
	}
}

// Eight joiners at once all get in, about as fast as the sources' links allow and
// about as fast as each other. Meanwhile the payloads of every round go on.
func TestEightJoinersAtOnce(t *testing.T) {
	const rate, period, size = 1000, 1000, 4000
	w := sources(t, 65, 3, 4, rate)
	w.trains(period, size)
	w.runUntil(w.now + period)
	began := w.now
	var joiners []*node
	done := map[*node]Time{}
	for range 8 {
		joiners = append(joiners, w.join(w.nodes[0].id))
	}
	if !w.runUntilTrue(w.now+240_000, func() bool {
		for _, n := range joiners {
			if done[n] == 0 && n.joined() {
				done[n] = w.now - began
			}
		}
		return len(done) == 8
	}) {
		t.Fatalf("only %d of 8 are in", len(done))
	}
	first, last := Time(1<<40), Time(0)
	var came int64
	for _, n := range joiners {
		first, last = min(first, done[n]), max(last, done[n])
		came += n.link.got + n.link.cut
	}
	if most := Time(1.5 * 8 * float64(w.snapshotSize()) / (3 * rate)); last > most {
		t.Errorf("the last is in after %d ms, want %d", last, most)
	}
	if first*2 < last {
		t.Errorf("the first is in after %d ms, the last after %d", first, last)
	}
	if came > 8*w.snapshotSize()*5/4 {
		t.Errorf("%d bytes of chunks for 8 times %d", came, w.snapshotSize())
	}
	if rounds := Time(w.nodes[0].chain.closed[0]-6) * period; rounds < (w.now-began)*9/10 {
		t.Errorf("rounds of %d ms closed in %d ms", rounds, w.now-began)
	}
}
