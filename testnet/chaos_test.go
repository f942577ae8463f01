package testnet

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func seconds(n int) When      { return When{After: time.Duration(n) * time.Second} }
func percent(p float64) When  { return When{ByShare: true, Percent: p} }
func until(w When) (at *When) { return &w }

func TestParseChaos(t *testing.T) {
	for _, c := range []struct {
		spec string
		want Chaos
		text string // canonical; "" = spec
	}{
		{"", nil, ""},
		{"kill 1 @20s", Chaos{{Verb: Kill, Node: 1, At: seconds(20)}}, ""},
		{"start 1 @30s", Chaos{{Verb: Start, Node: 1, At: seconds(30)}}, ""},
		{"join @33%", Chaos{{Verb: Join, At: percent(33)}}, ""},
		{"leave 2 @60.5%", Chaos{{Verb: Leave, Node: 2, At: percent(60.5)}}, ""},
		{"pause 0 @10s,resume 0 @20s", Chaos{{Verb: Pause, At: seconds(10)}, {Verb: Resume, At: seconds(20)}}, "pause 0 @10s, resume 0 @20s"},
		{"slow 3 x4 @0s", Chaos{{Verb: Slow, Node: 3, Factor: 4}}, ""},
		{"partition 0,1|2,3 @40s..80s", Chaos{{Verb: Partition, Groups: [][]int{{0, 1}, {2, 3}}, At: seconds(40), Until: until(seconds(80))}}, "partition 0,1|2,3 @40s..1m20s"},
		{"partition 0|1|2 @10%..20%, join @1m", Chaos{{Verb: Partition, Groups: [][]int{{0}, {1}, {2}}, At: percent(10), Until: until(percent(20))}, {Verb: Join, At: seconds(60)}}, "partition 0|1|2 @10%..20%, join @1m0s"},
		{"kill any every 60s down 10s", Chaos{{Verb: Kill, Node: Any, Every: time.Minute, Down: 10 * time.Second}}, "kill any every 1m0s down 10s"},
		{"pause 1 every 45s down 20s", Chaos{{Verb: Pause, Node: 1, Every: 45 * time.Second, Down: 20 * time.Second}}, ""},
		{"slow any x3 every 45s down 20s", Chaos{{Verb: Slow, Node: Any, Factor: 3, Every: 45 * time.Second, Down: 20 * time.Second}}, ""},
		{"partition any every 90s down 15s", Chaos{{Verb: Partition, Node: Any, Every: 90 * time.Second, Down: 15 * time.Second}}, "partition any every 1m30s down 15s"},
		{"partition any @40s..50s", Chaos{{Verb: Partition, Node: Any, At: seconds(40), Until: until(seconds(50))}}, ""},
		{"random", Chaos{{Verb: Random, Every: usualEvery}}, "random every 10s"},
		{"random every 5s", Chaos{{Verb: Random, Every: 5 * time.Second}}, ""},
		{"loss 2 1% @0s", Chaos{{Verb: Loss, Node: 2, Percent: 1}}, ""},
		{"corrupt 1 @50%", Chaos{{Verb: Corrupt, Node: 1, At: percent(50)}}, ""},
		{"byzantine signflip 1 @0s", Chaos{{Verb: Byzantine, Attack: "signflip", Node: 1}}, ""},
		{"  leave   any  @5s ", Chaos{{Verb: Leave, Node: Any, At: seconds(5)}}, "leave any @5s"},
	} {
		got, err := ParseChaos(c.spec)
		if err != nil {
			t.Errorf("%q: %v", c.spec, err)
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, want %+v", c.spec, got, c.want)
		}
		if want := strings.TrimSpace(c.text); got.String() != want && (want != "" || got.String() != c.spec) {
			t.Errorf("%q: canonical %q, want %q", c.spec, got, want)
		}
	}
}

func TestParseChaosErrors(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{",", "the event is empty"},
		{"kill 1 @20s,", "the event is empty"},
		{"explode 1 @20s", `unknown verb "explode"`},
		{"kill 1", "does not say when"},
		{"kill @20s", "write kill 1 @20s"},
		{"kill one @20s", `node is "one"`},
		{"kill 1 @soon", `WHEN is "soon"`},
		{"kill 1 @-1s", `WHEN is "-1s"`},
		{"kill 1 @101%", "not a number from 0 to 100"},
		{"kill 1 @NaN%", "not a number from 0 to 100"},
		{"kill 1 @1s..2s", "only partition has a range"},
		{"partition 0|1 @1s", "only partition has a range"},
		{"partition 0,1 @1s..2s", "one group"},
		{"partition 0|0 @1s..2s", "named twice"},
		{"partition 0|x @1s..2s", `node is "x"`},
		{"leave any every 60s down 10s", "cannot read"},
		{"kill any every 500ms down 10ms", "at least 1s"},
		{"random @5s", "write random, or random every 10s"},
		{"random 1 every 5s", "write random, or random every 10s"},
		{"partition any @5s", "only partition has a range"},
		{"kill any every 0s down 10s", `every "0s"`},
		{"kill any every 10s down 10s", "shorter than every"},
		{"slow 1 4 @1s", "does not begin with x"},
		{"slow 1 x0.5 @1s", "not a number from 1"},
		{"loss 1 1 @1s", "does not end in %"},
		{"byzantine SignFlip 1 @1s", "small letters"},
		{"join 4 @1s", "write join @33%"},
		{strings.Repeat("join @1s, ", maxChaosLength), "use at most"},
	} {
		if _, err := ParseChaos(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want one with %q", c.spec, err, c.want)
		}
	}
}

func TestChaosOfThisVersion(t *testing.T) {
	for spec, want := range map[string]string{
		"kill 1 @1s, start 1 @2s, join @3%, leave 0 @4%, pause 2 @1s, resume 2 @2s": "",
		"slow 1 x2 @1s, corrupt 2 @5s, partition 0,1|2 @1s..2s":                     "",
		"kill any every 60s down 10s, random":                                       "",
		"join @1s, loss 1 1% @1s":                                                   `"loss 1 1% @1s": not in this version`,
		"byzantine signflip 1 @1s":                                                  "not in this version",
		"partition 0|3 @1s..2s":                                                     "only nodes 0 to 2",
		"leave 3 @1s":                                                               "only nodes 0 to 2",
		"leave 3 @9s, join @1s":                                                     "",
	} {
		err := Config{Nodes: 3, Chaos: spec}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", spec, err, want)
		}
	}
}

func TestImpossibleChaos(t *testing.T) {
	for spec, want := range map[string]string{
		"leave 1 @1s, leave 1 @2s":                                  `"leave 1 @2s": node 1 is gone then`,
		"leave 1 @20%, kill 1 @10%":                                 `"leave 1 @20%": node 1 is gone then`,
		"start 1 @1s":                                               "node 1 is running then",
		"resume 1 @1s":                                              "node 1 is running then",
		"pause 1 @1s, pause 1 @2s":                                  "node 1 is paused then",
		"leave 0 @1s, leave 1 @1s, leave 2 @1s":                     "no node is left at the end",
		"leave any @1s, kill any @2%, leave any @3s":                "no node is left at the end",
		"kill 0 @1s, kill 1 @1s, kill 2 @1s, start 2 @2s":           "", // a power cut
		"kill 0 @1%, kill 1 @1%, kill 2 @1%, start 2 @2%":           `"kill 2 @1%": no node is left then`,
		"kill 0 @1s, kill 1 @1s, kill 2 @1s, join @2s, start 2 @3s": `"kill 2 @1s": no node is left then`,
		"kill 1 @1s, corrupt 1 @2s":                                 "node 1 is gone then",
		"kill 1 @1s, slow 1 x2 @2s, partition any @1s..3s":          "",
		"kill 0 @1s, start 0 @2s, kill 0 @3s, start 0 @4s":          "",
		"leave 0 @1s, leave 1 @1s, join @2s":                        "",
		"kill 1 @1s, start 1 @2%":                                   "", // which comes first is not known
		"pause 1 @1s, leave 1 @2s, kill 2 @3s, start 2 @3s":         "",
		"leave any @1s, start 1 @2s, leave any @3s, join @4s":       "",
	} {
		err := Config{Nodes: 3, Chaos: spec}.Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", spec, err, want)
		}
	}
}

func TestWhenReached(t *testing.T) {
	if w := seconds(5); w.reached(4*time.Second, 99) || !w.reached(5*time.Second, 0) {
		t.Error("a time does not follow the clock")
	}
	if w := percent(5); w.reached(time.Hour, 4.9) || !w.reached(0, 5) {
		t.Error("a share does not follow the tokens")
	}
}

// FuzzParseChaos checks that a spec that is accepted has a canonical form which
// means the same.
func FuzzParseChaos(f *testing.F) {
	f.Add("kill 1 @20s, start 1 @30s, join @33%, leave 2 @60%, pause 0 @10s, resume 0 @20s, slow 3 x4 @0s, partition 0,1|2,3 @40s..80s")
	f.Add("random every 10s, partition any every 90s down 15s, slow any x2 every 3s down 1s")
	f.Add("kill any every 60s down 10s, loss 2 1% @0s, corrupt 1 @50%, byzantine signflip 1 @0s")
	f.Fuzz(func(t *testing.T, spec string) {
		c, err := ParseChaos(spec)
		if err != nil {
			return
		}
		again, err := ParseChaos(c.String())
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%q: canonical %q is %+v (%v), want %+v", spec, c, again, err, c)
		}
	})
}
