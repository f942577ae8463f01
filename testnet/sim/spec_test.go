package sim

import (
	"atoll/testnet/fault"
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("kill 1 @2s, partition 0+2 @3s, merge @1500ms, cut 0>1+2 @1s, slow 2 x4 @0s, skew 1 by -5s @1s, join 2 slow 3 @5s, partition 0|1 @4s, network latency 1s @1s for 1s, corrupt 1 @3s, link 0,1 up=8mbit,delay=40ms,jitter=10ms @7s..8s", 3)
	want := []Fault{
		{Kind: fault.Kill, Node: 1, At: 2000},
		{Kind: fault.Partition, Others: []int{0, 2}, At: 3000},
		{Kind: fault.Merge, At: 1500},
		{Kind: fault.Cut, Node: 0, Others: []int{1, 2}, At: 1000},
		{Kind: fault.Slow, Node: 2, Factor: 4},
		{Kind: fault.Skew, Node: 1, Factor: -5000, At: 1000},
		{Kind: fault.Join, At: 5000, Spec: NodeSpec{Slow: 3}},
		{Kind: fault.Join, At: 5000, Spec: NodeSpec{Slow: 3}},
		{Kind: fault.Partition, Parts: [][]int{{0}, {1}}, At: 4000},
		{Kind: fault.Network, At: 1000, Link: Link{LatencyMs: 1000}},
		{Kind: fault.Network, At: 2000},
		{Kind: fault.Corrupt, Node: 1, At: 3000},
		{Kind: fault.Link, Node: 0, At: 7000, Link: Link{LatencyMs: 30, JitterMs: 20, BytesMs: 1000}},
		{Kind: fault.Link, Node: 0, At: 8000},
		{Kind: fault.Link, Node: 1, At: 7000, Link: Link{LatencyMs: 30, JitterMs: 20, BytesMs: 1000}},
		{Kind: fault.Link, Node: 1, At: 8000},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A world refuses by name what it cannot execute, and a node that it does not have then.
func TestParseFaultsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"sneeze 1 @2s":                `"sneeze": there is no such event`,
		"kill any @2s":                `"kill any @2s": the simulator leaves nothing to chance`,
		"kill 1 @33%":                 "the simulator has no shares of the tokens",
		"kill 1 every 5s for 1s":      "the simulator needs to know when this ends: write every 5s from TIME to TIME",
		"loss 1 1% @0s":               "the simulator knows no loss: write network, such as network latency 20ms loss 1% @0s",
		"attack signflip 1 @0s":       "the simulator knows no attack: give the node",
		"random":                      "the simulator knows no random: use one of kill,",
		"slow 1 x1.5 @0s":             `"x1.5": the simulator takes whole factors: write x2`,
		"join fast @1s":               `"fast": nodes have no such trait; use slow,`,
		"link 1 speed=3mbit @1s":      `"speed=3mbit": link "speed=3mbit": "speed=3mbit" is no trait of a link`,
		"network colour @1s":          `"colour": links have no such trait`,
		"kill 3 @2s":                  "",
		"join @1s, kill 4 @2s":        "",
		"merge @2s":                   "",
		"kill 4 @2s":                  "kill @2s: there is no node 4 then; use 0 to 3",
		"join @3s, kill 4 @2s":        "kill @2s: there is no node 4 then; use 0 to 3",
		"join @1s, partition 0+5 @2s": "partition @2s: there is no node 5 then; use 0 to 4",
		"partition 0|6 @2s":           "partition @2s: there is no node 6 then; use 0 to 3",
		"cut 0>7 @2s":                 "cut @2s: there is no node 7 then; use 0 to 3",
	} {
		got, err := ParseFaults(text, 4)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

// Who interrupts a world gets no result of half of it.
func TestRunIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if r, err := RunContext(ctx, Explore(1)); !errors.Is(err, context.Canceled) || r.Rounds != 0 {
		t.Errorf("%v and %d rounds", err, r.Rounds)
	}
}
