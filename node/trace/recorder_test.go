package trace

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// rig is a Recorder with a clock that tests set.
type rig struct {
	*Recorder
	t   *testing.T
	now int64
	out bytes.Buffer
}

var self = wire.PeerID{1}

func newRig(t *testing.T) *rig {
	g := &rig{t: t, now: 1000}
	g.Recorder = New(Config{Self: self, Window: 4, Now: func() int64 { return g.now }, Out: &g.out})
	return g
}

// header is one of a delta that nobody signed.
func (g *rig) header(author wire.PeerID, round uint32) *wire.SignedHeader {
	return &wire.SignedHeader{Header: wire.Header{Author: author, Round: round, Size: 10, Steps: 3, Tokens: 30}}
}

func (g *rig) id(h *wire.SignedHeader) wire.Digest { return h.Header.ID(wire.RunID{}) }

func (g *rig) sees(at int64, event any) {
	g.now = at
	watcher{nobody{}, g.Recorder}.Saw(event)
}

func (g *rig) closes(at int64, round uint32) {
	g.sees(at, rounds.Closed{Link: outer.Link{Round: round}})
}

// folds has a tip of a round fold deltas.
func (g *rig) folds(at int64, round uint32, ids ...wire.Digest) *outer.Tip {
	tip, link := &outer.Tip{Round: round}, outer.Link{Round: round}
	for _, id := range ids {
		link.Folded = append(link.Folded, outer.ID(id))
	}
	g.sees(at, replica.TipFolded{FoldResult: replica.FoldResult{Tip: tip, Links: []outer.Link{link}}})
	return tip
}

func (g *rig) adopts(at int64, tip *outer.Tip, changes ...outer.Change) {
	g.sees(at, replica.Adopted{Adopt: outer.Adopt{Tip: tip, Changes: changes}})
}

// lines are those of deltas.
func (g *rig) lines() []Line { return g.written().Lines }

// written is all that was written.
func (g *rig) written() (all Trace) {
	g.t.Helper()
	if err := g.Flush(); err != nil {
		g.t.Fatal(err)
	}
	if err := all.Read(bytes.NewReader(g.out.Bytes())); err != nil {
		g.t.Fatal(err)
	}
	return all
}

// wantLast compares the last line that was written.
func (g *rig) wantLast(want Line) {
	g.t.Helper()
	lines := g.lines()
	if len(lines) == 0 {
		g.t.Fatal("nothing is written")
	}
	if got := fmt.Sprintf("%+v", lines[len(lines)-1]); got != fmt.Sprintf("%+v", want) {
		g.t.Errorf("wrote %v,\n want %+v", got, want)
	}
}

// nobody is a port that does nothing.
type nobody struct {
	replica.Net
	replica.Ledger
	replica.Watcher
	replica.Learner
}

func (nobody) Saw(any)                                                {}
func (nobody) Call(gossip.Call)                                       {}
func (nobody) Publish([]byte)                                         {}
func (nobody) PutOwn(core.StoreOwn) error                             { return nil }
func (nobody) PutDelta(wire.Digest, *wire.SignedHeader, []byte) error { return nil }
func (nobody) Draft(int) (outer.Draft, error)                         { return outer.Draft{Seq: 7}, nil }

// asks has a node ask a peer for a payload.
func (g *rig) asks(at int64, call uint64, of wire.PeerID, id wire.Digest) {
	g.now = at
	q := wire.Request{Kind: wire.GetPayload, Digest: id}
	network{nobody{}, g.Recorder}.Call(gossip.Call{ID: call, To: of, Request: q.Encode()})
}

func (g *rig) stores(at int64, id wire.Digest, h *wire.SignedHeader) {
	g.now = at
	if err := (ledger{nobody{}, g.Recorder}).PutDelta(id, h, nil); err != nil {
		g.t.Fatal(err)
	}
	g.sees(at+1, replica.PayloadOnDisk{StoreDelta: core.StoreDelta{ID: id}})
}

func TestLifeOfAnothersDelta(t *testing.T) {
	g := newRig(t)
	author, giver := wire.PeerID{2}, wire.PeerID{3}
	h := g.header(author, 5)
	id := g.id(h)
	g.sees(1010, gossip.Offer{ID: id, Header: h, From: giver})
	g.asks(1020, 1, giver, id)
	g.now = 1030
	g.Answered(1, 0, 0, []byte{byte(wire.Busy)}, nil)
	g.asks(1040, 2, author, id)
	g.now = 1050
	g.Answered(2, 0, 0, nil, errors.New("the peer is gone"))
	g.asks(1060, 3, giver, id)
	g.Answered(3, 1070, 1080, []byte{byte(wire.OK)}, nil)
	g.stores(1090, id, h)
	g.closes(1100, 5)
	g.adopts(1120, g.folds(1110, 5, id))
	g.wantLast(Line{
		Delta: id, Node: self, What: What{Author: author, Round: 5, Size: 10, Steps: 3, Tokens: 30},
		Times: Times{Heard: 1010, Asked: 1020, Requested: 1060, FirstByte: 1070, LastByte: 1080, Verified: 1090, Held: 1091, Closed: 1100, Folded: 1110, Adopted: 1120},
		How: How{Brought: giver, Gave: giver, Requests: 3, Busy: 1, Failed: 1, End: Adopted, Failures: []Failure{
			{Of: giver, Asked: 1020, Ended: 1030, Why: "busy"}, {Of: author, Asked: 1040, Ended: 1050, Why: "the peer is gone"},
		}},
	})
	if len(g.open)+len(g.calls)+len(g.folds2()) != 0 {
		t.Errorf("it is still followed: %v, %v, %v", g.open, g.calls, g.Recorder.folds)
	}
}

func (g *rig) folds2() []fold { return g.Recorder.folds }

func TestLateDelta(t *testing.T) {
	g := newRig(t)
	h := g.header(wire.PeerID{2}, 5)
	id := g.id(h)
	g.closes(1005, 5)
	g.sees(1010, gossip.Offer{ID: id, Header: h})
	g.stores(1020, id, h)
	early := g.folds(1030, 5)
	g.folds(1040, 6, id)
	g.adopts(1050, early)
	if l := g.lines(); len(l) != 0 {
		t.Fatalf("a tip without it was adopted, and %+v is written", l)
	}
	g.adopts(1060, g.folds(1055, 6)) // of a fold after the one that has it
	l := g.lines()
	if len(l) != 1 || !l[0].Late || !l[0].Inline || l[0].Closed != 1005 || l[0].Adopted != 1060 {
		t.Errorf("wrote %+v", l)
	}
}

// What closed in an earlier process was late in this one, and a round that closes once more
// had closed.
func TestCloseThatIsNotSeenOrSeenTwice(t *testing.T) {
	g := newRig(t)
	h, again := g.header(wire.PeerID{2}, 5), g.header(wire.PeerID{2}, 6)
	for _, h := range []*wire.SignedHeader{h, again} {
		g.sees(1010, gossip.Offer{ID: g.id(h), Header: h})
		g.stores(1020, g.id(h), h)
	}
	g.closes(1030, 6)
	g.closes(1040, 6)
	g.adopts(1060, g.folds(1050, 6, g.id(h), g.id(again)))
	l := g.lines()
	if len(l) != 2 || !l[0].Late || l[0].Closed != 0 || l[1].Late || l[1].Closed != 1030 {
		t.Errorf("wrote %+v", l)
	}
}

// publishes has the node make a delta of its own.
func (g *rig) publishes(round uint32) (wire.Digest, *wire.SignedHeader) {
	h := g.header(self, round)
	id := g.id(h)
	g.now = 1010
	d, err := learner{nobody{}, g.Recorder}.Draft(0)
	if err != nil {
		g.t.Fatal(err)
	}
	g.now = 1020
	if err := (ledger{nobody{}, g.Recorder}).PutOwn(core.StoreOwn{ID: id, Header: *h, Seq: d.Seq}); err != nil {
		g.t.Fatal(err)
	}
	g.now = 1030
	network{nobody{}, g.Recorder}.Publish(wire.EncodeHeader(*h, nil))
	return id, h
}

func own(fate outer.Fate) outer.Change { return outer.Change{Own: outer.Own{Seq: 7}, Fate: fate} }

func TestOwnDeltas(t *testing.T) {
	for _, c := range []struct {
		fates   []outer.Fate
		ends    []End
		follows bool
	}{
		{[]outer.Fate{outer.Folded}, []End{Adopted}, true},
		{[]outer.Fate{outer.Folded, outer.Forgotten}, []End{Adopted}, false},
		{[]outer.Fate{outer.Returned}, []End{Returned}, false},
		{[]outer.Fate{outer.Folded, outer.Unfolded, outer.Folded}, []End{Adopted, Adopted}, true},
		{[]outer.Fate{outer.Folded, outer.Unfolded, outer.Returned}, []End{Adopted, Returned}, false},
		{[]outer.Fate{outer.Folded, outer.Discarded, outer.Forgotten}, []End{Adopted, Discarded}, false},
		{[]outer.Fate{outer.Dropped, outer.Regained}, []End{Discarded, Adopted}, true},
	} {
		g := newRig(t)
		g.publishes(5)
		for _, fate := range c.fates {
			g.adopts(1100, &outer.Tip{}, own(fate))
		}
		var ends []End
		lines := g.lines()
		if lines[0].End != Open || lines[0].Announced != 1030 {
			t.Errorf("%v: announced as %+v", c.fates, lines[0])
		}
		for _, l := range lines[1:] {
			ends = append(ends, l.End)
			if l.Drafted != 1010 || l.Verified != 1020 || l.Announced != 1030 || l.Held != 1030 {
				t.Errorf("%v: %+v", c.fates, l.Times)
			}
		}
		if fmt.Sprint(ends) != fmt.Sprint(c.ends) || (len(g.own) > 0) != c.follows {
			t.Errorf("%v: ends %v, want %v; followed: %v", c.fates, ends, c.ends, g.own)
		}
	}
}

func TestDeltasThatAreNotFolded(t *testing.T) {
	for how, happens := range map[End]func(g *rig, id wire.Digest){
		Missed:    func(g *rig, _ wire.Digest) { g.closes(1100, sweepEvery) },
		Installed: func(g *rig, _ wire.Digest) { g.sees(1100, replica.Installed{Tips: []*outer.Tip{{Round: 12}}}) },
		Refused:   func(g *rig, id wire.Digest) { g.sees(1100, core.Refused{ID: id}) },
		Open: func(g *rig, _ wire.Digest) {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		g := newRig(t)
		h := g.header(wire.PeerID{2}, sweepEvery-4)
		g.sees(1010, gossip.Offer{ID: g.id(h), Header: h})
		happens(g, g.id(h))
		if l := g.lines(); len(l) != 1 || l[0].End != how || len(g.open) != 0 {
			t.Errorf("%s: wrote %+v", how, l)
		}
	}
}

// Headers that nobody folds do not fill the memory, and nothing is lost of the newest.
func TestRecorderIsBounded(t *testing.T) {
	g := newRig(t)
	for i := range uint32(3 * maxOpen) {
		h := g.header(wire.PeerID{2}, i+1)
		g.sees(1010, gossip.Offer{ID: g.id(h), Header: h})
		if len(g.open) > maxOpen || len(g.order) > 2*maxOpen || g.Recorder.out.Len() > writeAt+maxLine {
			t.Fatalf("follows %d deltas, %d in order, %d bytes wait", len(g.open), len(g.order), g.Recorder.out.Len())
		}
	}
	h := g.header(wire.PeerID{2}, 3*maxOpen)
	g.adopts(1020, g.folds(1020, 3*maxOpen, g.id(h)))
	g.wantLast(Line{Delta: g.id(h), Node: self, What: What{Author: wire.PeerID{2}, Round: 3 * maxOpen, Size: 10, Steps: 3, Tokens: 30},
		Times: Times{Heard: 1010, Folded: 1020, Adopted: 1020}, How: How{Late: true, End: Adopted}})
}

func TestClosesAreBounded(t *testing.T) {
	g := newRig(t)
	for round := range uint32(100) {
		g.closes(1030, round)
	}
	if n := len(g.Recorder.closes[0]); n > int(g.cfg.Window)+1 {
		t.Errorf("remembers %d rounds", n)
	}
}

// A disk that takes nothing costs lines, no memory, and is told of once.
func TestRecorderOnAFullDisk(t *testing.T) {
	full := errors.New("the disk is full")
	r := New(Config{Self: self, Now: func() int64 { return 1 }, Out: refusing{full}})
	r.Served(wire.Digest{1}, wire.PeerID{2}, 1)
	if err := r.Flush(); !errors.Is(err, full) || r.out.Len() != 0 {
		t.Errorf("%v, and %d bytes wait", err, r.out.Len())
	}
	if err := r.Flush(); err != nil {
		t.Errorf("told again: %v", err)
	}
}

type refusing struct{ err error }

func (r refusing) Write([]byte) (int, error) { return 0, r.err }

// Where nobody traces, ports are as they were.
func TestNoRecorder(t *testing.T) {
	var none *Recorder
	cfg := replica.Config{Net: nobody{}, Ledger: nobody{}, Watcher: nobody{}}
	if got := none.Wrap(cfg); got.Net != cfg.Net || got.Ledger != cfg.Ledger || got.Watcher != cfg.Watcher {
		t.Errorf("ports are wrapped: %+v", got)
	}
	if none.Learner(nil) != nil || none.Learner(nobody{}) != (nobody{}) {
		t.Error("the learner is wrapped")
	}
	none.Answered(1, 0, 0, nil, nil)
	none.Served(wire.Digest{1}, self, 1)
	if err := errors.Join(none.Flush(), none.Close()); err != nil {
		t.Error(err)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		response []byte
		err      error
		want     string
	}{
		{[]byte{byte(wire.OK), 1}, nil, ""},
		{[]byte{byte(wire.NotFound)}, nil, wire.NotFound.String()},
		{nil, nil, "nothing"},
		{nil, errors.New(strings.Repeat("x", 1000)), strings.Repeat("x", maxWhy)},
	} {
		if got := failure(c.response, c.err); got != c.want {
			t.Errorf("%v, %v: %q, want %q", c.response, c.err, got, c.want)
		}
	}
}

// A round that closes is written down with the reason, once for each time that it closes.
func TestRoundsHaveReasons(t *testing.T) {
	g := newRig(t)
	g.sees(1500, rounds.Closed{Fragment: 1, Link: outer.Link{Round: 3}, Why: rounds.Why{Reason: rounds.GraceOver, For: outer.Author{7}, Waited: 400}})
	g.sees(1600, rounds.Closed{Link: outer.Link{Round: 4}, Why: rounds.Why{Reason: rounds.NextHeld}})
	want := []Close{
		{Node: self, Fragment: 1, Round: 3, At: 1500, Why: "grace over", For: wire.PeerID{7}, WaitedMs: 400},
		{Node: self, Round: 4, At: 1600, Why: "next"},
	}
	if got := g.written().Closes; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
