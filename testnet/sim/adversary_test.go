package sim

import (
	"cmp"
	"errors"
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
	also  func(w *World)    // what happens besides that no scenario says
	shows string            // what `atoll peers` shows of a liar at some honest node; "" = nobody can tell
	says  string            // likewise, in the log alone
	wins  string            // why it is known to win; "" = it does not
	heavy bool              // takes seconds: ATOLL_LONG=1 plays it
	agree bool              // deltas count by what they have in common, as in new runs
	guest bool              // the run admits by invitation, and the liars are its guests
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
	p.OwnText = !a.agree
	p.MaxSteps, p.MaxTokensPerStep = 16, 2*TokensPerStep
	p.WindowAccept, p.WindowUnion = 8, 24
	s.LimitMs = attackLimitMs
	liar := &s.Founders[honestNodes]
	liar.Attack = Attack{Kind: a.kind, Times: a.times, From: a.from, Ahead: a.ahead}
	if a.spoil != nil {
		a.spoil(&s)
	}
	if s.Open = !a.guest; a.guest {
		for i := range s.Founders {
			s.Founders[i].Guest = s.Founders[i].Attack.Kind != ""
		}
	}
	return s
}

// inline makes payloads travel inside headers.
func inline(s *Scenario) {
	s.Params.Fragments, s.Params.Codec = 3, codec.Int4
}

// narrow windows are reached within the run.
func narrow(s *Scenario) { s.Params.WindowAccept, s.Params.WindowUnion = 4, 10 }

// usualWindows are those of a new run, in which nothing old becomes final.
func usualWindows(s *Scenario) { s.Params.WindowAccept, s.Params.WindowUnion = 16, 256 }

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

// usual are the limits on claims that a new run has: 1,024 steps, and 6 H count for a
// round, and 64 times the usual batch.
func usual(s *Scenario) {
	s.Params.MaxSteps, s.Params.MaxTokensPerStep, s.Params.MaxPace = 1024, 64*TokensPerStep, 6
}

// rich lets a stranger claim sixteen times the tokens of others, as long as that ends no run.
func rich(s *Scenario) {
	strange(s)
	s.Params.MaxTokensPerStep = 8 * TokensPerStep
	s.Params.Budget, s.Rounds = 1<<40, 40
}

// oneBatch are those of a run in which all learners have the usual batch and plan H steps: 1,024
// steps, and twice H count for a round.
func oneBatch(s *Scenario) {
	s.Params.MaxSteps, s.Params.MaxTokensPerStep, s.Params.MaxPace = 1024, TokensPerStep, 2
	observing(s)
}

// observing makes the liars strangers to training.
func observing(s *Scenario) {
	for i := range s.Founders {
		s.Founders[i].Observer = s.Founders[i].Attack.Kind != ""
	}
}

// crowded has a stranger stand against sixteen learners for some rounds of a run without an
// end, so that what it claims ends nothing.
func crowded(s *Scenario) {
	usual(s)
	s.Founders = append(make([]NodeSpec, 16), s.Founders[honestNodes])
	s.Params.Budget, s.Rounds = 1<<40, 30
	observing(s)
}

// stranger is an observer that lies in a run with the usual limits.
func stranger(s *Scenario) {
	usual(s)
	observing(s)
}

// dayOld is a run that was made a day before. Bytes of one connection keep their order.
func dayOld(s *Scenario) {
	observing(s)
	s.Params.CreatedMs = Start - 24*60*60*1000
	s.Link.JitterMs = 0
}

// dozen has twelve liars, which are observers.
func dozen(s *Scenario) {
	for range 11 {
		s.Founders = append(s.Founders, s.Founders[honestNodes])
	}
	observing(s)
}

// parting parts two honest nodes from all others for twelve seconds.
func parting(s *Scenario) {
	s.Faults = append(s.Faults, Fault{At: 8000, Kind: fault.Partition, Others: []int{0, 1}}, Fault{At: 20_000, Kind: fault.Merge})
	s.CalmMs = 20_000
}

// filled is a short run of three whose tables of payloads are full from its middle on. What
// is in them is looked at in each tick, so that there are fewer of these.
func filled(s *Scenario) {
	s.Founders = append(make([]NodeSpec, 3), s.Founders[honestNodes])
	observing(s)
	usualWindows(s)
	s.Params.Budget /= 4
	s.TickMs = largeTickMs
}

// guestAt is when a learner comes whose link names one of twelve liars.
const guestAt = 12_000

// guest has it come, and the faults end with it.
func guest(w *World) {
	w.at(Start+guestAt, func() { w.comes(w.nodes[len(w.s.Founders)-1]) })
}

// joining lets two nodes come that need a snapshot, and wipes the disk of a third.
func joining(s *Scenario) {
	s.Faults = append(s.Faults,
		Fault{At: 12_000, Kind: fault.Join}, Fault{At: 13_000, Kind: fault.Join},
		Fault{At: 14_000, Kind: fault.Wipe, Node: 1}, Fault{At: 15_000, Kind: fault.Start, Node: 1})
	s.CalmMs = 16_000
}

var attackTests = []attackTest{
	{name: "sign flip", kind: SignFlip, times: 1},
	{name: "sign flip x10", kind: SignFlip, times: 10},
	{name: "scaled x1000", kind: Scale, times: 1000, seed: 8},
	{name: "huge norms", kind: Scale, times: 1e37, seed: 8},
	{name: "not finite", kind: Unfinite, from: 5000, shows: "a value is"},
	{name: "not finite int4", kind: Unfinite, from: 5000, spoil: inline, shows: "scale"},
	{name: "zero", kind: Zero},
	{name: "noise", kind: Noise, times: 1},
	{name: "copies", kind: Copy, seed: 10},
	{name: "garbage payloads", kind: Garbage, from: 5000, shows: "payload"},
	{name: "inflated", kind: Inflate, times: -1, wins: "a liar of the largest weight cancels all others: its share is half, whatever it claims"},
	{name: "inflated, usual limits", kind: Inflate, times: -1, from: 5000, spoil: usual, wins: "likewise"},
	{name: "equivocation", kind: Equivocate, from: 5000, shows: "signed two deltas"},
	{name: "equivocation inline", kind: Equivocate, from: 5000, spoil: inline, shows: "signed two deltas"},
	{name: "late proof", kind: LateProof, times: 12, shows: "signed two deltas"},
	{name: "proof at the edge", kind: LateProof, times: 9, spoil: narrow, shows: "signed two deltas"},
	{name: "one proof", kind: OneProof, times: 4, shows: "signed two deltas"},
	{name: "headers to half", kind: ShownToHalf},
	{name: "stale rounds", kind: StaleRounds},
	{name: "stale rounds inline", kind: StaleRounds, spoil: inline},
	{name: "far rounds", kind: FarRounds, wins: "keys that are free close rounds, and each round is kept"},
	{name: "payload missing", kind: PayloadMissing, times: 3, says: "no source had it"},
	{name: "payload missing, storm", kind: PayloadMissing, times: 3, seed: 3, spoil: stormy},
	{name: "windows edge", kind: WindowsEdge, spoil: narrow},
	{name: "windows edge for ever", kind: WindowsEdge, times: 1, spoil: narrow},
	{name: "windows edge for ever, storm", kind: WindowsEdge, times: 1, seed: 3, spoil: func(s *Scenario) { narrow(s); stormy(s) }},
	{name: "windows edge for ever, storm 4", kind: WindowsEdge, times: 1, seed: 4, spoil: func(s *Scenario) { narrow(s); stormy(s) }},
	{name: "false heartbeats", kind: FalseHeartbeats, from: 5000},
	{name: "false heartbeats, usual limits", kind: FalseHeartbeats, from: 5000, spoil: usual},
	{name: "false heartbeats, observer", kind: FalseHeartbeats, spoil: observing},
	{name: "fresh heartbeats", kind: FreshHeartbeats, times: 40},
	{name: "withheld from all", kind: WithholdAll, says: "no source had it"},
	{name: "withheld from some", kind: WithholdSome},
	{name: "wrong payloads", kind: WrongPayloads, shows: "payload"},
	{name: "wrong chunks", kind: WrongChunks, spoil: joining, shows: "that are not chunk"},
	{name: "short chunks", kind: ShortChunks, spoil: joining, shows: "that are not chunk"},
	{name: "false states", kind: FalseStates, from: 12_000, says: "folds"},
	{name: "invented stranger", kind: InventedRun, from: 15_000, spoil: strange},
	{name: "invented stranger ahead", kind: InventedRun, from: 5000, ahead: 200, spoil: strange},
	{name: "invented stranger joiners", kind: InventedRun, from: 5000, ahead: 200, spoil: func(s *Scenario) { strange(s); joining(s) }, wins: "joiners that believed one liar of their link never leave its chain"},
	{name: "invented stranger, a link to nobody else", kind: InventedRun, from: 5000, ahead: 200, spoil: func(s *Scenario) { strange(s); s.CalmMs = guestAt + 1000 }, also: guest, wins: "likewise"},
	{name: "invented crowd", kind: InventedRun, times: 20, from: 15_000, spoil: strange},
	{name: "invented crowd ahead", kind: InventedRun, times: 20, from: 5000, ahead: 200, spoil: strange},
	{name: "invented insider", kind: InventedRun, from: 15_000, spoil: narrow},
	{name: "bought run", kind: BoughtRun, times: 1, from: 5000, spoil: bought, wins: "one delta gives a key standing, and its chain says that it has more tokens"},
	{name: "invented insider ahead", kind: InventedRun, from: 15_000, ahead: 200, spoil: narrow},
	{name: "invented insider ahead, storm", kind: InventedRun, from: 15_000, ahead: 200, seed: 3, spoil: func(s *Scenario) { narrow(s); stormy(s) },
		wins: "of two that are parted with it, one's claim is enough, and the claims of three outweigh the rest"},
	{name: "six empty deltas and an invented run", kind: SybilRun, times: 6, from: 5000, ahead: 200, spoil: strange, wins: "one delta of one token gives a key a vote on chains, and six keys outvote five"},
	{name: "six that claim the most and an invented run", kind: ClaimRun, times: 6, from: 5000, ahead: 200, spoil: rich, wins: "likewise"},
	{name: "one claim and a heavier run", kind: ClaimRun, from: 5000, spoil: rich, wins: "one delta makes a key's claims of tokens count"},
	{name: "three of them", kind: SybilRun, times: 3, from: 5000, ahead: 200, spoil: strange},
	{name: "two that claim the most", kind: MostClaims, times: 2, from: 3000, spoil: crowded, wins: "weight is tokens that nobody counts: the others have 0.005 % of the fold"},
	{name: "one claim", kind: OneClaim, from: 8000, spoil: stranger},
	{name: "one claim of steps", kind: OneClaim, from: 5000, spoil: oneBatch},
	{name: "a burst, a day later", kind: BurstRounds, times: 400, from: 8000, spoil: dayOld, wins: "keys that are free close rounds, and each round is kept"},
	{name: "a shorter burst, a day later", kind: BurstRounds, times: 120, from: 8000, spoil: dayOld},
	{name: "full round", kind: FullRound, times: 1024, from: 8000, spoil: func(s *Scenario) { observing(s); usualWindows(s) }, heavy: true, wins: "the 1,024 deltas of a full round are kept on disk, and 256 that overflow"},
	{name: "full round of sixteen", kind: FullRound, times: 16, from: 8000, spoil: func(s *Scenario) { observing(s); usualWindows(s); s.Deltas = 16 }},
	{name: "last round", kind: LastRound, from: 5000, spoil: observing},
	{name: "late sets", kind: LateSets, from: 5000, spoil: observing},
	{name: "bare headers", kind: BareHeaders, times: 23, from: 12_000, spoil: filled, heavy: true},
	{name: "idle crowd", kind: IdleCrowd, times: 300, from: 3000, spoil: observing, heavy: true},
	{name: "idle crowd, parted", kind: IdleCrowd, times: 300, from: 3000, spoil: func(s *Scenario) { observing(s); parting(s) }, heavy: true},
	{name: "stalled repairs", kind: StallRepairs, spoil: func(s *Scenario) { dozen(s); parting(s) }},
	{name: "sessions", kind: HoldSessions, spoil: func(s *Scenario) { dozen(s); s.CalmMs = guestAt + 1000 }, also: guest},
}

// Honest nodes end with one chain and one digest of a model that learned, whatever
// one of six does, and at the price that the bar allows. Nobody honest is marked or excluded,
// and nobody stands still for longer than until a claim is doubted. An attack that is known
// to win does, so that nobody forgets to take the mark away once it does not.
func TestAttacks(t *testing.T) { playAttacks(t, attackTests) }

// The same in worlds that fold as new runs do: they judge deltas, and copies weigh as one.
func TestAttacksWithScores(t *testing.T) {
	if !longMode() {
		t.Skip("takes half a minute: ATOLL_LONG=1 runs it")
	}
	var agreed []attackTest
	for _, a := range attackTests {
		a.agree = true
		agreed = append(agreed, a)
	}
	playAttacks(t, agreed)
}

func playAttacks(t *testing.T, attacks []attackTest) {
	t.Helper()
	var table strings.Builder
	calm := map[string]cost{} // by scenario: most attack tests share one
	for i, a := range attacks {
		t.Run(a.name, func(t *testing.T) {
			if a.heavy && !longMode() || !taken(i, 14) {
				t.Skip("ATOLL_LONG=1 runs it")
			}
			var broken []error
			for _, seed := range a.seeds() {
				peaceful := a.calmCost(t, seed, calm)
				w := a.play(t, seed, peaceful)
				broken = append(broken, a.broken(w, &peaceful)...)
				fmt.Fprintf(&table, "| %s | %s |\n", a.name, costOf(w).against(peaceful))
				logSaid(t, w)
			}
			a.judge(t, broken)
		})
	}
	t.Logf("what it costs an honest node\n| attack | %s |\n%s", costColumns, table.String())
}

func longMode() bool { return os.Getenv("ATOLL_LONG") != "" }

// taken says whether the i-th of many worlds is played: one of so many is, and all with ATOLL_LONG=1.
func taken(i, oneOf int) bool { return longMode() || i%oneOf == 0 }

// mostAttackSeeds is how many seeds the long mode plays of each attack.
const mostAttackSeeds = 5

// seeds begin with the one of the short mode.
func (a attackTest) seeds() []uint64 {
	first := cmp.Or(a.seed, attackSeed)
	if !longMode() {
		return []uint64{first}
	}
	var all []uint64
	for i := range uint64(mostAttackSeeds) {
		all = append(all, first+i)
	}
	return all
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
	elsewhere := []AttackKind{Undead} // of runs by invitation: TestRevokedGoesOn
	all := slices.DeleteFunc(AttackKinds(), func(k AttackKind) bool { return slices.Contains(elsewhere, k) })
	for what, kinds := range map[string][]AttackKind{"table of DESIGN.md": rows, "attack tests": played} {
		slices.Sort(kinds)
		if kinds = slices.Compact(kinds); !slices.Equal(kinds, all) {
			t.Errorf("the %s has %q, the kinds are %q", what, kinds, all)
		}
	}
}

// attackSeed is the first of the attack tests and of the calm worlds that they are held against.
const attackSeed = 7

// peaceful is the scenario in which the liars are honest.
func (a attackTest) peaceful(seed uint64) Scenario {
	s := a.scenario(seed)
	for i := range s.Founders {
		s.Founders[i].Attack = Attack{}
	}
	return s
}

// calmCost is what the world costs in which the liars are honest. It is played once.
func (a attackTest) calmCost(t *testing.T, seed uint64, known map[string]cost) cost {
	t.Helper()
	s := a.peaceful(seed)
	key := fmt.Sprintf("%+v %v", s, a.also != nil)
	if _, played := known[key]; !played {
		w := a.begin(t, s)
		if w.Err() != nil {
			t.Fatal(w.Err())
		}
		known[key] = costOf(w)
	}
	return known[key]
}

// watchFactor is how many times the calm world's time an attack's world is watched in the short
// mode. What it does not end by then is far beyond the bar.
const watchFactor = 2.25

// play runs the world of an attack test.
func (a attackTest) play(t *testing.T, seed uint64, calm cost) *World {
	t.Helper()
	s := a.scenario(seed)
	if !longMode() {
		s.LimitMs = min(s.LimitMs, Time(watchFactor*calm.ms))
	}
	return a.begin(t, s)
}

// begin runs a scenario to its end.
func (a attackTest) begin(t *testing.T, s Scenario) *World {
	t.Helper()
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.Watch(burstMs, w.looksAtBursts)
	if a.also != nil {
		a.also(w)
	}
	if s.Rounds > 0 {
		w.runRounds(s.Rounds)
	} else {
		w.Finish()
	}
	return w
}

// burstMs is the time over which the rounds that close are counted.
const burstMs = 1000

// looksAtBursts records how many rounds each honest node closed since the last look.
func (w *World) looksAtBursts() {
	for _, n := range w.alive() {
		closed := n.machine.Rounds().Fragment(0).Closed()
		if n.Installs == n.lookedInstalls {
			n.burst = max(n.burst, closed-min(closed, n.looked))
		}
		n.looked, n.lookedInstalls = closed, n.Installs
	}
}

// mostIdleMs is how long in all a learner may stand still for what a peer says and
// does not keep: the time after which the peer is doubted, and some ticks.
const mostIdleMs = 6000

// mostIdle is that time for a node whose heartbeats, and with them its doubts, are rare.
func (n *Node) mostIdle() Time { return max(mostIdleMs, 12*n.machine.Gossip().HeartbeatPeriodMs()) }

// judge fails the test if an attack wins, or does not although it is known to.
func (a attackTest) judge(t *testing.T, broken []error) {
	t.Helper()
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

// logSaid shows what honest nodes said of liars.
func logSaid(t *testing.T, w *World) {
	t.Helper()
	for _, reason := range slices.Sorted(maps.Keys(w.checks.caught)) {
		t.Logf("%5d x %s", w.checks.caught[reason], reason)
	}
}

// broken is what an attack brought about. Without a calm world nothing is held against the
// bar.
func (a attackTest) broken(w *World, calm *cost) (what []error) {
	if w.Err() != nil {
		text, _, _ := strings.Cut(w.Err().Error(), "\n")
		what = append(what, errors.New(text))
	}
	if !names(slices.Collect(maps.Keys(w.checks.caught)), a.says) {
		what = append(what, fmt.Errorf("nobody says %q", a.says))
	}
	if shown := w.shown(); !names(shown, a.shows) {
		what = append(what, fmt.Errorf("nobody's peers show %q, but %q", a.shows, shown))
	}
	for _, n := range w.alive() {
		if n.idle > n.mostIdle() {
			what = append(what, fmt.Errorf("node %d stood still for %d ms", n.index, n.idle))
		}
		what = append(what, n.dishonoured()...)
	}
	if calm != nil {
		what = append(what, costOf(w).above(*calm)...)
	}
	return what
}

// names says whether one of some reasons has a text.
func names(reasons []string, text string) bool {
	return text == "" || slices.ContainsFunc(reasons, func(r string) bool { return strings.Contains(r, text) })
}

// shown is what `atoll peers` shows of liars at honest nodes.
func (w *World) shown() (reasons []string) {
	for _, n := range w.alive() {
		for _, v := range n.machine.Gossip().Peers().All() {
			if w.checks.faulty[v.ID] && v.Refused != "" {
				reasons = append(reasons, v.Refused)
			}
		}
	}
	return reasons
}

// The bar: what an attack may cost honest nodes at most, against the calm world of the same
// seed. What they hold in memory has constants of its own (checker `bounds`).
const (
	mostLoss    = 3.     // times the loss
	leastRounds = 0.9    // of the rounds
	mostTime    = 2.     // times the time
	mostDisk    = 2.     // times the deltas on a disk, each of which is a file
	mostBurst   = 8 + 50 // rounds within burstMs: those that R-2 never paces, and one each MinRoundMs
)

// above is where a cost is above the bar.
func (c cost) above(calm cost) (what []error) {
	if !(c.loss <= mostLoss*calm.loss) { // true for NaN
		what = append(what, fmt.Errorf("loss %.3g, %.3g in the calm world; at most %g times as much", c.loss, calm.loss, mostLoss))
	}
	if c.rounds < leastRounds*calm.rounds {
		what = append(what, fmt.Errorf("%.0f rounds, %.0f in the calm world; at least %g of them", c.rounds, calm.rounds, leastRounds))
	}
	if c.ms > mostTime*calm.ms {
		what = append(what, fmt.Errorf("%.1f s, %.1f in the calm world; at most %g times as long", c.ms/1000, calm.ms/1000, mostTime))
	}
	if c.ledger > mostDisk*calm.ledger {
		what = append(what, fmt.Errorf("%.0f deltas on disk, %.0f in the calm world; at most %g times as many", c.ledger, calm.ledger, mostDisk))
	}
	if c.burst > mostBurst {
		what = append(what, fmt.Errorf("%d rounds closed within %d ms; at most %d", c.burst, burstMs, mostBurst))
	}
	return what
}

// dishonoured are the honest nodes that this one excludes or marks.
func (n *Node) dishonoured() (what []error) {
	for _, other := range n.w.alive() {
		if n.machine.Rounds().Excluded(other.id) {
			what = append(what, fmt.Errorf("node %d excludes node %d", n.index, other.index))
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
	burst                                           uint32 // the most rounds that one of them closed within burstMs
}

func costOf(w *World) cost {
	c := cost{ms: float64(w.now - Start), rounds: float64(w.leastClosed()), loss: Loss(w.Globals())}
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
		c.burst = max(c.burst, n.burst)
		c.peers += share * float64(n.machine.Gossip().Peers().Known())
	}
	return c
}

const costColumns = "loss (calm) | s (calm) | rounds (calm) | steps (calm) | idle s | MB in (calm) | MB out (calm) | refolds | snapshots | deltas held (calm) | peers known | rounds in a second"

// against writes a row, with what the calm world cost in brackets.
func (c cost) against(calm cost) string {
	return fmt.Sprintf("%.3g (%.3g) | %.1f (%.1f) | %.0f (%.0f) | %.0f (%.0f) | %.1f | %.2f (%.2f) | %.2f (%.2f) | %.1f | %.1f | %.0f (%.0f) | %.0f | %d (%d)",
		c.loss, calm.loss, c.ms/1000, calm.ms/1000, c.rounds, calm.rounds, c.steps, calm.steps, c.idle/1000, c.in/1e6, calm.in/1e6,
		c.out/1e6, calm.out/1e6, c.refolds, c.installs, c.ledger, calm.ledger, c.peers, c.burst, calm.burst)
}

// So many of nine nodes are strangers that lie together: they attest each other's
// claims. Below half of those that a node sees they bring nobody to give up a chain.
func TestSybilsBelowHalf(t *testing.T) {
	for i, liars := range []int{4, 2, 1} {
		for j, ahead := range []uint32{200, 0} {
			if !taken(2*i+j, 5) {
				continue
			}
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
			attackTest{}.judge(t, attackTest{}.broken(w, nil))
		}
	}
}

// With 2 of 8 learners that lie together in each way that touches deltas and headers
// the others still come to one chain.
func TestTwoOfEight(t *testing.T) {
	if !longMode() {
		t.Skip("takes seconds: ATOLL_LONG=1 runs it")
	}
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
			logSaid(t, w)
			a.judge(t, a.broken(w, nil))
		})
	}
}
