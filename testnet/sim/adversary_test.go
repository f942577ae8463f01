package sim

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// attackTest is a world with liars in it, and what it should come to.
type attackTest struct {
	name  string
	kind  AttackKind
	times float64
	from  Time
	ahead uint32
	seed  uint64            // 0 means attackSeed
	spoil func(s *Scenario) // what the scenario needs besides
	says  string            // what some honest node says of a liar; "" = nothing need be said
	wins  string            // why it is known to win; "" = it does not
}

// honestNodes stand against one liar, which is the last founder.
const honestNodes = 5

// attackLimitMs is more than twice what the longest attack test takes that ends.
const attackLimitMs = 300_000

// scenario has an open admission's rules and ends after about so many rounds.
// Payloads are pulled, not carried inside headers.
func (a attackTest) scenario(seed uint64) Scenario {
	s := Small(honestNodes+1, 40, nil, seed)
	p := &s.Params
	*p = Params(1, 0, codec.F32)
	p.Budget = uint64((honestNodes+1)*40*p.H) * TokensPerStep
	p.MaxShare, p.Quorum = 0.5, 3
	p.MaxSteps, p.MaxTokensPerStep = 16, 2*TokensPerStep
	p.WindowAccept, p.WindowUnion = 8, 24
	s.LimitMs = attackLimitMs
	s.Founders[honestNodes].Attack = Attack{Kind: a.kind, Times: a.times, From: a.from, Ahead: a.ahead}
	if a.spoil != nil {
		a.spoil(&s)
	}
	return s
}

// inline makes payloads travel inside headers.
func inline(s *Scenario) {
	s.Params.Fragments, s.Params.Codec = 3, codec.Int4
}

// narrow windows are reached within the run.
func narrow(s *Scenario) { s.Params.WindowAccept, s.Params.WindowUnion = 4, 10 }

// strange makes the liar one that was never folded, in a run of narrow windows.
func strange(s *Scenario) {
	narrow(s)
	observing(s)
}

// bought lets a liar claim sixteen times the tokens of others, in a run long enough
// for its weight to matter.
func bought(s *Scenario) {
	narrow(s)
	s.Params.MaxTokensPerStep = 8 * TokensPerStep
	s.Params.Budget *= 4
}

// stormy parts the liar and two others from the rest for twelve seconds, and kills one,
// over bad links.
func stormy(s *Scenario) {
	s.Link = Link{LatencyMs: 40, JitterMs: 60, Loss: 0.05, Duplicate: 0.05}
	s.Faults = append(s.Faults,
		Fault{At: 8000, Kind: fault.Partition, Others: []int{0, 1, honestNodes}}, Fault{At: 20_000, Kind: fault.Merge},
		Fault{At: 22_000, Kind: fault.Kill, Node: 2}, Fault{At: 24_000, Kind: fault.Start, Node: 2})
	s.CalmMs = 25_000
}

// usual are the limits on claims that a new run has: 1,024 steps, and 64 times the
// usual batch.
func usual(s *Scenario) { s.Params.MaxSteps, s.Params.MaxTokensPerStep = 1024, 64*TokensPerStep }

// observing makes the liar a stranger to training.
func observing(s *Scenario) { s.Founders[honestNodes].Observer = true }

// joining lets two nodes come that need tips, and wipes the disk of a third.
func joining(s *Scenario) {
	s.Faults = append(s.Faults,
		Fault{At: 12_000, Kind: fault.Join}, Fault{At: 13_000, Kind: fault.Join},
		Fault{At: 14_000, Kind: fault.Wipe, Node: 1}, Fault{At: 15_000, Kind: fault.Start, Node: 1})
	s.CalmMs = 16_000
}

var attackTests = []attackTest{
	{name: "sign flip", kind: SignFlip, times: 1},
	{name: "sign flip x10", kind: SignFlip, times: 10},
	{name: "scaled x1000", kind: Scale, times: 1000},
	{name: "huge norms", kind: Scale, times: 1e37},
	{name: "not finite", kind: Unfinite, from: 5000, says: "a value is"},
	{name: "not finite int4", kind: Unfinite, from: 5000, spoil: inline, says: "scale"},
	{name: "garbage payloads", kind: Garbage, from: 5000, says: "payload"},
	{name: "inflated", kind: Inflate, times: -1, wins: "a liar of the largest weight cancels all others: its share is half, whatever it claims"},
	{name: "inflated, usual limits", kind: Inflate, times: -1, from: 5000, spoil: usual},
	{name: "equivocation", kind: Equivocate, from: 5000, says: "signed two deltas"},
	{name: "equivocation inline", kind: Equivocate, from: 5000, spoil: inline, says: "signed two deltas"},
	{name: "late proof", kind: LateProof, times: 12, says: "signed two deltas"},
	{name: "proof at the edge", kind: LateProof, times: 9, spoil: narrow, says: "signed two deltas"},
	{name: "one proof", kind: OneProof, times: 4, says: "signed two deltas"},
	{name: "headers to half", kind: ShownToHalf},
	{name: "stale rounds", kind: StaleRounds},
	{name: "stale rounds inline", kind: StaleRounds, spoil: inline},
	{name: "far rounds", kind: FarRounds},
	{name: "payload missing", kind: PayloadMissing, times: 3, says: "no source had it"},
	{name: "payload missing, storm", kind: PayloadMissing, times: 3, seed: 3, spoil: stormy},
	{name: "windows edge", kind: WindowsEdge, spoil: narrow},
	{name: "windows edge for ever", kind: WindowsEdge, times: 1, spoil: narrow},
	{name: "windows edge for ever, storm", kind: WindowsEdge, times: 1, seed: 3, spoil: func(s *Scenario) { narrow(s); stormy(s) }},
	{name: "windows edge for ever, storm 4", kind: WindowsEdge, times: 1, seed: 4, spoil: func(s *Scenario) { narrow(s); stormy(s) }},
	{name: "false beats", kind: FalseBeats, from: 5000},
	{name: "false beats, usual limits", kind: FalseBeats, from: 5000, spoil: usual},
	{name: "false beats, observer", kind: FalseBeats, spoil: observing},
	{name: "fresh beats", kind: FreshBeats, times: 40},
	{name: "withheld from all", kind: WithholdAll},
	{name: "withheld from some", kind: WithholdSome},
	{name: "wrong payloads", kind: WrongPayloads, says: "payload"},
	{name: "wrong chunks", kind: WrongChunks, spoil: joining},
	{name: "short chunks", kind: ShortChunks, spoil: joining},
	{name: "false states", kind: FalseStates, from: 12_000, says: "folds"},
	{name: "invented stranger", kind: InventedRun, from: 15_000, spoil: strange},
	{name: "invented stranger ahead", kind: InventedRun, from: 5000, ahead: 200, spoil: strange},
	{name: "invented stranger joiners", kind: InventedRun, from: 5000, ahead: 200, spoil: func(s *Scenario) { strange(s); joining(s) }, wins: "joiners that believed one liar of their link never leave its chain"},
	{name: "invented crowd", kind: InventedRun, times: 20, from: 15_000, spoil: strange},
	{name: "invented crowd ahead", kind: InventedRun, times: 20, from: 5000, ahead: 200, spoil: strange},
	{name: "invented insider", kind: InventedRun, from: 15_000, spoil: narrow},
	{name: "bought run", kind: BoughtRun, times: 1, from: 5000, spoil: bought},
	{name: "invented insider ahead", kind: InventedRun, from: 15_000, ahead: 200, spoil: narrow},
	{name: "invented insider ahead, storm", kind: InventedRun, from: 15_000, ahead: 200, seed: 3, spoil: func(s *Scenario) { narrow(s); stormy(s) },
		wins: "of two that are parted with it, one's word is enough, and the claims of three outweigh the rest"},
}

// Honest nodes end with one chain and one digest of a model that learned, whatever
// one of six does. Nobody honest is marked or barred, and nobody stands still for
// longer than a word may be doubted. An attack that is known to win does, so that nobody
// forgets to take the mark away once it does not.
func TestAttacks(t *testing.T) {
	var table strings.Builder
	calm := map[string]cost{} // by scenario: most attack tests share one
	for _, a := range attackTests {
		t.Run(a.name, func(t *testing.T) {
			w := a.play(t, false)
			a.judge(t, w)
			key := fmt.Sprintf("%+v", a.peaceful())
			if _, known := calm[key]; !known {
				calm[key] = costOf(a.play(t, true))
			}
			fmt.Fprintf(&table, "| %s | %s |\n", a.name, costOf(w).against(calm[key]))
		})
	}
	t.Logf("what it costs an honest node\n| attack | %s |\n%s", costColumns, table.String())
}

// The design document says of each kind of attack what it costs, and each is played.
func TestEveryAttackIsMeasured(t *testing.T) {
	design, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(design), "\n| attack | what honest nodes do |")
	table, _, _ = strings.Cut(table, "\n\n")
	var rows, played []AttackKind
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		names, _, _ := strings.Cut(cells[min(1, len(cells)-1)], ":")
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1) {
			rows = append(rows, AttackKind(quoted[1]))
		}
	}
	for _, a := range attackTests {
		played = append(played, a.kind)
	}
	for what, kinds := range map[string][]AttackKind{"table of DESIGN.md": rows, "attack tests": played} {
		slices.Sort(kinds)
		if kinds = slices.Compact(kinds); !slices.Equal(kinds, AttackKinds()) {
			t.Errorf("the %s has %q, the kinds are %q", what, kinds, AttackKinds())
		}
	}
}

// attackSeed is of all attack tests and of the calm worlds that they are held against.
const attackSeed = 7

// peaceful is the scenario in which the liar is honest.
func (a attackTest) peaceful() Scenario {
	s := a.scenario(cmp.Or(a.seed, attackSeed))
	s.Founders[honestNodes].Attack = Attack{}
	return s
}

// play runs the world of an attack test, or the same one in which the liar is honest.
func (a attackTest) play(t *testing.T, calm bool) *World {
	t.Helper()
	s := a.scenario(cmp.Or(a.seed, attackSeed))
	if calm {
		s = a.peaceful()
	}
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.Finish()
	if calm && w.Err() != nil {
		t.Fatal(w.Err())
	}
	return w
}

// mostIdleMs is how long in all a learner may stand still for what a peer says and
// does not keep: the time after which the peer is doubted, and some ticks.
const mostIdleMs = 6000

// judge fails the test if an attack wins, or does not although it is known to.
func (a attackTest) judge(t *testing.T, w *World) {
	t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(w.checks.caught)) {
		t.Logf("%5d x %s", w.checks.caught[reason], reason)
	}
	broken := a.broken(w)
	if a.wins != "" && len(broken) == 0 {
		t.Errorf("does not win any more: take away `wins: %q`", a.wins)
	}
	for _, what := range broken {
		if a.wins != "" {
			t.Logf("%v, as is known: %s", what, a.wins)
		} else {
			t.Error(what)
		}
	}
}

// broken is what an attack brought about.
func (a attackTest) broken(w *World) (what []error) {
	if w.Err() != nil {
		what = append(what, w.Err())
	}
	said := func(reason string) bool { return strings.Contains(reason, a.says) }
	if a.says != "" && !slices.ContainsFunc(slices.Collect(maps.Keys(w.checks.caught)), said) {
		what = append(what, fmt.Errorf("nobody says %q", a.says))
	}
	for _, n := range w.alive() {
		if n.idle > mostIdleMs {
			what = append(what, fmt.Errorf("node %d stood still for %d ms", n.index, n.idle))
		}
		what = append(what, n.dishonoured()...)
	}
	return what
}

// dishonoured are the honest nodes that this one bars or marks.
func (n *Node) dishonoured() (what []error) {
	for _, other := range n.w.alive() {
		if n.machine.Rounds().Barred(other.id) {
			what = append(what, fmt.Errorf("node %d bars node %d", n.index, other.index))
		}
	}
	for _, v := range n.machine.Gossip().Peers().All() {
		if p := n.w.byID[v.ID]; v.Refused != "" && p != nil && p.liar == nil {
			what = append(what, fmt.Errorf("node %d marks node %d: %s", n.index, p.index, v.Refused))
		}
	}
	return what
}

// cost is what a run cost its honest nodes, on average.
type cost struct {
	ms, rounds, loss                                float64
	steps, idle, in, out, refolds, installs, ledger float64
	peers                                           float64
}

func costOf(w *World) cost {
	c := cost{ms: float64(w.now - Start), rounds: float64(w.leastClosed()), loss: Loss(w.Anchors())}
	honest := w.alive()
	share := 1 / float64(len(honest))
	for _, n := range honest {
		c.steps += share * float64(n.Steps)
		c.idle += share * float64(n.idle)
		c.in += share * float64(n.BytesIn)
		c.out += share * float64(n.BytesOut)
		c.refolds += share * float64(n.Refolds)
		c.installs += share * float64(n.Installs)
		deltas, _, _ := n.disk.Sizes()
		c.ledger += share * float64(deltas)
		c.peers += share * float64(n.machine.Gossip().Peers().Known())
	}
	return c
}

const costColumns = "loss (calm) | s (calm) | rounds (calm) | steps (calm) | idle s | MB in (calm) | MB out (calm) | refolds | tips taken | deltas held (calm) | peers known"

// against writes a row, with what the calm world cost in brackets.
func (c cost) against(calm cost) string {
	return fmt.Sprintf("%.3g (%.3g) | %.1f (%.1f) | %.0f (%.0f) | %.0f (%.0f) | %.1f | %.2f (%.2f) | %.2f (%.2f) | %.1f | %.1f | %.0f (%.0f) | %.0f",
		c.loss, calm.loss, c.ms/1000, calm.ms/1000, c.rounds, calm.rounds, c.steps, calm.steps, c.idle/1000, c.in/1e6, calm.in/1e6,
		c.out/1e6, calm.out/1e6, c.refolds, c.installs, c.ledger, calm.ledger, c.peers)
}

// Of nine nodes so many are strangers that lie together: they attest each other's
// word. Below half of those that a node sees they bring nobody to give up a chain.
func TestSybilsBelowHalf(t *testing.T) {
	for _, liars := range []int{1, 2, 4} {
		for _, ahead := range []uint32{0, 200} {
			s := attackTest{kind: InventedRun, spoil: strange}.scenario(attackSeed)
			s.Founders = make([]NodeSpec, 9)
			for i := range liars {
				s.Founders[8-i] = NodeSpec{Observer: true, Attack: Attack{Kind: InventedRun, From: 15_000, Ahead: ahead}}
			}
			w, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			w.Finish()
			t.Logf("%d of 9, %d rounds ahead", liars, ahead)
			attackTest{}.judge(t, w)
		}
	}
}

// With 2 of 8 learners that lie together in each way that touches deltas and headers
// the others still come to one chain.
func TestTwoOfEight(t *testing.T) {
	for _, a := range []attackTest{
		{kind: SignFlip, times: 1}, {kind: Equivocate, from: 5000},
		{kind: LateProof, times: 9, spoil: narrow}, {kind: WithholdAll}, {kind: WrongPayloads, from: 5000},
		{kind: FalseStates, from: 12_000}, {kind: WindowsEdge, spoil: narrow},
	} {
		t.Run(string(a.kind), func(t *testing.T) {
			s := a.scenario(attackSeed)
			liar := s.Founders[honestNodes]
			s.Founders = append(make([]NodeSpec, 6), liar, liar)
			w, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			w.Finish()
			a.judge(t, w)
		})
	}
}
