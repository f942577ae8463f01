package sim

import (
	"context"
	"errors"
	"reflect"
	"testing"
)

func TestParseFaults(t *testing.T) {
	got, err := ParseFaults("crash 1 @2s, partition 0+2 @3s,, heal @1500ms, cut 0>1+2 @1s, slow 2 x4 @0s, skew 1 x-5000 @1s, join @5s")
	want := []Fault{
		{Kind: Crash, Node: 1, At: 2000},
		{Kind: Partition, Others: []int{0, 2}, At: 3000},
		{Kind: Heal, At: 1500},
		{Kind: Cut, Node: 0, Others: []int{1, 2}, At: 1000},
		{Kind: Slow, Node: 2, Factor: 4},
		{Kind: Skew, Node: 1, Factor: -5000, At: 1000},
		{Kind: Join, At: 5000},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestParseFaultsRefuses(t *testing.T) {
	for _, text := range []string{
		"sneeze 1 @2s", "crash @2s", "crash x @2s", "crash -1 @2s", "crash 1", "crash 1 @-2s", "crash 1 @soon",
		"heal 1 @2s", "cut 1 @2s", "cut 1>x @2s", "partition 1+ @2s", "slow 1 xx @2s", "crash 1 2 @2s",
	} {
		if got, err := ParseFaults(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}

// A fault that befalls a node which the world never has is a slip of whoever wrote it.
func TestCheckTargets(t *testing.T) {
	for text, want := range map[string]string{
		"crash 3 @2s":                 "",
		"join @1s, crash 4 @2s":       "",
		"heal @2s":                    "",
		"crash 4 @2s":                 "fault crash: there is no node 4; use 0 to 3",
		"join @1s, partition 0+5 @2s": "fault partition: there is no node 5; use 0 to 4",
		"cut 0>7 @2s":                 "fault cut: there is no node 7; use 0 to 3",
	} {
		faults, err := ParseFaults(text)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := CheckTargets(4, faults); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
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
