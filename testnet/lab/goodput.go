package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"atoll/node/limits"
	"atoll/node/status"
	"atoll/testnet/lab/fleet"
)

const goodputHelp = `
Simulates a fleet of chips that fail at random, up to a hundred million of them, and says what share of the tokens is trained that it would train if nothing failed. Data parallelism (dp) restarts all chips for each failure. Elastic data parallelism (elastic) goes on without the failed ones. Decoupled learners (decoupled) step alone, and a central syncer merges them. In atoll no syncer does.

The times of recovery are fitted to the table that was published for Decoupled DiLoCo, whose own are not known. --published prints that table beside this simulation.

up is the share of the time in which at least one learner makes progress. lost are tokens that were trained and did not reach the model. link is what a learner receives of the others, busiest link what the busiest place receives: a syncer, or a learner. merging is what that place spends on it.

    lab goodput --chips 1.2e6 --learners 8 --system dp
    lab goodput --chips 1.2e6 --learners 8 --system all
    lab goodput --chips 4096 --slice 64 --preempt 24h --system all
    lab goodput --chips 800 --speeds 1:1:2:4 --link 1gbit --params 1e9 --partition 12h --system all
    lab goodput --published`

// GoodputCmd is `lab goodput`.
type GoodputCmd struct {
	Chips     amount        `help:"Chips in all learners." default:"1200000" placeholder:"N"`
	Learners  int           `help:"Learners of the same size, each at a place of its own." default:"8"`
	System    string        `help:"How they train together: ${enum}." enum:"dp,elastic,decoupled,atoll,all" default:"atoll"`
	Days      float64       `help:"Length of the run." default:"1"`
	Seed      uint64        `help:"Decides what is drawn by chance." default:"1"`
	MTBF      limits.Span   `name:"mtbf" help:"Mean time between failures of one chip." default:"365.25d"`
	Slice     int           `help:"Chips that a failure takes out." default:"1"`
	Repair    time.Duration `help:"Time until they are back." default:"1h"`
	Preempt   time.Duration `help:"Mean time until a slice is taken away by its owner, as spot instances are. Default: never." placeholder:"24h"`
	Away      time.Duration `help:"Time until another slice is given instead." default:"10m"`
	Step      time.Duration `help:"Time of a step." default:"10s"`
	Slow      float64       `help:"Share of the steps of a slice that take --slow-by times as long." placeholder:"0.001"`
	SlowBy    float64       `help:"How much longer a slow step takes." default:"2"`
	Speeds    speeds        `help:"Speeds of the learners, in turn, such as 1:1:2:4. Default: all alike." placeholder:"S:S"`
	Tokens    amount        `help:"Tokens of a chip's step." default:"1024" placeholder:"N"`
	Params    amount        `help:"Parameters of the model." default:"10e9" placeholder:"N"`
	H         int           `name:"h" help:"Steps between two exchanges of each part of the model, of decoupled and atoll." default:"24"`
	Link      limits.Rate   `help:"What a learner's link to the others carries each way, such as 5gbit. Default: it limits nothing." placeholder:"RATE"`
	Delay     time.Duration `help:"Delay of that link." default:"40ms"`
	Partition time.Duration `help:"Time in which half of the learners do not reach the others, in the middle of the run." placeholder:"12h"`
	Published bool          `help:"Print the published table beside this simulation, and nothing else. Only --seed goes with it."`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*GoodputCmd) Help() string { return goodputHelp }

// speeds are typed as 1:1:2:4.
type speeds []float64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *speeds) UnmarshalText(text []byte) error {
	*s = nil
	for _, word := range strings.Split(string(text), ":") {
		x, err := strconv.ParseFloat(word, 64)
		if err != nil {
			return fmt.Errorf("%q is not a list of speeds; write them like 1:1:2:4", text)
		}
		*s = append(*s, x)
	}
	return nil
}

// Run simulates one system, or all.
func (c *GoodputCmd) Run(out *console) error {
	if c.Published {
		if d := fleet.Default(); float64(c.Chips) != d.Chips || c.Learners != d.Learners || c.System != string(d.System) || c.Days != d.Days {
			return badUsage("--published has chips, learners, systems and days of its own; only --seed and --json go with it")
		}
		return c.compare(out)
	}
	systems := []fleet.System{fleet.System(c.System)}
	if c.System == "all" {
		systems = fleet.Systems
	}
	rows := [][]string{{"", "goodput", "up", "tokens", "lost", "failures", "link", "busiest link", "merging"}}
	for _, s := range systems {
		r, err := fleet.Run(c.fleet(s))
		if err != nil {
			return badUsage("%v", err)
		}
		if c.JSON {
			if err := out.json(r); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{
			string(r.System), percent(r.Goodput), percent(r.Uptime), big(r.Tokens), big(r.Lost), fmt.Sprint(r.Losses),
			linkText(r.LinkBits), linkText(r.BusiestBits), fmt.Sprintf("%.2f cores", r.MergeCores),
		})
	}
	if c.JSON {
		return nil
	}
	return table(out.out, rows...)
}

// linkText writes what a link carries.
func linkText(bits float64) string {
	for _, u := range []struct {
		name string
		bits float64
	}{{"Tbit/s", 1e12}, {"Gbit/s", 1e9}, {"Mbit/s", 1e6}} {
		if bits >= u.bits {
			return fmt.Sprintf("%s %s", status.ThreeDigits(bits/u.bits), u.name)
		}
	}
	return status.ThreeDigits(bits/1e3) + " kbit/s"
}

// fleet is what the flags describe.
func (c *GoodputCmd) fleet(s fleet.System) fleet.Config {
	f := fleet.Default()
	f.Chips, f.Learners, f.System, f.Days, f.Seed = float64(c.Chips), c.Learners, s, c.Days, c.Seed
	f.MTBF, f.Slice, f.Repair, f.Preempt, f.Away = time.Duration(c.MTBF), c.Slice, c.Repair, c.Preempt, c.Away
	f.Step, f.Slow, f.SlowBy, f.Speeds = c.Step, c.Slow, c.SlowBy, c.Speeds
	f.Tokens, f.Params, f.H = float64(c.Tokens), float64(c.Params), c.H
	f.Rate, f.Delay, f.Partition = float64(c.Link), c.Delay, c.Partition
	return f
}

// compare prints the published table, and what is simulated beside it.
func (c *GoodputCmd) compare(out *console) error {
	cells, err := fleet.Compare(c.Seed)
	if err != nil {
		return err
	}
	if c.JSON {
		return out.json(cells)
	}
	rows, off := [][]string{{"", "learners", "chips", "simulated", "published"}}, 0.0
	for _, cell := range cells {
		off += cell.Off() / float64(len(cells))
		rows = append(rows, []string{string(cell.System), fmt.Sprint(cell.Learners), big(cell.Chips), percent(cell.Goodput), percent(cell.Published)})
	}
	if err := table(out.out, rows...); err != nil {
		return err
	}
	out.answer("\n%.1f points apart on average. The times of recovery are fitted to this table.", 100*off)
	return nil
}

const bandwidthHelp = `
Says what link each method needs between places so that a share of the time goes into steps. The model is one of means: an exchange goes on beside some steps and holds up the others. It leaves out delays, losses and what else uses the link.

    lab bandwidth --params 10e9 --step 1s
    lab bandwidth --params 1.24e8 --step 1s --learners 4 --h 24 --fragments 24`

// BandwidthCmd is `lab bandwidth`.
type BandwidthCmd struct {
	Params      amount        `help:"Parameters of the model." required:"" placeholder:"N"`
	Step        time.Duration `help:"Time of a place's step, without the link." required:"" placeholder:"1s"`
	Learners    int           `help:"Places." default:"8"`
	H           int           `name:"h" help:"Steps between two exchanges of each part of the model." default:"24"`
	Fragments   int           `help:"Parts of the model. Default: one for each of the --h steps." placeholder:"N"`
	Utilisation float64       `help:"Share of the time that is to go into steps." default:"0.95"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*BandwidthCmd) Help() string { return bandwidthHelp }

// Run prints the links.
func (c *BandwidthCmd) Run(out *console) error {
	n := fleet.Need{Params: float64(c.Params), Step: c.Step, Learners: c.Learners, H: c.H, Fragments: c.Fragments, Utilisation: c.Utilisation}
	if n.Fragments == 0 {
		n.Fragments = n.H
	}
	links, err := n.Bandwidth()
	if err != nil {
		return badUsage("%v", err)
	}
	if c.JSON {
		return out.json(links)
	}
	rows := [][]string{{"method", "link each way"}}
	for _, l := range links {
		rows = append(rows, []string{l.Method, linkText(l.Bits)})
	}
	return table(out.out, rows...)
}
