package testnet

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"atoll/testnet/fault"
)

// scheduled is an event of chaos that is done or still to come.
type scheduled struct {
	fault.Event
	drawn bool // by chance: it ends when chance does, at mendAt
	mends *scheduled
	begun bool // a partition that has not ended yet
	done  bool
	left  bool // done without having happened: chance was over before
}

// chanceFor is how long chance goes on where no limit says how long a world may take. What it
// pauses and partitions is undone by then, so a world may stand still for as long (stallTime).
const chanceFor = 30 * time.Minute

// planChaos turns the spec into events at moments; chance is drawn from the seed.
func planChaos(cfg Config) ([]*scheduled, error) {
	all, err := parseChaos(cfg.Chaos)
	if err != nil {
		return nil, err
	}
	if err := all.inBaseline(cfg.Baseline); err != nil {
		return nil, err
	}
	said, chance, err := all.split(cfg.Nodes)
	if err != nil {
		return nil, err
	}
	d := draw{nodes: cfg.Nodes, joined: said.joins(), rng: rand.New(rand.NewPCG(cfg.Seed, drawStream))}
	plan := d.all(said, chance, orDefault(cfg.Timeout, chanceFor))
	whole := said
	for _, s := range plan {
		whole = append(whole, s.Event)
	}
	if err := whole.checkTargets(cfg.Nodes); err != nil {
		return nil, err
	}
	ls, err := parseLinks(cfg.Link)
	if err == nil {
		err = errors.Join(checkLinkTargets(ls, cfg.Nodes+whole.joins()), whole.checkLinks(ls, cfg.Nodes))
	}
	if err == nil {
		err = checkTargets(cfg, cfg.Nodes+whole.joins(), said)
	}
	if err != nil {
		return nil, err
	}
	if err := said.checkPossible(cfg.Nodes); err != nil {
		return nil, err
	}
	for _, e := range said {
		plan = append(plan, &scheduled{Event: d.decided(e)})
	}
	slices.SortStableFunc(plan, func(a, b *scheduled) int { return cmp.Compare(a.At.After, b.At.After) })
	return plan, nil
}

// split parts what is said, each to one node at one moment, from what is left to chance.
func (c chaos) split(nodes int) (said, chance chaos, err error) {
	for _, e := range c {
		events, err := e.Expand(nodes)
		if err != nil {
			return nil, nil, fmt.Errorf("--chaos: %w", err)
		}
		for _, e := range events {
			begin, end := e.Undone()
			switch {
			case e.Every > 0:
				chance = append(chance, e)
			case end != nil && e.Verb == fault.Partition: // which is one event with its end
				begin.Until = &end.At
				said = append(said, begin)
			case end != nil:
				said = append(said, begin, *end)
			default:
				said = append(said, begin)
			}
		}
	}
	return said, chance, nil
}

// checkPossible refuses a schedule that cannot happen as it is written: a node
// that leaves twice, or nobody left to go on. Where moments cannot be compared,
// or chance takes the node, only the end is looked at.
func (c chaos) checkPossible(nodes int) error {
	if c.leftAtEnd(nodes) <= 0 {
		return fmt.Errorf("--chaos: no node is left at the end; let one stay")
	}
	if !c.ordered() {
		return nil
	}
	sorted := slices.Clone(c)
	slices.SortStableFunc(sorted, func(a, b fault.Event) int { return compare(a.At, b.At) })
	state := map[int]string{}
	running := nodes
	for i, e := range sorted {
		if next := after[e.Verb]; next != nil {
			now := orDefault(state[e.Node()], "running")
			then, ok := next[now]
			if !ok {
				return fmt.Errorf("--chaos %q: node %d is %s then", e, e.Node(), now)
			}
			state[e.Node()] = then
		}
		if running += gain[e.Verb]; running == 0 && !sorted[i+1:].startsAgain() {
			return fmt.Errorf("--chaos %q: no node is left then; let one stay, or start one at a time (@30s) afterwards", e)
		}
	}
	return nil
}

// startsAgain says whether a node comes back by the clock: with nobody there no share of
// the tokens is reached, and a node that joins finds no run.
func (c chaos) startsAgain() bool {
	for _, e := range c {
		if e.Verb == fault.Start && !e.At.ByShare {
			return true
		}
		if e.Verb == fault.Join {
			return false
		}
	}
	return false
}

// after is what a node is after an event, by what it may be before; verbs that
// are not here change nothing.
var after = map[fault.Verb]map[string]string{
	fault.Leave:   {"running": "gone", "paused": "gone"},
	fault.Kill:    {"running": "gone", "paused": "gone"},
	fault.Start:   {"gone": "running"},
	fault.Pause:   {"running": "paused"},
	fault.Resume:  {"paused": "running"},
	fault.Corrupt: {"running": "running"},

	fault.KillLearner: {"running": "running"},
}

// gain is by how many nodes an event makes the world larger.
var gain = map[fault.Verb]int{fault.Join: 1, fault.Start: 1, fault.Leave: -1, fault.Kill: -1}

func (c chaos) leftAtEnd(nodes int) int {
	for _, e := range c {
		nodes += gain[e.Verb]
	}
	return nodes
}

// ordered says whether it is known which event comes before which other and
// whom each is about.
func (c chaos) ordered() bool {
	for _, e := range c {
		if e.At.ByShare != c[0].At.ByShare || len(e.Nodes) > 0 && e.Node() == fault.Any {
			return false
		}
	}
	return true
}

// compare orders moments of one kind.
func compare(a, b fault.When) int {
	return cmp.Or(cmp.Compare(a.Percent, b.Percent), cmp.Compare(a.After, b.After))
}
