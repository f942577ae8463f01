package aggregation

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/tensor/codec"
)

// Plan is how deltas reach all learners.
type Plan string

// Plans.
const (
	AllToAll    Plan = "all-to-all"
	Sampled     Plan = "sampled"
	Aggregators Plan = "aggregators"
	Tree        Plan = "tree"
)

// Plans are all of them.
var Plans = []Plan{AllToAll, Sampled, Aggregators, Tree}

// Limits of a simulation. They keep it within a minute of a core and 2 GiB.
const (
	MaxLearners    = 1 << 16
	MaxLevels      = 8
	MaxAggregators = 16
	maxTransfers   = 1 << 24 // of payloads, or of several that go together
	maxRounds      = 4       // that are simulated
)

// Bounds of what nobody has, which would make numbers overflow.
const (
	maxParams = 1e15
	maxH      = 1 << 20
)

// Config describes a run. Default returns one that is whole.
type Config struct {
	Plan             Plan
	Learners         int
	LearnersPerRound int        // learners that publish in a round; 0: all, or those of a usual run in the plan sampled
	Levels           int        // times that deltas are merged; 0: what the plan has usually
	Group            int        // members of a group; 0: so many that a fold has as many merged deltas
	Aggregators      int        // of a group
	Auditors         int        // that make each merged delta again
	Liars            float64    // share of the learners that one liar has
	Gone             float64    // share of the learners that die within a round
	Params           float64    // of the model
	Fragments        int        // parts of it
	H                int        // steps between two rounds of a part
	Codec            codec.Kind // of deltas
	Merged           codec.Kind // of merged deltas; 0: that of deltas, or int4 where that leaves values out
	Step             time.Duration
	Rate             float64 // of a link each way, bits/s
	Delay            time.Duration
	Seed             uint64
}

// usualLearnersPerRound is how many publish in a round where nobody chose it.
const usualLearnersPerRound = outer.UsualLearnersPerRound

// Default is a run of 64 learners with a model of 124 M parameters over links of 1 Gbit/s.
func Default() Config {
	return Config{
		Plan: AllToAll, Learners: 64, Aggregators: 2, Auditors: 2, Liars: 0.1, Gone: 0.01,
		Params: 124e6, Fragments: 24, H: 24, Codec: codec.Int4, Step: time.Second, Rate: 1e9, Delay: 40 * time.Millisecond, Seed: 1,
	}
}

// Validate refuses what is no run, or too large a one. The error names the field as the command does.
func (c Config) Validate() error {
	switch {
	case !slices.Contains(Plans, c.Plan):
		return fmt.Errorf("plan is %q; use %s", c.Plan, planNames())
	case c.Learners < 2 || c.Learners > MaxLearners:
		return fmt.Errorf("learners is %d; use 2 to %d", c.Learners, MaxLearners)
	case c.LearnersPerRound < 0 || c.LearnersPerRound > c.Learners:
		return fmt.Errorf("learners per round is %d; use 1 to the %d learners", c.LearnersPerRound, c.Learners)
	case c.Levels < 0 || c.Levels > MaxLevels:
		return fmt.Errorf("levels is %d; use 1 to %d", c.Levels, MaxLevels)
	case c.Group < 0 || c.Group == 1 || c.Group > c.Learners:
		return fmt.Errorf("group is %d; use 2 to the %d learners", c.Group, c.Learners)
	case c.Aggregators < 1 || c.Aggregators > MaxAggregators:
		return fmt.Errorf("aggregators is %d; use 1 to %d", c.Aggregators, MaxAggregators)
	case c.Auditors < 0 || c.Auditors > c.Learners:
		return fmt.Errorf("auditors is %d; use 0 to the %d learners", c.Auditors, c.Learners)
	case !(c.Liars >= 0 && c.Liars < 1) || !(c.Gone >= 0 && c.Gone < 1):
		return fmt.Errorf("liars is %g and gone %g; use shares from 0 to below 1", c.Liars, c.Gone)
	}
	if counts := c.counts(); len(counts) > 1 && float64(counts[len(counts)-1])*float64(c.Learners) > maxTransfers {
		return fmt.Errorf("%d merged deltas for each of %d learners are too many to simulate; use a larger group or more levels", counts[len(counts)-1], c.Learners)
	}
	return c.validateLinks()
}

func (c Config) validateLinks() error {
	switch {
	case !(c.Params >= 1 && c.Params <= maxParams):
		return fmt.Errorf("params is %g; use 1 to %g", c.Params, maxParams)
	case c.H < 1 || c.H > maxH:
		return fmt.Errorf("h is %d; use 1 to %d", c.H, maxH)
	case c.Fragments < 1 || float64(c.Fragments) > c.Params:
		return fmt.Errorf("fragments is %d; use 1 to the %g parameters", c.Fragments, c.Params)
	case tune.BytesOf(c.Codec) == 0 || c.Merged != 0 && tune.BytesOf(c.Merged) == 0:
		return fmt.Errorf("codec is %v and merged %v; use one that there is", c.Codec, c.Merged)
	case c.Step <= 0 || c.Delay < 0:
		return fmt.Errorf("step is %v and delay %v; use a step above 0 and a delay of 0 or more", c.Step, c.Delay)
	case !(c.Rate > 0) || math.IsInf(c.Rate, 0):
		return fmt.Errorf("link is %g bits/s; use more than 0", c.Rate)
	}
	return nil
}

func planNames() string {
	names := make([]string, len(Plans))
	for i, p := range Plans {
		names[i] = string(p)
	}
	return strings.Join(names, ", ")
}

// publish is how many learners publish in a round.
func (c Config) publish() int {
	n := c.LearnersPerRound
	if n == 0 && c.Plan == Sampled {
		n = usualLearnersPerRound
	}
	if n == 0 || n > c.Learners {
		return c.Learners
	}
	return n
}

// usualTree is how often a tree merges: less often, it is the plan aggregators.
const usualTree = 2

// levels is how often deltas are merged.
func (c Config) levels() int {
	switch {
	case c.Plan == AllToAll || c.Plan == Sampled:
		return 0
	case c.Levels > 0:
		return c.Levels
	case c.Plan == Tree:
		return usualTree
	}
	return 1
}

// group is how many members one has: with as many merged deltas in a fold a node receives least, of what each has to fetch.
func (c Config) group() int {
	if c.Group > 0 {
		return c.Group
	}
	root := math.Pow(float64(c.publish()), 1/float64(c.levels()+1))
	return max(2, int(math.Ceil(root-1e-9)))
}

// counts are how many deltas there are before, and after each level.
func (c Config) counts() []int {
	counts := []int{c.publish()}
	for range c.levels() {
		last := counts[len(counts)-1]
		counts = append(counts, (last+c.group()-1)/c.group())
	}
	return counts
}

// merged is the codec of merged deltas. A merged delta has values wherever one of its group has: a codec that leaves values out
// would lose most of them, and nobody holds back what is lost.
func (c Config) merged() codec.Kind {
	switch {
	case c.Merged != 0:
		return c.Merged
	case c.Codec.Partial():
		return codec.Int4
	}
	return c.Codec
}

// values are those of a fragment.
func (c Config) values() float64 { return c.Params / float64(c.Fragments) }

// idBytes names a member in a merged delta, and agreementBytes says how well its delta agreed.
const (
	idBytes        = 32
	agreementBytes = 2
)

// payload is the bytes of a delta of a level; 0 has the learners' own.
func (c Config) payload(level int) float64 {
	if level == 0 {
		return c.values() * tune.BytesOf(c.Codec)
	}
	members := float64(c.publish()) / float64(c.counts()[level])
	return c.values()*tune.BytesOf(c.merged()) + members*(idBytes+agreementBytes)
}

// headerBytes are those of a signed header (gossip/wire, W-11 and W-14), and headerCopies how often one arrives in a mesh of 6:
// measured of gossipsub, 8 nodes, at its defaults.
const (
	headerBytes  = 124 + 64
	headerCopies = 5.4
)

// period is how long after the round of one fragment that of the next begins.
func (c Config) period() float64 {
	return float64(c.H) * c.Step.Seconds() / float64(c.Fragments)
}
