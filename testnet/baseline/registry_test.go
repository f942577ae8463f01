package baseline

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// epoch is when tests of the registry begin.
var epoch = time.Unix(1_000_000, 0)

// ids are the first n names.
func ids(n int) (out []wire.PeerID) {
	for i := range n {
		out = append(out, wire.PeerID{byte(i >> 8), byte(i), 1})
	}
	return out
}

// checkAnswers fails on an answer to a question that was not asked, a second one to the
// same, and an order that a member would refuse.
func checkAnswers(fail func(string, ...any), answers []Answer, asked uint64) {
	seen := map[uint64]bool{}
	for _, a := range answers {
		if a.Ask == 0 || a.Ask > asked || seen[a.Ask] {
			fail("question %d is answered without having been asked, or twice", a.Ask)
		}
		seen[a.Ask] = true
		if _, err := decode[Order](encode(a.Order), maxAnswer); err != nil {
			fail("order %+v: %v", a.Order, err)
		}
	}
}

// crowd is what a random test of the registry knows of its nodes.
type crowd struct {
	r       *Registry
	now     time.Time
	asked   uint64
	answers []Answer
	open    map[uint64]int // questions without an answer, by node
	told    []View         // the last view that each node was told of
	label   []Label
	waits   []bool // reported ready, and makes no round until it is told of a view
}

func (c *crowd) take(t *rapid.T) {
	got := c.r.Take()
	c.answers = append(c.answers, got...)
	checkAnswers(t.Fatalf, c.answers, c.asked)
	for _, a := range got {
		node, waits := c.open[a.Ask]
		delete(c.open, a.Ask)
		if v := a.Order.View; v != nil && waits {
			c.begin(t, node, *v)
		}
	}
}

// begin has a node begin a view, as a member would.
func (c *crowd) begin(t *rapid.T, node int, v View) {
	all := ids(len(c.label))
	if v.place(all[node]) < 0 || v.Number <= c.told[node].Number {
		t.Fatalf("node %d was told of view %d with %v after view %d", node, v.Number, v.Members, c.told[node].Number)
	}
	c.told[node], c.waits[node] = v, false
	if v.lacks(all[node]) {
		c.label[node] = v.From
	} else if c.label[node] != v.From {
		t.Fatalf("node %d holds %+v and is to begin view %d with %+v", node, c.label[node], v.Number, v.From)
	}
}

// TestRegistryWithAnyReports plays nodes that report, die, make rounds and are silent by
// chance. What they are told always fits what they hold, and every question is answered
// in time.
func TestRegistryWithAnyReports(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "nodes")
		c := &crowd{r: NewRegistry(someRules(n, 20)), now: epoch, open: map[uint64]int{}, told: make([]View, n), label: make([]Label, n), waits: make([]bool, n)}
		all := ids(n)
		for range rapid.IntRange(1, 120).Draw(t, "events") {
			node := rapid.IntRange(0, n-1).Draw(t, "node")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				how := rapid.IntRange(0, 2).Draw(t, "cut off, dead, dead and not noticed")
				if how < 2 {
					c.r.Gone(c.now, all[node])
				}
				if how > 0 {
					c.told[node], c.label[node], c.waits[node] = View{}, Label{}, false
					maps.DeleteFunc(c.open, func(_ uint64, of int) bool { return of == node })
				}
			case 1, 2:
				c.now = c.now.Add(time.Duration(rapid.IntRange(1, 4000).Draw(t, "ms")) * time.Millisecond)
				c.r.Tick(c.now)
				c.r.Renew(c.now)
			case 3:
				if v := c.told[node]; !c.waits[node] && v.Number == c.r.View().Number && v.Number > 0 && c.label[node].Round == v.From.Round {
					c.label[node] = Label{v.Number, v.From.Round + 1, v.From.Tokens + uint64(len(v.Members))*tokensEach}
				}
			default:
				c.asked++
				c.open[c.asked] = node
				said := Report{Op: opReady, Addr: "x", Label: c.label[node], In: c.told[node].Number}
				if rapid.IntRange(0, 3).Draw(t, "watch") == 0 {
					said.Op = opWatch
				}
				c.waits[node] = c.waits[node] || said.Op == opReady
				for _, id := range all {
					if id != all[node] && rapid.IntRange(0, 9).Draw(t, "connected") > 0 {
						said.Connected = append(said.Connected, id)
					}
				}
				c.r.Report(c.now, all[node], said, c.asked)
			}
			c.take(t)
		}
		c.now = c.now.Add(c.r.cfg.Standby)
		c.r.Renew(c.now)
		c.take(t)
		if len(c.open) > 0 {
			t.Fatalf("questions %v were never answered", c.open)
		}
		for i, s := range c.r.History() {
			if i > 0 && c.r.History()[i-1].Last != s.First {
				t.Fatalf("the history has a gap before view %d", s.Number)
			}
		}
	})
}

// TestRegistryTakesNoMoreThanItsSeats: a node beyond them is told nothing, and what is of
// another run's future as well.
func TestRegistryTakesNoMoreThanItsSeats(t *testing.T) {
	r := NewRegistry(someRules(MaxMembers+1, 1))
	all := ids(MaxMembers + 1)
	for i, id := range all {
		r.Report(epoch, id, Report{Op: opReady, Addr: "x"}, uint64(i+1))
	}
	if len(r.nodes) != MaxMembers {
		t.Errorf("%d nodes", len(r.nodes))
	}
	r = NewRegistry(someRules(1, 1))
	r.Report(epoch, all[0], Report{Op: opReady, Label: Label{View: 1}}, 1)
	r.Report(epoch, all[0], Report{Op: opReady, In: 1}, 2)
	if r.View().Number != 0 {
		t.Error("a view was made of a state that nobody can have")
	}
	if got := r.Take(); len(got) != 2 || got[0].Order.View != nil || got[1].Order.View != nil {
		t.Errorf("told %+v", got)
	}
}

// TestTheFirstViewWaitsForAll, but not for ever.
func TestTheFirstViewWaitsForAll(t *testing.T) {
	r := NewRegistry(someRules(3, 10))
	all := ids(2)
	for i, id := range all {
		r.Report(epoch, id, Report{Op: opReady, Addr: "x", Connected: all}, uint64(i+1))
	}
	r.Tick(epoch.Add(r.cfg.Standby - 1))
	if r.View().Number != 0 {
		t.Fatal("a view was made before all that are expected had come")
	}
	for i, id := range all {
		r.Report(epoch.Add(r.cfg.Start-1), id, Report{Op: opReady, Addr: "x", Connected: all}, uint64(i+3))
	}
	r.Tick(epoch.Add(r.cfg.Start))
	if v := r.View(); v.Number != 1 || !slices.Equal(v.Members, all) {
		t.Errorf("after the time for it: %+v", v)
	}
}
