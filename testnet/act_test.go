package testnet

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/testnet/controls"
	"atoll/testnet/fault"
	"atoll/testnet/shaping"
)

// labNode is a socket of controls that notes what it is told.
type labNode struct {
	told []string
	was  controls.Orders
}

// stageWorld is a world of so many nodes that stand behind such sockets, at
// a pace of 10 ms and with a budget of 100 tokens.
func stageWorld(t *testing.T, nodes int) (*world, []*labNode) {
	t.Helper()
	w := &world{
		cfg: Config{Nodes: nodes}, link: "atoll:", began: time.Now(), rng: rand.New(rand.NewPCG(1, 0)),
		calibration: Calibration{PaceMs: 10}, screen: newScreen(&bytes.Buffer{}, nil),
	}
	w.genesis.Outer.Budget = 100
	labs := make([]*labNode, nodes)
	for i := range nodes {
		labs[i] = &labNode{}
		w.members = append(w.members, w.stand(t, i, labs[i]))
	}
	return w, labs
}

// stand is a member with a process that is only such a socket.
func (w *world) stand(t *testing.T, index int, n *labNode) *member {
	t.Helper()
	m := &member{index: index, dir: filepath.Join(t.TempDir()), divisor: 1, slow: 1}
	s, err := controls.Serve(m.dir, func(o controls.Orders) error {
		ids := []string{}
		for _, id := range o.Block {
			ids = append(ids, fmt.Sprint("id", id[0]))
		}
		n.told = append(n.told, fmt.Sprint("pace ", o.Pace), fmt.Sprint("block ", ids))
		if o.Link != n.was.Link {
			n.told = append(n.told, "link "+o.Link.String())
		}
		if o.InvertedGradient != n.was.InvertedGradient {
			n.told = append(n.told, fmt.Sprint("inverted ", o.InvertedGradient))
		}
		n.was = o
		return nil
	}, func(f controls.BitFlip) error {
		n.told = append(n.told, fmt.Sprint("corrupt ", f.Fragment))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	l := &life{seen: true, last: status.Snapshot{Identity: status.Identity{Self: hex.EncodeToString(append([]byte{byte(index)}, make([]byte, 31)...))}, Fragments: []status.Fragment{{Params: 5}}}}
	l.told.Pace = w.paceOf(m)
	m.lives = []*life{l}
	return m
}

func (n *labNode) expect(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(n.told, want) {
		t.Errorf("told %q, want %q", n.told, want)
	}
	n.told = nil
}

func (w *world) mustInstruct(t *testing.T) {
	t.Helper()
	if err := w.instruct(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNodesAreToldOnceWhomToDrop(t *testing.T) {
	w, labs := stageWorld(t, 3)
	parted := &scheduled{Event: fault.Event{Verb: fault.Partition, Groups: [][]int{{0}, {1, 2}}}}
	w.chaos = []*scheduled{parted}
	w.mustInstruct(t)
	for _, l := range labs {
		l.expect(t)
	}
	w.part(parted, w.began)
	w.mustInstruct(t)
	w.mustInstruct(t)
	labs[0].expect(t, "pace 10ms", "block [id1 id2]")
	labs[1].expect(t, "pace 10ms", "block [id0]")
	labs[2].expect(t, "pace 10ms", "block [id0]")
	w.merge(parted, w.began)
	w.members[2].slow = 4
	w.mustInstruct(t)
	labs[0].expect(t, "pace 10ms", "block []")
	labs[2].expect(t, "pace 40ms", "block []")
}

// A node is told of its link when that changes, and of the one before when that ends.
func TestNodesAreToldOfTheirLinks(t *testing.T) {
	w, labs := stageWorld(t, 2)
	var err error
	if w.links, err = parseLinks([]string{"rate=100mbit,delay=40ms"}); err != nil {
		t.Fatal(err)
	}
	for _, m := range w.members {
		m.link = w.links.Of(m.index)
		m.current().told.Link, labs[m.index].was.Link = m.link, m.link
	}
	do := func(text string) {
		t.Helper()
		e, err := parseChaos(text)
		if err == nil {
			err = w.do(t.Context(), &scheduled{Event: e[0]}, w.began)
		}
		if err != nil {
			t.Fatal(err)
		}
		w.mustInstruct(t)
	}
	do("link 0 rate=5mbit,loss=1% @1s")
	labs[0].expect(t, "pace 10ms", "block []", "link rate=5mbit,delay=40ms,loss=1%")
	labs[1].expect(t)
	do("slow 0 x2 @1s") // of its link it knows
	labs[0].expect(t, "pace 20ms", "block []")
	_, end := fault.Event{Verb: fault.Link, Nodes: []int{fault.Any}, For: time.Second}.Undone()
	if err := w.do(t.Context(), &scheduled{Event: *end}, w.began); err != nil {
		t.Fatal(err)
	}
	w.mustInstruct(t)
	labs[0].expect(t, "pace 20ms", "block []", "link rate=100mbit,delay=40ms")
	labs[1].expect(t)
}

// Losses and links add up, whichever comes first. A link that names losses has those from then on.
func TestLossesAndLinksAddUp(t *testing.T) {
	w, _ := stageWorld(t, 2)
	var err error
	if w.links, err = parseLinks([]string{"rate=100mbit,delay=40ms"}); err != nil {
		t.Fatal(err)
	}
	m := w.members[1]
	_, end := fault.Event{Verb: fault.Link, Nodes: []int{1}, For: time.Second}.Undone()
	for _, c := range []struct{ text, want string }{ // without a text: the link ends
		{"link 1 rate=5mbit @1s", "rate=5mbit,delay=40ms"},
		{"loss 1 1% @2s", "rate=5mbit,delay=40ms,loss=1%"},
		{"link 1 delay=80ms @3s", "rate=100mbit,delay=80ms,loss=1%"},
		{"loss 1 2% @4s", "rate=100mbit,delay=80ms,loss=2%"},
		{"", "rate=100mbit,delay=40ms,loss=2%"},
		{"link 1 rate=5mbit,loss=0.5% @6s", "rate=5mbit,delay=40ms,loss=0.5%"},
		{"loss 1 3% @7s", "rate=5mbit,delay=40ms,loss=3%"},
		{"loss 1 0% @8s", "rate=5mbit,delay=40ms"},
		{"", "rate=100mbit,delay=40ms"},
	} {
		s := &scheduled{Event: *end}
		if c.text != "" {
			s = spoken(t, c.text)[0]
		}
		if err := w.do(t.Context(), s, w.began); err != nil || m.link.String() != c.want {
			t.Errorf("after %q: link %s, %v; want %s", c.text, m.link, err, c.want)
		}
	}
	if other := w.members[0].link; other != (shaping.Link{}) {
		t.Errorf("the other node's: %s", other)
	}
}

// One that is paused, or whose new process does not answer yet, is told later.
func TestNodesAreToldWhenTheyAnswer(t *testing.T) {
	w, labs := stageWorld(t, 2)
	w.members[0].slow, w.members[1].slow = 2, 3
	w.members[0].current().paused, w.members[1].current().seen = true, false
	w.mustInstruct(t)
	labs[0].expect(t)
	labs[1].expect(t)
	w.members[0].current().paused, w.members[1].current().seen = false, true
	w.mustInstruct(t)
	labs[0].expect(t, "pace 20ms", "block []")
	labs[1].expect(t, "pace 30ms", "block []")
}

func TestRowSaysWhatChaosDoes(t *testing.T) {
	w, _ := stageWorld(t, 1)
	m := w.members[0]
	m.current().last.State = "training"
	state := func() string { return m.row(nil, w.began).state }
	if m.slow = 2.5; state() != "training, 2.5x slower" {
		t.Errorf("%q", state())
	}
	if m.current().paused = true; state() != "paused" {
		t.Errorf("%q", state())
	}
	if m.slow, m.current().paused = 1, false; state() != "training" {
		t.Errorf("%q", state())
	}
}

func TestPartitionSides(t *testing.T) {
	groups := [][]int{{0, 1}, {2}, {3}}
	for _, c := range []struct {
		a, b  int
		apart bool
	}{{0, 1, false}, {0, 2, true}, {2, 3, true}, {0, 4, false}, {4, 2, false}} {
		if separates(groups, c.a, c.b) != c.apart {
			t.Errorf("%d and %d: want apart %v", c.a, c.b, c.apart)
		}
	}
}

// spoken is what a text plans.
func spoken(t *testing.T, text string) (plan []*scheduled) {
	t.Helper()
	s, err := fault.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s {
		plan = append(plan, &scheduled{Event: e})
	}
	return plan
}

func TestSlowAndCorrupt(t *testing.T) {
	w, labs := stageWorld(t, 2)
	w.chaos = spoken(t, "slow 1 x4 @1s, corrupt 0 @1s, slow 0 x2 @1h")
	if err := w.doChaos(t.Context(), w.began.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	w.mustInstruct(t)
	labs[0].expect(t, "corrupt 0")
	labs[1].expect(t, "pace 40ms", "block []")
	if len(w.corrupted) != 1 || !w.chaos[1].done || w.chaos[2].done {
		t.Errorf("%d corrupted; %+v", len(w.corrupted), w.chaos)
	}
}

// A liar is told so, and again when it comes back from a kill. Losses are of its link.
func TestLiarsAndLosses(t *testing.T) {
	w, labs := stageWorld(t, 2)
	w.chaos = spoken(t, "attack inverted-gradient 1 @1s, loss 0 1% @1s")
	if err := w.doChaos(t.Context(), w.began.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	w.mustInstruct(t)
	labs[0].expect(t, "pace 10ms", "block []", "link loss=1%")
	labs[1].expect(t, "pace 10ms", "block []", "inverted true")
	if w.counts.liars != 1 || w.counts.links != 1 {
		t.Errorf("%+v", w.counts)
	}
	w.members[1].current().told, labs[1].was = controls.Orders{}, controls.Orders{} // as of a process that has just started
	w.mustInstruct(t)
	labs[1].expect(t, "pace 10ms", "block []", "inverted true")
}

// What mends waits for what it mends.
func TestMendingWaits(t *testing.T) {
	w, _ := stageWorld(t, 1)
	w.chaos = spoken(t, "slow 0 x1 @0s, slow 0 x4 @1h")
	w.chaos[0].drawn, w.chaos[1].drawn, w.chaos[0].mends = true, true, w.chaos[1]
	if err := w.doChaos(t.Context(), w.began.Add(time.Second)); err != nil || w.chaos[0].done {
		t.Errorf("%v, mended before it was broken: %v", err, w.chaos[0].done)
	}
}

func TestChanceEndsBeforeTheRun(t *testing.T) {
	w, _ := stageWorld(t, 2)
	w.chaos = spoken(t, "slow 0 x3 @1h, slow 0 x4 @0s, slow 0 x1 @1h, slow 0 x5 @1h, slow 0 x1 @1h, partition 0|1 @0s..1h")
	said, broken, mend, idle, idleMend, parted := w.chaos[0], w.chaos[1], w.chaos[2], w.chaos[3], w.chaos[4], w.chaos[5]
	for _, s := range w.chaos[1:] {
		s.drawn = true
	}
	broken.done, mend.mends, idleMend.mends, parted.begun = true, broken, idle, true
	do := func(folded uint64) {
		t.Helper()
		w.members[0].current().last.TokensFolded = folded
		if err := w.doChaos(t.Context(), w.began.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	do(mendAt - 1)
	if mend.done || idle.done || !parted.begun {
		t.Error("chance ended early")
	}
	do(mendAt)
	if !mend.done || mend.left || !idle.left || !idleMend.left || parted.begun || said.done {
		t.Errorf("mend %+v, idle %+v, partition %+v, said %+v", mend, idle, parted, said)
	}
	if c := w.checkChaos(); c.Passed || !strings.Contains(c.Detail, said.String()) || strings.Contains(c.Detail, idle.String()) {
		t.Errorf("%+v", c)
	}
}

func TestWorldWaitsForStarts(t *testing.T) {
	start := spoken(t, "start 0 @1s")[0]
	for name, c := range map[string]struct {
		chaos []*scheduled
		want  bool
	}{
		"due":              {[]*scheduled{start}, true},
		"none":             {nil, false},
		"done":             {[]*scheduled{{Event: start.Event, done: true}}, false},
		"by share":         {spoken(t, "start 0 @50%"), false},
		"of nobody killed": {[]*scheduled{{Event: start.Event, mends: &scheduled{}}}, false},
	} {
		if w := (&world{chaos: c.chaos}); w.startDue() != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
	if w := (&world{chaos: []*scheduled{start}, ending: ErrStopped}); w.startDue() {
		t.Error("a world that ends waits for a start")
	}
}

// chained is a status of one fragment with the digests of its last rounds.
func chained(first uint32, digests ...string) []status.Fragment {
	var f status.Fragment
	for i, d := range digests {
		f.Chains = append(f.Chains, status.ChainAt{Round: first + uint32(i), Digest: d})
		f.Closed = first + uint32(i)
	}
	return []status.Fragment{f}
}

func TestMerged(t *testing.T) {
	w, _ := stageWorld(t, 2)
	ended := w.began.Add(time.Second)
	r := &recovery{kind: merges, at: ended, closed: []uint32{7}}
	w.recoveries = []*recovery{r}
	see := func(i int, at time.Time, f []status.Fragment) {
		w.members[i].current().last.At, w.members[i].current().last.Fragments = at, f
	}
	after := ended.Add(time.Second)
	for name, c := range map[string]struct {
		at   time.Time
		a, b []status.Fragment
		want bool
	}{
		"equal":                   {after, chained(6, "f", "g", "h"), chained(5, "e", "f", "g"), true},
		"other newest":            {after, chained(6, "f", "g", "h"), chained(6, "f", "G"), false},
		"equal before, not since": {after, chained(6, "f", "g", "h"), chained(6, "f"), false},
		"too far apart":           {after, chained(8, "h", "i"), chained(5, "e", "f", "g"), false},
		"news of before":          {ended, chained(6, "f", "g"), chained(6, "f", "g"), false},
	} {
		see(0, after, c.a)
		see(1, c.at, c.b)
		if w.recovered(r) != c.want {
			t.Errorf("%s: want %v", name, c.want)
		}
	}
	see(0, after, chained(6, "f", "g"))
	see(1, after, chained(6, "f", "g"))
	w.observe(ended.Add(3 * time.Second))
	if r.took != 3*time.Second {
		t.Errorf("took %v", r.took)
	}
}

func TestAwake(t *testing.T) {
	w, _ := stageWorld(t, 1)
	l := w.members[0].current()
	r := &recovery{kind: wakes, member: w.members[0], at: w.began, folded: 5}
	l.last.At, l.last.Account.OwnFolded = w.began.Add(time.Second), []uint64{2, 3}
	if w.recovered(r) {
		t.Error("nothing was folded since")
	}
	l.last.Account.OwnFolded[1]++
	if !w.recovered(r) {
		t.Error("a delta was folded since")
	}
}

func TestMostClosed(t *testing.T) {
	w, _ := stageWorld(t, 2)
	for i, m := range w.members {
		m.current().last.Fragments = make([]status.Fragment, 3)
		m.current().last.Fragments[i].Closed = uint32(3 + i)
	}
	if got := w.mostClosed(); !slices.Equal(got, []uint32{3, 4, 0}) {
		t.Errorf("%v", got)
	}
}

func TestWindow(t *testing.T) {
	for window, accept := range map[int]uint32{0: 16, 5: 2, 100: 16} {
		g, err := settings(Config{Model: "tiny", Tokens: 1000, H: 24, Window: window}, genesis.Text{}, time.Now())
		if err != nil || g.OuterParams().WindowAccept != accept || window > 0 && g.Outer.Window != uint32(window) {
			t.Errorf("%d: %v, W_a %d, W_u %d", window, err, g.OuterParams().WindowAccept, g.Outer.Window)
		}
	}
	if err := (Config{Window: outer.MaxWindow + 1}).Validate(); err == nil || !strings.Contains(err.Error(), "--union-window") {
		t.Errorf("error %v", err)
	}
}
