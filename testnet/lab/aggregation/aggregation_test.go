package aggregation

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"atoll/tensor/codec"
)

func run(t interface {
	Helper()
	Fatal(...any)
}, c Config) Result {
	t.Helper()
	r, err := Run(c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// anyConfig draws a run of some learners.
func anyConfig(t *rapid.T) Config {
	c := Default()
	c.Plan = rapid.SampledFrom(Plans).Draw(t, "plan")
	c.Learners = rapid.IntRange(2, 150).Draw(t, "learners")
	c.LearnersPerRound = rapid.IntRange(0, c.Learners).Draw(t, "sampled learners")
	c.Levels = rapid.IntRange(0, 4).Draw(t, "levels")
	if c.Group = rapid.IntRange(0, 12).Draw(t, "group"); c.Group == 1 || c.Group > c.Learners {
		c.Group = 0
	}
	c.Aggregators = rapid.IntRange(1, 4).Draw(t, "aggregators")
	c.Codec = rapid.SampledFrom(codec.Kinds()).Draw(t, "codec")
	c.Delay = time.Duration(rapid.IntRange(0, 300).Draw(t, "delay ms")) * time.Millisecond
	c.Rate = rapid.Float64Range(1e6, 1e10).Draw(t, "rate")
	c.Seed = rapid.Uint64().Draw(t, "seed")
	return c
}

// What is sent is received, every node folds every round, and gets each payload of the last level once at most: all of
// them but its own.
func TestBytesAreConserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(anyConfig(t))
		w.play()
		counts, levels := w.counts(), w.levels()
		for _, r := range w.rounds {
			down, up := 0.0, 0.0
			for v := range w.nodes {
				down, up = down+r.down[v], up+r.up[v]
				if r.lacks[v] != 0 {
					t.Fatalf("node %d lacks %d payloads at the end", v, r.lacks[v])
				}
			}
			if math.Abs(down-up) > 1e-6*up {
				t.Fatalf("%v bytes were received, and %v sent", down, up)
			}
			if r.folded != w.Learners {
				t.Fatalf("%d of %d nodes folded", r.folded, w.Learners)
			}
			want := float64(counts[levels]) * w.payload(levels) * float64(w.Learners-makers(r, levels))
			if levels == 0 && math.Abs(down-want) > 1e-6*want {
				t.Fatalf("%v bytes were received, want %v", down, want)
			}
			if down < want*(1-1e-6) {
				t.Fatalf("%v bytes were received; those of the last level alone are %v", down, want)
			}
		}
		for i, it := range w.items {
			if len(it.lack) > 0 {
				t.Fatalf("payload %d never reached %d nodes", i, len(it.lack))
			}
		}
	})
}

// makers are how many nodes have a payload of the last level without receiving it.
func makers(r *round, levels int) int {
	if levels == 0 {
		return 1
	}
	most := 0
	for _, g := range r.levels[levels-1] {
		most = max(most, len(g.aggregators))
	}
	return most
}

// Every member is in a group, each group has the aggregators that it may have, and these are different nodes.
func TestGroupsHaveAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		w, counts := newWorld(c), c.counts()
		for _, r := range w.rounds {
			for l, groups := range r.levels {
				members := 0
				for _, g := range groups {
					members += g.lacks[0]
					if n := len(g.aggregators); n < 1 || n > c.Aggregators || l > 0 && n != min(c.Aggregators, c.Learners) {
						t.Fatalf("a group of level %d has %d aggregators", l, n)
					}
					if sorted := slices.Sorted(slices.Values(g.aggregators)); len(slices.Compact(sorted)) != len(g.aggregators) {
						t.Fatalf("a group has the aggregators %v", g.aggregators)
					}
				}
				if members != counts[l] {
					t.Fatalf("the groups of level %d have %d of %d members", l, members, counts[l])
				}
			}
		}
	})
}

func TestOneSeedOneResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		if a, b := run(t, c), run(t, c); a != b {
			t.Fatalf("%+v and %+v", a, b)
		}
	})
	c := Default()
	a := run(t, c)
	if c.Seed++; a.Latency == run(t, c).Latency {
		t.Error("another seed has the same latency")
	}
}

// slow is a run whose payloads take a second, whose steps and folds take next to nothing, and whose rounds are far apart.
func slow(learners int) Config {
	c := Default()
	c.Learners, c.Delay, c.Step, c.Params, c.Fragments, c.H = learners, 0, time.Millisecond, 1000, 1, maxH
	c.Rate = 8 * c.payload(0)
	return c
}

// near allows for steps and folds.
func near(a, b float64) bool { return math.Abs(a-b) < 5e-3 }

// Of two learners one hears the proposal at once and one after a delay. Each delta takes three delays and its time.
func TestTwoLearners(t *testing.T) {
	c := slow(2)
	c.Delay = 250 * time.Millisecond
	r := run(t, c)
	if want := 1 + 3*0.25; !near(r.Latency, want+0.25/2) || !near(r.Last, want+0.25) {
		t.Errorf("latency %v and last %v, want %v and %v", r.Latency, r.Last, want+0.125, want+0.25)
	}
}

// One payload doubles its holders in the time that it takes.
func TestOneDeltaSpreadsByDoubling(t *testing.T) {
	for learners, want := range map[int]float64{2: 1, 3: 2, 4: 2, 5: 3, 64: 6, 65: 7, 1000: 10} {
		c := slow(learners)
		c.Plan, c.LearnersPerRound = Sampled, 1
		if r := run(t, c); !near(r.Last, want) {
			t.Errorf("%d learners: the last has it after %v s, want %v", learners, r.Last, want)
		}
	}
}

// A downlink carries all payloads, so no node is ready before; and uplinks do not rest, so it takes little more.
func TestAllToAllTakesWhatLinksCarry(t *testing.T) {
	for _, learners := range []int{4, 16, 64, 200} {
		r, least := run(t, slow(learners)), float64(learners-1)
		if r.Last < least || r.Last > 1.15*least+2*math.Log2(float64(learners)) {
			t.Errorf("%d learners: the last is ready after %v s; the link carries its payloads in %v", learners, r.Last, least)
		}
	}
}

// A group's aggregator fetches the deltas of the others, and every node receives the merged ones.
func TestAggregatorsBytes(t *testing.T) {
	c := slow(64)
	c.Plan, c.Aggregators, c.Auditors = Aggregators, 1, 1
	r := run(t, c)
	own, merged := c.payload(0), c.payload(1)
	if r.Group != 8 || r.Deltas != 8 {
		t.Fatalf("%d groups of %d, want 8 of 8", r.Deltas, r.Group)
	}
	// Each of the 8 aggregators fetches 7 deltas, and has one merged delta of 8 already.
	if want := (8*7*own + 8*63*merged) / 64; math.Abs(r.Down-want) > 1e-6*want {
		t.Errorf("a node receives %v bytes in the mean, want %v", r.Down, want)
	}
	if want := own; math.Abs(r.Audits-want) > 1e-6*want { // 8 audits of 8 deltas, by 64 nodes
		t.Errorf("a node receives %v bytes of audits, want %v", r.Audits, want)
	}
}

// Where there are too many transfers several deltas go together, and bytes are the same.
func TestDeltasTogether(t *testing.T) {
	c := slow(5000)
	w := newWorld(c)
	if w.stands() < 2 || len(w.rounds) != 1 {
		t.Fatalf("%d deltas go together in %d rounds; the test needs more", w.stands(), len(w.rounds))
	}
	total := 0.0
	for _, it := range w.items {
		total += it.bytes
	}
	if want := 5000 * c.payload(0); math.Abs(total-want) > 1e-6*want {
		t.Errorf("%v bytes of deltas, want %v", total, want)
	}
}

// A node that hears after n others is so many hops away as a tree of gossip has it.
func TestHops(t *testing.T) {
	for n, want := range map[int]float64{0: 0, 1: 1, 5: 1, 6: 2, 30: 2, 31: 3, 9999: 6} {
		if got := hops(n); got != want {
			t.Errorf("node %d is %v hops away, want %v", n, got, want)
		}
	}
}

func TestTrust(t *testing.T) {
	c := Default()
	c.Learners = 64
	for _, v := range []struct {
		name      string
		set       func(*Config)
		got       func(Trust) float64
		want      float64
		judged    bool
		afterward float64
	}{
		{"a learner of 64", func(*Config) {}, func(t Trust) float64 { return t.Learner }, 2.0 / 65, true, 0},
		{"a learner of 16 that answer", func(c *Config) { c.Plan = Sampled }, func(t Trust) float64 { return t.LearnerMean }, 2.0 / 17 / 4, true, 0},
		{"a learner in a group of 8", func(c *Config) { c.Plan = Aggregators }, func(t Trust) float64 { return t.Learner }, 2.0 / 9 / 8, true, 0},
		{"a learner in a group of 2 has all of it", func(c *Config) { c.Plan, c.Group = Aggregators, 2 }, func(t Trust) float64 { return t.Learner }, 1.0 / 32, false, 1.0 / 32},
		{"one of two aggregators", func(c *Config) { c.Plan = Aggregators }, func(t Trust) float64 { return t.Aggregator }, 0, true, 0},
		{"the only aggregator", func(c *Config) { c.Plan, c.Aggregators = Aggregators, 1 }, func(t Trust) float64 { return t.Aggregator }, 1.0 / 8, true, 0},
		{"all aggregators of a group", func(c *Config) { c.Plan = Aggregators }, func(t Trust) float64 { return t.Group }, 1.0 / 8, true, 0},
		{"groups of a tenth of all", func(c *Config) { c.Plan = Aggregators }, func(t Trust) float64 { return t.Captured }, 0.01, true, 0},
		{"in a tree of two levels", func(c *Config) { c.Plan = Tree }, func(t Trust) float64 { return t.Captured }, 1 - 0.99*0.99, true, 0},
	} {
		c := c
		v.set(&c)
		got := c.trust()
		if math.Abs(v.got(got)-v.want) > 1e-9 || got.Judged != v.judged || got.LearnerAfter != v.afterward {
			t.Errorf("%s: %v of %+v, want %v", v.name, v.got(got), got, v.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for want, set := range map[string]func(*Config){
		"plan is":               func(c *Config) { c.Plan = "ring" },
		"learners is 1":         func(c *Config) { c.Learners = 1 },
		"learners per round is": func(c *Config) { c.LearnersPerRound = 65 },
		"levels is 9":           func(c *Config) { c.Levels = 9 },
		"group is 1":            func(c *Config) { c.Group = 1 },
		"too many":              func(c *Config) { c.Plan, c.Learners, c.Group = Aggregators, MaxLearners, 2 },
		"aggregators is":        func(c *Config) { c.Aggregators = 0 },
		"auditors is":           func(c *Config) { c.Auditors = 65 },
		"liars is":              func(c *Config) { c.Liars = 1 },
		"gone":                  func(c *Config) { c.Gone = math.NaN() },
		"params is":             func(c *Config) { c.Params = 0 },
		"h is":                  func(c *Config) { c.H = 0 },
		"fragments is":          func(c *Config) { c.Fragments = 0 },
		"codec is":              func(c *Config) { c.Codec = 99 },
		"step is":               func(c *Config) { c.Step = 0 },
		"link is":               func(c *Config) { c.Rate = math.Inf(1) },
	} {
		c := Default()
		set(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
