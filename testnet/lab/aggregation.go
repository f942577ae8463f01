package main

import (
	"fmt"
	"time"

	"atoll/node/limits"
	"atoll/node/status"
	"atoll/tensor/codec"
	"atoll/testnet/lab/aggregation"
)

const aggregationHelp = `
Simulates how the deltas of a round reach all of up to 65,536 learners. In all-to-all every node receives every delta. In sampled so many learners publish in a round, by rotation, as real runs do. With aggregators a hash draws groups for each round, and members of each who fetch its deltas, merge them and publish one merged delta. In a tree merged deltas are merged again.

Bytes and seconds are of a round of one fragment. down and busiest down are the payloads that a node receives, in the mean and at most. busiest up is what the busiest node sends. link is the share of a node's link that payloads, headers and audits take while rounds follow each other: above 100 % the link does not carry the plan, and its latency grows with each round. latency is the time from the proposal until a node has folded, in the mean, and last that of the last node.

Two aggregators of a group make the same bytes, so anybody can make them again, and --auditors nodes do. one liar is the share of a fold's weight that a lying learner moves at most before its delta is judged. group is what all aggregators of a group move together before somebody makes their delta again. captured is the share of groups whose aggregators are all of --liars.

    lab aggregation --learners 64
    lab aggregation --learners 10000 --plan tree --levels 3 --link 1gbit
    lab aggregation --learners 1024 --plan aggregators --learners-per-round 256 --json`

// AggregationCmd is `lab aggregation`.
type AggregationCmd struct {
	Plan             string        `help:"How deltas reach all learners: ${enum}." enum:"all-to-all,sampled,aggregators,tree,every" default:"every"`
	Learners         int           `help:"Learners." default:"64"`
	LearnersPerRound int           `help:"Learners that publish in a round, by rotation. Default: all, and 16 with the plan sampled." placeholder:"N"`
	Levels           int           `help:"How often deltas are merged, with aggregators and tree. Default: once, and twice in a tree." placeholder:"N"`
	Group            int           `help:"Members of a group. Default: so many that a fold has as many merged deltas." placeholder:"N"`
	Aggregators      int           `help:"Aggregators of a group." default:"2"`
	Auditors         int           `help:"Nodes that make each merged delta again." default:"2"`
	Liars            float64       `help:"Share of the learners that one liar has." default:"0.1"`
	Gone             float64       `help:"Share of the learners that die within a round." default:"0.01"`
	Params           amount        `help:"Parameters of the model." default:"124000000" placeholder:"N"`
	Fragments        int           `help:"Parts of the model." default:"24"`
	H                int           `name:"h" help:"Steps between two rounds of a part." default:"24"`
	Codec            string        `help:"Encoding of deltas: ${enum}." enum:"f32,int4,sparse8,sparse" default:"int4"`
	Merged           string        `help:"Encoding of merged deltas: ${enum}. auto is that of deltas, and int4 where that leaves values out." enum:"auto,f32,int4,sparse8,sparse" default:"auto"`
	Step             time.Duration `help:"Time of a step." default:"1s"`
	Link             limits.Rate   `help:"What each node's link carries each way." default:"1gbit" placeholder:"RATE"`
	Delay            time.Duration `help:"Delay of a link, one way." default:"40ms"`
	Seed             uint64        `help:"Decides what is drawn by chance." default:"1"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*AggregationCmd) Help() string { return aggregationHelp }

// Run simulates one plan, or every plan.
func (c *AggregationCmd) Run(out *console) error {
	plans := []aggregation.Plan{aggregation.Plan(c.Plan)}
	if c.Plan == "every" {
		plans = aggregation.Plans
	}
	rows := [][]string{{"", "deltas", "down", "busiest down", "busiest up", "audits", "link", "latency", "last", "cores", "one liar", "group", "captured"}}
	for _, p := range plans {
		cfg, err := c.config(p)
		if err != nil {
			return badUsage("%v", err)
		}
		r, err := aggregation.Run(cfg)
		if err != nil {
			return badUsage("%v", err)
		}
		if c.JSON {
			if err := out.json(r); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, aggregationRow(r))
	}
	if c.JSON {
		return nil
	}
	return table(out.out, rows...)
}

func aggregationRow(r aggregation.Result) []string {
	audits, group, captured := unknown, unknown, unknown
	if r.Levels > 0 {
		audits, group, captured = megabytes(r.Audits), percent(r.Trust.Group), percent(r.Trust.Captured)
	}
	return []string{
		string(r.Plan), fmt.Sprint(r.Deltas), megabytes(r.Down), megabytes(r.BusiestDown), megabytes(r.BusiestUp), audits,
		percent(r.LinkShare), tenths(r.Latency), tenths(r.Last), fmt.Sprintf("%.2f", r.CoreShare),
		fmt.Sprintf("%.2f %%", 100*r.Trust.Learner), group, captured,
	}
}

func megabytes(x float64) string { return status.ThreeDigits(x/1e6) + " MB" }

func tenths(s float64) string { return fmt.Sprintf("%.1f s", s) }

// config is what the flags describe.
func (c *AggregationCmd) config(p aggregation.Plan) (a aggregation.Config, err error) {
	a = aggregation.Config{
		Plan: p, Learners: c.Learners, LearnersPerRound: c.LearnersPerRound, Levels: c.Levels, Group: c.Group, Aggregators: c.Aggregators,
		Auditors: c.Auditors, Liars: c.Liars, Gone: c.Gone, Params: float64(c.Params), Fragments: c.Fragments, H: c.H,
		Step: c.Step, Rate: float64(c.Link), Delay: c.Delay, Seed: c.Seed,
	}
	if c.Merged != "auto" {
		if a.Merged, err = codec.Parse(c.Merged); err != nil {
			return a, err
		}
	}
	a.Codec, err = codec.Parse(c.Codec)
	return a, err
}
