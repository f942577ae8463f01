package thin

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/tensor/codec"
	"atoll/tensor/llama"
	"atoll/testnet/lab/trials"
	"atoll/testnet/sim"
)

// Cell is a run of the simulator at what tune.Choose chooses for its links.
type Cell struct {
	Nodes   int     `json:"nodes"`
	Mbit    float64 `json:"link_mbit_per_s"`
	DelayMs int64   `json:"delay_ms"`

	Codec     string  `json:"codec"`
	H         int     `json:"h"`
	Fragments int     `json:"fragments"`
	Promised  float64 `json:"promised_link_share"`
	Fixed     bool    `json:"fixed,omitempty"` // H was asked for: it may not fit the link

	Share     float64 `json:"link_share"`     // of payloads
	AllShare  float64 `json:"all_link_share"` // of all bytes
	Goodput   float64 `json:"goodput"`        // tokens folded of those that learners could step, between start and end
	Late      float64 `json:"late"`           // of deltas at other nodes
	Discarded float64 `json:"discarded"`      // of tokens
	Over      float64 `json:"over_budget"`
	Planned   int     `json:"planned_steps"` // the most that a learner planned for a delta
	EndS      float64 `json:"end_s"`         // from the last token of the budget to the end
}

// Targets of a cell.
const (
	shareSlack   = 0.2 // of the promised share
	leastGoodput = 0.95
	mostLate     = 0.1
	mostOver     = 0.01
)

// Missed names the targets that a cell misses.
func (c Cell) Missed() (missed []string) {
	for _, f := range []struct {
		name string
		met  bool
	}{
		{"share", c.Fixed || trials.Between(1-shareSlack, 1+shareSlack).Met(c.Share/c.Promised)},
		{"goodput", c.Goodput >= leastGoodput},
		{"late", c.Late <= mostLate},
		{"discarded", c.Discarded == 0},
		{"budget", c.Over <= mostOver},
		{"plan", c.Fixed || c.Planned <= c.H},
	} {
		if !f.met {
			missed = append(missed, f.name)
		}
	}
	return missed
}

// CellsOf are the links of all cells.
func CellsOf() (cells []Cell) {
	for _, nodes := range []int{4, 8} {
		for _, mbit := range []float64{100, 50, 20, 10, 5} {
			for _, ms := range []int64{10, 40, 150} {
				cells = append(cells, Cell{Nodes: nodes, Mbit: mbit, DelayMs: ms})
			}
		}
	}
	return cells
}

// Lab is how cells are played.
type Lab struct {
	Step   time.Duration // of every learner
	Rounds int           // of each fragment
	Shrink int           // so many times smaller than small is the model that trains; its payloads count as those of small
	Seed   uint64
	H      int // of all cells, with int4; 0 = what suits the links
}

// Usual is a lab in which all cells take a few minutes.
func Usual() Lab { return Lab{Step: 320 * time.Millisecond, Rounds: 16, Shrink: 10, Seed: 1} }

// Play plays a cell.
func (l Lab) Play(ctx context.Context, c Cell) (Cell, error) {
	s, choice, err := l.scenario(c)
	if err != nil {
		return c, err
	}
	c.Codec, c.H, c.Fragments, c.Promised, c.Fixed = choice.Codec.String(), choice.H, choice.Fragments, choice.LinkShare, l.H > 0
	w, err := sim.New(s)
	if err != nil {
		return c, err
	}
	g := gauge{w: w, plan: &c.Planned}
	w.Watch(lookMs, g.look)
	w.Finish()
	if err := w.Err(); err != nil {
		return c, fmt.Errorf("%v: %w", c, err)
	}
	l.measure(&c, w, g, s)
	return c, ctx.Err()
}

// scenario is the world of a cell.
func (l Lab) scenario(c Cell) (s sim.Scenario, choice tune.Choice, err error) {
	bytes := bytesPerSecond(c.Mbit)
	if choice, err = l.choose(c.Nodes, bytes); err != nil {
		return s, choice, err
	}
	tokens := uint64(l.Rounds * choice.H * c.Nodes * stepTokens)
	p, err := l.params(c, choice, tokens)
	if err != nil {
		return s, choice, err
	}
	task := newTask(l.Shrink)
	s = sim.Scenario{
		Seed: l.Seed, Params: p, Founders: make([]sim.NodeSpec, c.Nodes), Task: task, PayloadScale: task.scale(), Lean: true,
		Link:   sim.Link{LatencyMs: c.DelayMs, BytesMs: bytes / 1000, DownMs: bytes / 1000},
		StepMs: l.Step.Milliseconds(), HeartbeatMs: heartbeatMs, LimitMs: int64(patience*l.Rounds*choice.H)*l.Step.Milliseconds() + endMs,
	}
	return s, choice, nil
}

// choose is what suits the links, or what the lab has.
func (l Lab) choose(nodes int, bytes float64) (tune.Choice, error) {
	means := tune.Means{
		Params: llama.Small.Params(), Tensors: len(llama.Small.Specs()), Learners: nodes, StepSeconds: l.Step.Seconds(), BytesPerSecond: bytes,
	}
	if l.H == 0 {
		return tune.Choose(means)
	}
	means.Codec, means.BytesPerSecond = codec.Int4, noLimit
	choice, err := tune.Choose(means)
	choice.LinkShare = choice.BytesPerSecond / bytes * float64(choice.H) / float64(l.H)
	choice.H, choice.Fragments = l.H, min(l.H, usualFragments)
	return choice, err
}

// noLimit is a link on which every H fits.
const noLimit = 1e12

// Times of the worlds of cells.
const (
	heartbeatMs = 500 // as in real runs
	lookMs      = 500
	patience    = 4       // so many times what the steps take is the longest run
	endMs       = 600_000 // and so much more its end
)

// params are what a genesis of the model small has, with the choice.
func (l Lab) params(c Cell, choice tune.Choice, tokens uint64) (outer.Params, error) {
	g, _, err := genesis.Spec{
		Model: llama.Small, Tokens: tokens, Seed: l.Seed, CreatedMs: sim.Start, Codec: choice.Codec, Fragments: choice.Fragments, H: choice.H, Learners: c.Nodes,
	}.Make()
	return g.OuterParams(), err
}

// gauge looks at a world now and then.
type gauge struct {
	w     *sim.World
	plan  *int
	looks []look
}

type look struct {
	at           int64 // ms
	tokens       uint64
	bytes, heavy int64 // received by all nodes; of them payloads
}

func (g *gauge) look() {
	l := look{at: g.w.Now()}
	for _, n := range g.w.Nodes() {
		l.tokens = max(l.tokens, n.Machine().View().FoldedTokens())
		l.bytes += n.BytesIn
		l.heavy += n.PayloadIn
		*g.plan = max(*g.plan, n.Machine().Rounds().Plan().Steps)
	}
	g.looks = append(g.looks, l)
}

// when is the first look at which so many tokens were folded.
func (g gauge) when(tokens float64) look {
	for _, l := range g.looks {
		if float64(l.tokens) >= tokens {
			return l
		}
	}
	return g.looks[len(g.looks)-1]
}

// Shares of the budget between which a run is neither at its start nor at its end.
const steadyFrom, steadyTo = 0.25, 0.9

// measure fills in what a world came to.
func (l Lab) measure(c *Cell, w *sim.World, g gauge, s sim.Scenario) {
	budget := float64(s.Params.Budget)
	from, to := g.when(steadyFrom*budget), g.when(steadyTo*budget)
	ms := float64(to.at - from.at)
	link := s.Link.BytesMs * float64(c.Nodes) * ms
	c.Share, c.AllShare = float64(to.heavy-from.heavy)/link, float64(to.bytes-from.bytes)/link
	c.Goodput = float64(to.tokens-from.tokens) / (float64(c.Nodes*stepTokens) * ms / float64(s.StepMs))
	c.EndS = float64(w.Now()-g.when(budget).at) / 1000
	var late, discarded float64
	reports, _ := w.Reports()
	for _, r := range reports {
		late += float64(r.Late)
		discarded += r.Tokens.Discarded
	}
	folded := float64(g.looks[len(g.looks)-1].tokens)
	c.Over, c.Discarded = folded/budget-1, discarded/folded
	if chain, ok := w.Chain(); ok {
		c.Late = late / float64(chain.Deltas*(c.Nodes-1))
	}
}

// cellHead is the head of the table of cells.
const cellHead = "| nodes | link | delay | codec | H | fragments | promised | payloads | all | goodput | late | discarded | over | planned | end | missed |\n" +
	"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"

func (c Cell) row() string {
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	return fmt.Sprintf("| %d | %g Mbit/s | %d ms | %s | %d | %d | %s | %s | %s | %s | %s | %s | %s | %d | %.0f s | %s |\n", c.Nodes, c.Mbit, c.DelayMs, c.Codec, c.H, c.Fragments,
		percent(c.Promised), percent(c.Share), percent(c.AllShare), percent(c.Goodput), percent(c.Late), percent(c.Discarded), percent(c.Over), c.Planned, c.EndS,
		strings.Join(c.Missed(), ", "))
}

// Cells plays cells and writes a row of a table for each. It returns them.
func (l Lab) Cells(ctx context.Context, cells []Cell, out io.Writer) (played []Cell, err error) {
	fmt.Fprint(out, cellHead)
	for _, c := range cells {
		c, err := l.Play(ctx, c)
		if err != nil {
			return played, err
		}
		fmt.Fprint(out, c.row())
		played = append(played, c)
	}
	return played, nil
}
