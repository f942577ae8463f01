package fleet

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// run simulates a fleet that is one.
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

// naive plays a unit chip by chip and step by step, and returns its goodput. It is the judge of the events.
func naive(c Config, draws *rand.Rand) float64 {
	n, step, end := int(c.unitChips()), c.Step.Seconds(), c.seconds()
	fails, back := make([]float64, n), make([]float64, n)
	for i := range n {
		fails[i] = draws.ExpFloat64() * c.MTBF.Seconds()
	}
	var done float64
	// until plays what happens before a time.
	until := func(at float64) (shrinks, grows bool) {
		for i := range n {
			for min(fails[i], orNever(back[i])) < at {
				if back[i] > 0 {
					grows, fails[i], back[i] = true, back[i]+draws.ExpFloat64()*c.MTBF.Seconds(), 0
				} else if shrinks = true; c.System == DP {
					fails[i] += draws.ExpFloat64() * c.MTBF.Seconds()
				} else {
					back[i], fails[i] = fails[i]+c.Repair.Seconds(), math.Inf(1)
				}
			}
		}
		return shrinks, grows
	}
	for now := 0.0; now+step <= end; {
		now += step
		shrinks, grows := until(now)
		for i := range n {
			if back[i] == 0 {
				done++
			}
		}
		wait := 0.0
		switch {
		case c.System == DP && shrinks:
			wait = c.Detect.Seconds() + c.Resume.Seconds()
		case c.System != DP && shrinks:
			wait = c.Detect.Seconds() + c.Shrink.Seconds()
		}
		if c.System != DP && grows {
			wait += c.Grow.Seconds()
		}
		if wait > 0 {
			now += wait
			until(now)
		}
	}
	return done / (float64(n) * end / step)
}

func orNever(at float64) float64 {
	if at == 0 {
		return math.Inf(1)
	}
	return at
}

// Events give what chips one by one give.
func TestEventsAgreeWithChips(t *testing.T) {
	for _, system := range []System{DP, Elastic, Decoupled} {
		c := Default()
		c.System, c.Chips, c.Learners = system, 100, 1
		c.MTBF, c.Repair = 5*time.Hour, 20*time.Minute
		const trials = 20
		var events, chips float64
		for seed := range uint64(trials) {
			c.Seed = seed
			events += run(t, c).Goodput / trials
			chips += naive(c, rand.New(rand.NewPCG(seed, 99))) / trials
		}
		t.Logf("%s: %.4f, chip by chip %.4f", system, events, chips)
		if math.Abs(events-chips) > 0.01 {
			t.Errorf("%s: goodput %.4f, chip by chip %.4f", system, events, chips)
		}
	}
}

func anyConfig(t *rapid.T) Config {
	c := Default()
	c.System = rapid.SampledFrom(Systems).Draw(t, "system")
	c.Learners = rapid.IntRange(1, 20).Draw(t, "learners")
	c.Slice = rapid.IntRange(1, 8).Draw(t, "slice")
	c.Chips = float64(c.Learners * c.Slice * rapid.IntRange(1, 1000).Draw(t, "slices"))
	c.Days = rapid.Float64Range(0.01, 2).Draw(t, "days")
	c.Seed = rapid.Uint64().Draw(t, "seed")
	c.MTBF = time.Duration(rapid.Int64Range(int64(time.Minute), int64(year)).Draw(t, "mtbf"))
	c.Repair = time.Duration(rapid.Int64Range(0, int64(5*time.Hour)).Draw(t, "repair"))
	if rapid.Bool().Draw(t, "preempted") {
		c.Preempt = time.Duration(rapid.Int64Range(int64(time.Minute), int64(48*time.Hour)).Draw(t, "preempt"))
	}
	c.Slow = rapid.Float64Range(0, 0.1).Draw(t, "slow")
	c.Speeds = rapid.SliceOfN(rapid.Float64Range(0.1, 4), 0, 5).Draw(t, "speeds")
	c.Rate = rapid.SampledFrom([]float64{0, 1e8, 1e11}).Draw(t, "rate")
	c.Partition = time.Duration(rapid.Float64Range(0, 1).Draw(t, "partition") * c.seconds() * float64(time.Second))
	return c
}

// Shares are shares, nothing is lost twice, and the same seed gives the same.
func TestResultsOfAnyFleet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := anyConfig(t)
		if c.expected() > 1e5 {
			t.Skip("more than a test has time for")
		}
		r := run(t, c)
		const slack = 1e-9
		if !(r.Goodput >= -slack && r.Goodput <= 1+slack) || !(r.Uptime >= -slack && r.Uptime <= 1+slack) || r.Tokens < -slack*r.Lost || r.Lost < 0 {
			t.Fatalf("%+v of %+v", r, c)
		}
		if again := run(t, c); again != r {
			t.Fatalf("%+v and %+v of one seed", r, again)
		}
	})
}

// What a partition costs each system.
func TestPartition(t *testing.T) {
	c := Default()
	c.Chips, c.Partition = 800, 12*time.Hour // half of a day in which next to nothing fails
	for system, want := range map[System]float64{DP: 0.5, Elastic: 0.75, Decoupled: 0.75, Atoll: 1} {
		c.System = system
		r := run(t, c)
		if math.Abs(r.Goodput-want) > 0.01 {
			t.Errorf("%s: goodput %.3f, want about %g", system, r.Goodput, want)
		}
		if up := map[bool]float64{true: 0.5, false: 1}[system == DP]; math.Abs(r.Uptime-up) > 0.01 {
			t.Errorf("%s: up %.3f of the time, want about %g", system, r.Uptime, up)
		}
	}
	c.System, c.Learners = DP, 1
	if r := run(t, c); r.Goodput < 0.98 {
		t.Errorf("one learner is cut off from nobody, and has goodput %.3f", r.Goodput)
	}
	c.Learners = 8
	c.System, c.Days, c.Partition = Atoll, 4, 24*time.Hour // longer than 256 rounds of 240 s
	if r := run(t, c); math.Abs(r.Goodput-0.875) > 0.01 {
		t.Errorf("beyond the window goodput is %.3f, want about 0.875: the lighter half's day is lost", r.Goodput)
	}
}

// Learners that step together go at the pace of the slowest; others go at their own.
func TestUnequalLearners(t *testing.T) {
	c := Default()
	c.Chips, c.Speeds = 800, []float64{1, 1, 2, 4}
	for system, want := range map[System]float64{DP: 0.5, Elastic: 0.5, Decoupled: 1, Atoll: 1} {
		c.System = system
		if r := run(t, c); math.Abs(r.Goodput-want) > 0.01 {
			t.Errorf("%s: goodput %.3f, want about %g", system, r.Goodput, want)
		}
	}
}

// Links stretch the steps of those who reduce in each of them, and no other's.
func TestThinLinks(t *testing.T) {
	c := Default()
	c.Chips, c.Rate, c.Params = 800, 1e9, 1e9 // 28 Gbit a step over 1 Gbit/s
	for system, want := range map[System]float64{DP: 10. / (10 + 28 + 0.56 - 6), Elastic: 10. / (10 + 28 + 0.56 - 6), Decoupled: 1, Atoll: 1} {
		c.System = system
		if r := run(t, c); math.Abs(r.Goodput-want) > 0.005 {
			t.Errorf("%s: goodput %.3f, want about %.3f", system, r.Goodput, want)
		}
	}
}

// The bytes of atoll grow with the learners up to those that answer in a round; a syncer's grow on.
func TestBytesOfManyLearners(t *testing.T) {
	c := Default()
	c.Chips = 2048
	busiest := func(system System, learners int) float64 {
		c.System, c.Learners = system, learners
		return run(t, c).BusiestBits
	}
	if few, many := busiest(Atoll, 64), busiest(Atoll, 1024); math.Abs(many/few-1) > 1e-3 {
		t.Errorf("the busiest link of atoll carries %.3g bits/s for 64 learners and %.3g for 1,024", few, many)
	}
	if few, many := busiest(Decoupled, 64), busiest(Decoupled, 1024); math.Abs(many/few-16) > 1e-3 {
		t.Errorf("the syncer's link carries %.3g bits/s for 64 learners and %.3g for 1,024", few, many)
	}
}

// Slices that are taken away cost who waits for them more than who goes on.
func TestPreemption(t *testing.T) {
	c := Default()
	c.Chips, c.Slice, c.Preempt = 4096, 64, 24*time.Hour
	goodput := map[System]float64{}
	for _, s := range Systems {
		c.System = s
		goodput[s] = run(t, c).Goodput
	}
	if !(goodput[DP] < goodput[Elastic] && goodput[Elastic] < goodput[Atoll] && goodput[Atoll] < 1) {
		t.Errorf("goodput %v", goodput)
	}
}

// A unit that has lost all its chips is not up.
func TestNothingIsLeft(t *testing.T) {
	c := Default()
	c.Chips, c.Learners, c.Slice, c.MTBF, c.Repair, c.Days = 2, 1, 2, time.Hour, 10*time.Hour, 10
	if r := run(t, c); r.Uptime > 2*r.Goodput || r.Goodput == 0 {
		t.Errorf("goodput %.3f, up %.3f of the time", r.Goodput, r.Uptime)
	}
}

func TestRefusesWhatIsNoFleet(t *testing.T) {
	for text, change := range map[string]func(*Config){
		`system is "ring"; use dp, elastic, decoupled, atoll`: func(c *Config) { c.System = "ring" },
		"chips is 1.5":                func(c *Config) { c.Chips = 1.5 },
		"chips is 0":                  func(c *Config) { c.Chips = 0 },
		"chips is NaN":                func(c *Config) { c.Chips = math.NaN() },
		"learners is 0":               func(c *Config) { c.Learners = 0 },
		"learners is 9":               func(c *Config) { c.Learners, c.Chips = 9, 8 },
		"days is 400":                 func(c *Config) { c.Days = 400 },
		"slice is 0":                  func(c *Config) { c.Slice = 0 },
		"slice is 200000":             func(c *Config) { c.Slice = 200_000 },
		"mtbf is 0s":                  func(c *Config) { c.MTBF = 0 },
		"preempt is -1s":              func(c *Config) { c.Preempt = -time.Second },
		"step is 0s":                  func(c *Config) { c.Step = 0 },
		"slow is 2":                   func(c *Config) { c.Slow = 2 },
		"speeds are [0]":              func(c *Config) { c.Speeds = []float64{0} },
		"params 0":                    func(c *Config) { c.Params = 0 },
		"h is 0":                      func(c *Config) { c.H = 0 },
		"link is -1":                  func(c *Config) { c.Rate = -1 },
		"partition is 25h0m0s":        func(c *Config) { c.Partition = 25 * time.Hour },
		"failures are to be expected": func(c *Config) { c.MTBF = time.Second },
	} {
		c := Default()
		change(&c)
		if _, err := Run(c); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("want %q, got %v", text, err)
		}
	}
}
