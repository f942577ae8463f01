package testnet

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// scheduled is an event of chaos that is done or still to come.
type scheduled struct {
	Event
	drawn bool // by chance: it ends when chance does, at healAt
	mends *scheduled
	begun bool // a partition that has not healed yet
	done  bool
	left  bool // done without having happened: chance was over before
}

// chanceFor is how long chance goes on where no limit says how long a world may take; what it pauses and parts is whole again by then, so
// that a world may stand still for as long (stallTime).
const chanceFor = 30 * time.Minute

// planChaos turns the spec into events at moments, those of chance drawn from
// the seed.
func planChaos(cfg Config) ([]*scheduled, error) {
	chaos, err := ParseChaos(cfg.Chaos)
	if err != nil {
		return nil, err
	}
	if err := chaos.inThisVersion(); err != nil {
		return nil, err
	}
	if err := chaos.inBaseline(cfg.Baseline); err != nil {
		return nil, err
	}
	said, chance := chaos.split()
	d := draw{nodes: cfg.Nodes, joined: said.joins(), rng: rand.New(rand.NewPCG(cfg.Seed, drawStream))}
	plan := d.all(said, chance, orDefault(cfg.Timeout, chanceFor))
	whole := said
	for _, s := range plan {
		whole = append(whole, s.Event)
	}
	if err := whole.checkTargets(cfg.Nodes); err != nil {
		return nil, err
	}
	if err := said.checkPossible(cfg.Nodes); err != nil {
		return nil, err
	}
	for _, e := range said {
		plan = append(plan, &scheduled{Event: d.settled(e)})
	}
	slices.SortStableFunc(plan, func(a, b *scheduled) int { return cmp.Compare(a.At.After, b.At.After) })
	return plan, nil
}

// split parts what is said from what is left to chance.
func (c Chaos) split() (said, chance Chaos) {
	for _, e := range c {
		if e.Every > 0 {
			chance = append(chance, e)
		} else {
			said = append(said, e)
		}
	}
	return said, chance
}

// checkPossible refuses a schedule that cannot happen as it is written: a node
// that leaves twice, or nobody left to go on. Where moments cannot be compared,
// or chance takes the node, only the end is looked at.
func (c Chaos) checkPossible(nodes int) error {
	if c.leftAtEnd(nodes) <= 0 {
		return fmt.Errorf("--chaos: no node is left at the end; let one stay")
	}
	if !c.ordered() {
		return nil
	}
	sorted := slices.Clone(c)
	slices.SortStableFunc(sorted, func(a, b Event) int { return a.At.compare(b.At) })
	state := map[int]string{}
	running := nodes
	for i, e := range sorted {
		if next := after[e.Verb]; next != nil {
			now := orDefault(state[e.Node], "running")
			then, ok := next[now]
			if !ok {
				return fmt.Errorf("--chaos %q: node %d is %s then", e, e.Node, now)
			}
			state[e.Node] = then
		}
		if running += gain[e.Verb]; running == 0 && !sorted[i+1:].startsAgain() {
			return fmt.Errorf("--chaos %q: no node is left then; let one stay, or start one at a time (@30s) afterwards", e)
		}
	}
	return nil
}

// startsAgain says whether a node comes back whatever the others do: with nobody
// there no share of the tokens is reached, and whoever joins finds no run.
func (c Chaos) startsAgain() bool {
	for _, e := range c {
		if e.Verb == Start && !e.At.ByShare {
			return true
		}
		if e.Verb == Join {
			return false
		}
	}
	return false
}

// after is what a node is after an event, by what it may be before; verbs that
// are not here change nothing.
var after = map[Verb]map[string]string{
	Leave:   {"running": "gone", "paused": "gone"},
	Kill:    {"running": "gone", "paused": "gone"},
	Start:   {"gone": "running"},
	Pause:   {"running": "paused"},
	Resume:  {"paused": "running"},
	Corrupt: {"running": "running"},
}

// gain is by how many nodes an event makes the world larger.
var gain = map[Verb]int{Join: 1, Start: 1, Leave: -1, Kill: -1}

func (c Chaos) leftAtEnd(nodes int) int {
	for _, e := range c {
		nodes += gain[e.Verb]
	}
	return nodes
}

// ordered says whether it is known which event comes before which other and
// whom each is about.
func (c Chaos) ordered() bool {
	for _, e := range c {
		if e.At.ByShare != c[0].At.ByShare || e.Node == Any && e.Verb != Partition {
			return false
		}
	}
	return true
}

// compare orders moments of one kind.
func (w When) compare(other When) int {
	return cmp.Or(cmp.Compare(w.Percent, other.Percent), cmp.Compare(w.After, other.After))
}

// at is a moment by the clock.
func at(d time.Duration) When { return When{After: d} }
