package sim

import (
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
