package sim

import (
	"strings"
	"testing"

	"atoll/testnet/fault"
)

// A joiner that speaks another protocol or is of another run is refused by name, gives up, and disturbs nobody.
func TestStrangersAreRefusedByName(t *testing.T) {
	t.Parallel()
	for field, v := range map[string]Version{
		"protocol": {Protocol: 1}, "run": {OtherRun: true},
	} {
		s := withFaults(t, 3, 30, "")
		s.Faults = []Fault{{At: 3000, Kind: fault.Join, Spec: NodeSpec{Version: v}}}
		w, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		w.Finish()
		if w.Err() != nil {
			t.Error(w.Err())
		}
		if n := w.nodes[3]; n.up || !n.gone || n.Steps != 0 {
			t.Errorf("%s: the stranger is up %v and took %d steps", field, n.up, n.Steps)
		}
		for i := range 3 {
			if !strings.HasPrefix(w.refusals[pair{i, 3}], field+": we have ") {
				t.Errorf("node %d says %q, want a word about the %s", i, w.refusals[pair{i, 3}], field)
			}
		}
	}
}

// Two versions that speak one protocol go on together, whatever else the newer
// one says of itself.
func TestNewerVersionIsOneOfThem(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 3, 40, "kill 1 @5s, start 1 @6s")
	newer := NodeSpec{Version: Version{Newer: true}}
	s.Faults = append(s.Faults, Fault{At: 4000, Kind: fault.Upgrade, Node: 1, Spec: newer}, Fault{At: 7000, Kind: fault.Join, Spec: newer})
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.Finish()
	if w.Err() != nil || len(w.refusals) != 0 {
		t.Errorf("%v, refusals %v", w.Err(), w.refusals)
	}
}
