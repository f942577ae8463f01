package testnet

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"atoll/testnet/fault"
)

// planned is what planChaos makes of a spec for a number of nodes.
func planned(t rapid.TB, spec string, nodes int, seed uint64, horizon time.Duration) []*scheduled {
	t.Helper()
	plan, err := planChaos(Config{Nodes: nodes, Chaos: spec, Seed: seed, Timeout: horizon})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

func texts(plan []*scheduled) (out []string) {
	for _, s := range plan {
		out = append(out, s.String())
	}
	return out
}

func TestRatesBecomeEvents(t *testing.T) {
	got := texts(planned(t, "kill 1 every 20s for 5s, slow 0 x4 every 30s for 10s", 2, 1, time.Minute))
	want := []string{
		"kill 1 @20s", "start 1 @25s", "slow 0 x4 @30s", "slow 0 x1 @40s", "kill 1 @40s", "start 1 @45s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without a limit of time chance goes on for a while of its own.
func TestChanceWithoutALimit(t *testing.T) {
	plan := planned(t, "kill 1 every 60s for 10s", 2, 1, 0)
	if n := int(chanceFor/time.Minute) - 1; len(plan) < 2*(n-1) || len(plan) > 2*(n+1) {
		t.Errorf("%d events: %q", len(plan), texts(plan))
	}
	for _, s := range plan {
		if s.At.After > chanceFor+10*time.Second {
			t.Errorf("%v is late", s)
		}
	}
}

// Nodes that the spec names are left to what it says of them, and the last node
// that chance could take stays.
func TestChanceLeavesNamedNodesAlone(t *testing.T) {
	for _, s := range planned(t, "leave 0 @1s, kill any every 10s for 9s", 3, 1, 10*time.Minute) {
		if s.drawn && s.Node() == 0 {
			t.Errorf("%v", s)
		}
	}
	if plan := planned(t, "leave 0 @1s, kill any every 10s for 9s", 2, 1, 10*time.Minute); len(plan) != 1 {
		t.Errorf("the last node is to be killed: %q", texts(plan))
	}
}

func TestPartitionOfAnySplitsAllNodes(t *testing.T) {
	plan := planned(t, "partition any @5s..9s", 4, 3, time.Minute)
	nodes := slices.Concat(plan[0].Groups...)
	slices.Sort(nodes)
	if len(plan[0].Groups) != 2 || !slices.Equal(nodes, []int{0, 1, 2, 3}) {
		t.Errorf("%q", texts(plan))
	}
}

func TestPlanFollowsFromTheSeed(t *testing.T) {
	const spec = "random every 5s"
	one, again, other := planned(t, spec, 4, 7, time.Hour), planned(t, spec, 4, 7, time.Hour), planned(t, spec, 4, 8, time.Hour)
	if !reflect.DeepEqual(texts(one), texts(again)) {
		t.Error("one seed, two plans")
	}
	if reflect.DeepEqual(texts(one), texts(other)) {
		t.Error("two seeds, one plan")
	}
	seen := map[fault.Verb]bool{}
	for _, s := range one {
		seen[s.Verb] = true
	}
	for _, v := range append([]fault.Verb{fault.Start, fault.Resume}, randomVerbs...) {
		if !seen[v] {
			t.Errorf("an hour of random chaos never had %s", v)
		}
	}
}

// stage plays a plan: what each node is.
type stage struct {
	t     *rapid.T
	state map[int]string
	nodes int
}

func (s *stage) there() (n int) {
	for i := range s.nodes {
		if s.state[i] == "" {
			n++
		}
	}
	return n
}

func (s *stage) play(e fault.Event) {
	from, to := "", map[fault.Verb]string{fault.Kill: "gone", fault.Leave: "left", fault.Pause: "paused"}[e.Verb]
	switch e.Verb {
	case fault.Join:
		s.nodes++
		return
	case fault.Partition, fault.Slow:
		return
	case fault.Start:
		from = "gone"
	case fault.Resume:
		from = "paused"
	}
	if s.state[e.Node()] != from || e.Node() >= s.nodes {
		s.t.Fatalf("%v: the node is %q", e, s.state[e.Node()])
	}
	if s.state[e.Node()] = to; s.there() == 0 {
		s.t.Fatalf("%v: nobody is there", e)
	}
}

// TestRandomChaosIsPossible plays plans: each event finds its node in a state for
// it, one node is always there, and what is broken is mended by a later event.
func TestRandomChaosIsPossible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 8).Draw(t, "nodes")
		spec := fmt.Sprintf("random every %ds", rapid.IntRange(1, 20).Draw(t, "every"))
		if rapid.Bool().Draw(t, "rates") {
			spec += ", kill any every 11s for 10s, pause any every 7s for 3s, partition any every 13s for 12s"
		}
		plan := planned(t, spec, nodes, rapid.Uint64().Draw(t, "seed"), 10*time.Minute)
		s := &stage{t: t, state: map[int]string{}, nodes: nodes}
		var parted time.Duration
		for _, e := range plan {
			s.play(e.Event)
			if e.mends != nil && e.mends.At.After >= e.At.After {
				t.Fatalf("%v mends %v", e, e.mends)
			}
			if e.Verb == fault.Partition {
				if e.At.After < parted {
					t.Fatalf("%v: the network is parted until %v", e, parted)
				}
				parted = e.Until.After
			}
		}
		for node, state := range s.state {
			if state == "gone" || state == "paused" {
				t.Fatalf("node %d is %s at the end", node, state)
			}
		}
	})
}
