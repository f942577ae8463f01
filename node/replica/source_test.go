package replica_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// ask asks for a snapshot; nil where there is nothing to give.
func (g *rig) ask(at ...uint32) []byte { return g.do(gossip.ReplyManifest{Handle: 1, At: at}).answer() }

// answer is the body of the last response to handle 1, nil for NotFound.
func (g *rig) answer() []byte {
	g.t.Helper()
	r, answered := g.replies[1]
	if delete(g.replies, 1); !answered {
		g.t.Fatal("no answer")
	}
	response, err := wire.DecodeResponse(r.Response, 1<<20)
	g.check(err)
	if response.Status != wire.OK {
		return nil
	}
	return response.Body
}

// offer is a manifest, of which there must be one.
func (g *rig) offer(at ...uint32) wire.Manifest {
	g.t.Helper()
	m, err := wire.OpenManifest(run, g.ask(at...))
	g.check(err)
	return m
}

// chunk asks for a chunk, which comes packed.
func (g *rig) chunk(id wire.Digest) []byte {
	return g.do(gossip.ReplyChunk{Handle: 1, Digest: id}).answer()
}

// refuses fails where a snapshot is given.
func (g *rig) refuses(why string, at ...uint32) {
	g.t.Helper()
	if g.ask(at...) != nil {
		g.t.Errorf("%s, and it gives a snapshot of rounds %v", why, at)
	}
}

func TestSourceOfGenesis(t *testing.T) {
	g := newRig(t).start()
	for _, f := range g.offer().Fragments {
		if f.Round != 0 || len(f.Chunks) != 0 {
			t.Errorf("a run that has not begun: %+v", f)
		}
	}
}

func TestSourceGivesWhatJoinersCanRead(t *testing.T) {
	g := newRig(t).write(4, true).write(2, false).start()
	m, sizes := g.offer(), map[wire.Digest]int{}
	for _, f := range m.Fragments {
		for i, id := range f.Chunks {
			sizes[id] = f.ChunkLen(i)
		}
	}
	tips, links, err := core.Assemble(m, g.plan, g.params, func(id wire.Digest) ([]byte, error) { return codec.Unpack(g.chunk(id), sizes[id]) })
	g.check(err)
	for p, tip := range tips {
		if kept, _ := g.disk.Base(p, 4); tip.State != kept.State || len(links[p]) != 5 {
			t.Errorf("fragment %d: round %d, %d links", p, tip.Round, len(links[p]))
		}
	}
	if g.chunk(wire.Digest{}) != nil {
		t.Error("it has a chunk that nobody made")
	}
}

// A manifest serves joiners that come at once. It is made anew when it is old, when many
// rounds have closed, and when a late delta changed the chain that leads to it.
func TestSourceSharesAndRenewsManifests(t *testing.T) {
	for _, c := range []struct {
		what string
		do   func(g *rig)
		same bool
	}{
		{"after a while", func(g *rig) { g.tick(14_999) }, true},
		{"after too long", func(g *rig) { g.tick(15_000) }, false},
		{"after few rounds", func(g *rig) { g.closes(0, 3) }, true},
		{"after many rounds", func(g *rig) { g.closes(0, 4) }, false},
		{"after a late delta", func(g *rig) { g.late(0, 2).closes(0, 1) }, false},
	} {
		g := newRig(t).start().closes(0, 8).closes(1, 8)
		first := g.ask()
		c.do(g.closes(0, 1))
		want(t, c.what, bytes.Equal(first, g.ask()), c.same)
	}
	g := newRig(t).write(4, true)
	g.policy.Source.FreshMs = 0
	first := g.start().ask()
	g.closes(0, 8)
	want(t, "never fresh", bytes.Equal(first, g.ask()), false)
}

// A base that is dropped between the choice and the reading of it is no reason to send
// a joiner away: the snapshot source chooses again, so many times.
func TestSourceChoosesAgain(t *testing.T) {
	for _, back := range []bool{true, false} {
		g := newRig(t)
		g.start().closes(0, 8).closes(1, 8)
		for _, round := range g.Machine().Rounds().Fragment(0).Bases() {
			g.do(rounds.DropBase{Round: round})
		}
		g.check(g.disk.DropBase(0, 8)) // the last one, which outlives its use
		tries := 0
		for g.Do(gossip.ReplyManifest{Handle: 1}); len(g.work["serve"]) > 0; g.run("loop") {
			if tries++; tries == 2 && back {
				g.Do(rounds.WantFold{Job: job, Keep: []uint32{4, 6}, Sets: make([][]outer.Delta, 8)})
				g.run("fold")
			}
			g.run("serve")
		}
		want(t, "given", g.answer() != nil, back)
		want(t, "tries", tries, map[bool]int{true: 2, false: 4}[back])
	}
}

// Chunks of two manifests are held. Those not asked for lately go first, so that a slow
// joiner can finish.
func TestSourceForgetsWhatNobodyTakes(t *testing.T) {
	g := newRig(t)
	g.policy.Source.FreshMs = 0
	g.start().closes(0, 4).closes(1, 4)
	first := g.offer()
	second := g.closes(0, 8).closes(1, 8).offer()
	taken, left := first.Fragments[0].Chunks[0], first.Fragments[1].Chunks[0]
	want(t, "a slow joiner can finish", g.chunk(taken) != nil, true)
	g.closes(0, 4).closes(1, 4).offer()
	want(t, "chunks of two manifests ago that nobody took", g.chunk(left) != nil, false)
	want(t, "chunks that somebody takes", g.chunk(taken) != nil, true)
	want(t, "chunks of the last manifest", g.chunk(second.Fragments[1].Chunks[0]) != nil, true)
}

// Two snapshot sources, one of them some rounds further, cut the same chunks of a round; one that
// does not hold it says so, and gives what it has.
func TestSourcesOfOneRoundAgree(t *testing.T) {
	first := newRig(t).write(4, true).start().offer(4, 4)
	g := newRig(t).write(4, true).write(2, true).start()
	for p, f := range g.offer(4, 4).Fragments {
		if f.Round != 4 || f.Closed != 6 || !slices.Equal(f.Chunks, first.Fragments[p].Chunks) {
			t.Errorf("fragment %d: round %d closed %d, chunks equal %v", p, f.Round, f.Closed, slices.Equal(f.Chunks, first.Fragments[p].Chunks))
		}
	}
	if part := g.offer(4, 7).Fragments; part[0].Round != 4 || len(part[1].Chunks) != 0 {
		t.Errorf("one of two: %+v", part)
	}
	for _, round := range []uint32{7, 60} {
		g.refuses("it does not hold them", round, round)
	}
}

// A joiner that has a part of a snapshot asks for the newest tips of the other fragments, and gets what it would have
// got of them in the first place.
func TestSourceGivesTheNewestOfSome(t *testing.T) {
	g := newRig(t).start().closes(0, 8).closes(1, 8)
	newest := g.offer().Fragments[1]
	some := g.offer(wire.NoTip, wire.NewestTip).Fragments
	if len(some[0].Chunks) != 0 || some[1].Round != newest.Round || !slices.Equal(some[1].Chunks, newest.Chunks) {
		t.Errorf("gives %+v, the newest is %+v", some, newest)
	}
	g.refuses("nothing was asked for", wire.NoTip, wire.NoTip)
}

// The tip of a round whose base is gone is folded again from the one below it. Between
// two such folds a snapshot source rests, and gives only what it has: anybody may ask.
func TestSourceFoldsAgainAndRests(t *testing.T) {
	first := newRig(t).write(4, true).write(1, true).start().offer(5, 5)
	g := newRig(t).write(4, true).write(4, true)
	folds := 0
	g.beforeFold = func() { folds, g.ms = folds+1, g.ms+10 }
	g.start()
	for p, f := range g.offer(5, 5).Fragments {
		if !slices.Equal(f.Chunks, first.Fragments[p].Chunks) {
			t.Errorf("fragment %d: other chunks than the snapshot source that has the base", p)
		}
	}
	folded := folds
	want(t, "what was folded for another", g.offer(5, 5).Fragments[0].Round, 5)
	g.refuses("it rests", 6, 6)
	if m := g.offer(8, 6); m.Fragments[0].Round != 8 || len(m.Fragments[1].Chunks) != 0 {
		t.Errorf("what it has, while it rests: %+v", m)
	}
	want(t, "folds while it rests", folds, folded)
	g.tick(4 * 10 * int64(folded))
	want(t, "rested", g.offer(6, 6).Fragments[1].Round, 6)
}

// Nothing is made for a stream that is gone, and nothing twice for askers that waited
// for each other.
func TestSourceMakesNothingInVain(t *testing.T) {
	g := newRig(t).write(4, true).write(2, false).start()
	chunks := g.offer().Fragments[0].Chunks
	g = newRig(t).write(4, true).write(2, false).start()
	g.gone = true
	g.refuses("the asker is gone")
	g.refuses("the asker is gone", 4, 4)
	g.gone = false
	want(t, "made in vain", g.chunk(chunks[0]) != nil, false)

	g.Do(gossip.ReplyManifest{Handle: 1})
	waits := g.work["serve"]
	g.work["serve"] = nil
	g.closes(0, 1).Do(gossip.ReplyManifest{Handle: 2})
	meanwhile := g.work["serve"]
	g.work["serve"] = waits
	g.elapsed = func() {
		g.ms++
		meanwhile[0]()
	}
	g.finish()
	want(t, "made once", bytes.Equal(g.replies[1].Response, g.replies[2].Response), true)
}

// In the smallest union window there is always something to give.
func TestSourceInASmallWindow(t *testing.T) {
	g := newRig(t)
	g.params.WindowAccept, g.params.WindowUnion = 1, 1
	g.policy.Source.FreshMs = 0
	for g.start(); g.Machine().Rounds().Fragment(0).Closed() < 7; {
		g.closes(0, 1).closes(1, 1).offer()
	}
}

// A payload goes out with the name of its delta; one that the disk has lost is told of.
func TestSourceOfPayloads(t *testing.T) {
	g := newRig(t).write(1, true).start()
	id, _, payload := g.signed(0, 1, g.keys[1])
	g.do(gossip.ReplyPayload{Handle: 1, ID: id})
	if r := g.replies[1]; r.Payload != id || !r.Bulk || !bytes.Equal(g.answer(), payload) {
		t.Errorf("answered %+v", r)
	}
	g.errs["Payload "+id.String()] = replica.ErrGone
	g.do(gossip.ReplyPayload{Handle: 1, ID: id})
	if r := g.replies[1]; r.Payload != (wire.Digest{}) || g.answer() != nil || g.disk.Holds(id) || len(saw[replica.Damaged](g)) != 1 {
		t.Errorf("answered %+v of a payload that is gone; still held: %v", r, g.disk.Holds(id))
	}
}

// What has no work in it goes to the network at once.
func TestEffectsForTheNetwork(t *testing.T) {
	g := newRig(t).start()
	g.sent = nil
	peer := wire.PeerIDOf(ed25519.PrivateKey(g.keys[1]))
	g.do(gossip.Publish{Bytes: []byte("heartbeat")}, gossip.Call{ID: 7}, gossip.Dial{Peer: peer, Addrs: []string{"there"}}, gossip.Discover{}, gossip.Reserve{Peer: peer}, gossip.Release{Peer: peer}, gossip.Keep{Peer: peer}, gossip.Drop{Peer: peer, Reason: "it lies"}, gossip.Reconnect{Peer: peer})
	rest := []any{gossip.Dial{Peer: peer, Addrs: []string{"there"}}, gossip.Discover{}, gossip.Reserve{Peer: peer}, gossip.Release{Peer: peer}, gossip.Keep{Peer: peer}, gossip.Drop{Peer: peer, Reason: "it lies"}, gossip.Reconnect{Peer: peer}}
	if len(g.sent) != 9 || !reflect.DeepEqual(g.sent[2:], rest) {
		t.Errorf("sent %+v", g.sent)
	}
	g.do(gossip.Reply{Handle: 3, Response: []byte("yes")}, gossip.ReplyGenesis{Handle: 1})
	want(t, "a reply", string(g.replies[3].Response), "yes")
	want(t, "genesis", string(g.answer()), "genesis")
}

// scraps are a replica.Scratch that counts what is open, and may fail or damage what it kept.
type scraps struct {
	open int
	err  error
	last []byte
}

func (s *scraps) Keep(fill func(w io.Writer) error) (replica.Scrap, error) {
	var b bytes.Buffer
	if err := errors.Join(s.err, fill(&b)); err != nil {
		return nil, err
	}
	s.open++
	s.last = b.Bytes()
	return &scrap{bytes.NewReader(s.last), s}, nil
}

type scrap struct {
	*bytes.Reader
	of *scraps
}

func (s *scrap) ReadAt(b []byte, at int64) (int, error) {
	if s.Reader == nil {
		return 0, fs.ErrClosed
	}
	return s.Reader.ReadAt(b, at)
}

func (s *scrap) Close() error {
	s.of.open--
	s.Reader = nil
	return nil
}

// givesFrom is what a source of eight rounds gives, with tips in scratch.
func givesFrom(t *testing.T, s *scraps) (*rig, wire.Manifest) {
	t.Helper()
	g := newRig(t)
	g.scratch, g.policy.Source.InMemory, g.policy.Source.FreshMs = s, 0, 0
	g.start().closes(0, 8).closes(1, 8)
	return g, g.offer()
}

// A joiner gets the same from memory and from scratch, also where that has no room.
func TestSourceGivesFromScratch(t *testing.T) {
	plain := newRig(t).start().closes(0, 8).closes(1, 8)
	fromMemory := plain.offer()
	for _, s := range []*scraps{{}, {err: errors.New("full")}} {
		g, m := givesFrom(t, s)
		for p, f := range m.Fragments {
			if !reflect.DeepEqual(f, fromMemory.Fragments[p]) {
				t.Errorf("fragment %d: %+v, from memory %+v", p, f, fromMemory.Fragments[p])
			}
			for _, id := range f.Chunks {
				if chunk := g.chunk(id); chunk == nil || !bytes.Equal(chunk, plain.chunk(id)) {
					t.Errorf("chunk %v of fragment %d differs, scratch %v", id, p, s.err)
				}
			}
		}
		if kept := len(m.Fragments); s.err == nil && s.open != kept || s.err != nil && (s.open != 0 || len(g.checked) != kept) {
			t.Errorf("%d are in scratch (%v), told %v", s.open, s.err, g.checked)
		}
	}
}

// What the disk has damaged is given to nobody, and made anew.
func TestSourceOfDamagedScratch(t *testing.T) {
	s := &scraps{}
	g, m := givesFrom(t, s)
	id := m.Fragments[1].Chunks[0]
	s.last[20] ^= 1
	want(t, "a damaged chunk is given", g.chunk(id) != nil, false)
	want(t, "told", len(g.checked), 1)
	want(t, "open", s.open, 1)
	g.offer()
	want(t, "one made anew is given", g.chunk(id) != nil, true)
	want(t, "open", s.open, 2)
}

// Tips that nobody takes leave scratch as well.
func TestSourceForgetsScratch(t *testing.T) {
	s := &scraps{}
	g, _ := givesFrom(t, s)
	for range 5 {
		g.closes(0, 4).closes(1, 4).offer()
		if most := g.policy.Source.Sets * len(g.plan); s.open > most {
			t.Fatalf("%d are open, of %d at most", s.open, most)
		}
	}
}
