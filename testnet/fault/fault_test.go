package fault

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func seconds(n int) When     { return At(time.Duration(n) * time.Second) }
func percent(p float64) When { return When{ByShare: true, Percent: p} }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  Schedule
		print string // canonical; "" = text
	}{
		{"", nil, ""},
		{"kill 1 @20s", Schedule{{Verb: Kill, Nodes: []int{1}, At: seconds(20)}}, ""},
		{"at 20s kill 1", Schedule{{Verb: Kill, Nodes: []int{1}, At: seconds(20)}}, "kill 1 @20s"},
		{"kill 1 @20s; start_1_@30s", Schedule{{Verb: Kill, Nodes: []int{1}, At: seconds(20)}, {Verb: Start, Nodes: []int{1}, At: seconds(30)}}, "kill 1 @20s, start 1 @30s"},
		{"kill 0, 2+4 6-7 all @1s, merge @2s", Schedule{{Verb: Kill, Nodes: []int{0, 2, 4, 6, 7, All}, At: seconds(1)}, {Verb: Merge, At: seconds(2)}}, "kill 0,2,4,6,7,all @1s, merge @2s"},
		{"kill learner 1,2 @20s, kill learner 2 rank 1 @30%", Schedule{
			{Verb: KillLearner, Nodes: []int{1, 2}, At: seconds(20)}, {Verb: KillLearner, Nodes: []int{2}, Detail: []string{"rank", "1"}, At: percent(30)}},
			"kill-learner 1,2 @20s, kill-learner 2 rank 1 @30%"},
		{"join @33%", Schedule{{Verb: Join, Count: 1, At: percent(33)}}, ""},
		{"at 5s join 2 slow 3", Schedule{{Verb: Join, Count: 2, Detail: []string{"slow", "3"}, At: seconds(5)}}, "join 2 slow 3 @5s"},
		{"leave 2 @60.5%", Schedule{{Verb: Leave, Nodes: []int{2}, At: percent(60.5)}}, ""},
		{"pause 0 @10s,resume 0 @20s", Schedule{{Verb: Pause, Nodes: []int{0}, At: seconds(10)}, {Verb: Resume, Nodes: []int{0}, At: seconds(20)}}, "pause 0 @10s, resume 0 @20s"},
		{"slow 3 x4 @0s", Schedule{{Verb: Slow, Nodes: []int{3}, Factor: 4}}, ""},
		{"at 1s slow 3 x4 for 2s", Schedule{{Verb: Slow, Nodes: []int{3}, Factor: 4, At: seconds(1), For: 2 * time.Second}}, "slow 3 x4 @1s for 2s"},
		{"partition 0,1|2,3 @40s..80s", Schedule{{Verb: Partition, Groups: [][]int{{0, 1}, {2, 3}}, At: seconds(40), Until: new(seconds(80))}}, "partition 0,1|2,3 @40s..1m20s"},
		{"at 1s partition 0 1 | 1-2 for 1s", Schedule{{Verb: Partition, Groups: [][]int{{0, 1}, {1, 2}}, At: seconds(1), For: time.Second}}, "partition 0,1|1,2 @1s for 1s"},
		{"partition 0|1|2 @10%..20%, join @1m", Schedule{{Verb: Partition, Groups: [][]int{{0}, {1}, {2}}, At: percent(10), Until: new(percent(20))}, {Verb: Join, Count: 1, At: seconds(60)}}, "partition 0|1|2 @10%..20%, join @1m0s"},
		{"partition 0+1 @5s", Schedule{{Verb: Partition, Groups: [][]int{{0, 1}}, At: seconds(5)}}, "partition 0,1 @5s"},
		{"partition any @40s..50s", Schedule{{Verb: Partition, At: seconds(40), Until: new(seconds(50))}}, ""},
		{"cut 0>1+2 @1s for 2s, mend @3s, mend 0>1 @4s", Schedule{
			{Verb: Cut, Nodes: []int{0}, To: []int{1, 2}, At: seconds(1), For: 2 * time.Second}, {Verb: Mend, At: seconds(3)},
			{Verb: Mend, Nodes: []int{0}, To: []int{1}, At: seconds(4)}}, "cut 0>1,2 @1s for 2s, mend @3s, mend 0>1 @4s"},
		{"kill any every 60s for 10s", Schedule{{Verb: Kill, Nodes: []int{Any}, Every: time.Minute, For: 10 * time.Second}}, "kill any every 1m0s for 10s"},
		{"slow any x3 every 45s for 20s", Schedule{{Verb: Slow, Nodes: []int{Any}, Factor: 3, Every: 45 * time.Second, For: 20 * time.Second}}, ""},
		{"partition any every 90s for 15s", Schedule{{Verb: Partition, Every: 90 * time.Second, For: 15 * time.Second}}, "partition any every 1m30s for 15s"},
		{"every 3s from 4s to 12s kill 0-1 in turn for 1s", Schedule{{Verb: Kill, Nodes: []int{0, 1}, Every: 3 * time.Second, At: seconds(4), Until: new(seconds(12)), InTurn: true, For: time.Second}},
			"kill 0,1 every 3s from 4s to 12s in turn for 1s"},
		{"random", Schedule{{Verb: Random, Every: usualEvery}}, "random every 10s"},
		{"random every 5s", Schedule{{Verb: Random, Every: 5 * time.Second}}, ""},
		{"loss 2 1% @0s", Schedule{{Verb: Loss, Nodes: []int{2}, Percent: 1}}, ""},
		{"link 0 rate=5mbit @60s..120s, kill 1 @2m", Schedule{{Verb: Link, Nodes: []int{0}, Detail: []string{"rate=5mbit"}, At: seconds(60), Until: new(seconds(120))}, {Verb: Kill, Nodes: []int{1}, At: seconds(120)}}, "link 0 rate=5mbit @1m0s..2m0s, kill 1 @2m0s"},
		{"at 1s link 0, 2 up=5mbit, down=1gbit loss=0.1% for 1s", Schedule{{Verb: Link, Nodes: []int{0, 2}, Detail: []string{"up=5mbit", "down=1gbit", "loss=0.1%"}, At: seconds(1), For: time.Second}}, "link 0,2 up=5mbit,down=1gbit,loss=0.1% @1s for 1s"},
		{"corrupt 1 @50%", Schedule{{Verb: Corrupt, Nodes: []int{1}, At: percent(50)}}, ""},
		{"attack signflip 1 @0s", Schedule{{Verb: Attack, Kind: "signflip", Nodes: []int{1}}}, ""},
		{"skew 1 by -5s @1s, skew 2 by -1m @1s", Schedule{{Verb: Skew, Nodes: []int{1}, By: -5 * time.Second, At: seconds(1)}, {Verb: Skew, Nodes: []int{2}, By: -time.Minute, At: seconds(1)}}, "skew 1 by -5s @1s, skew 2 by -1m0s @1s"},
		{"network latency 1s loss 5% @1s for 1s", Schedule{{Verb: Network, Detail: []string{"latency", "1s", "loss", "5%"}, At: seconds(1), For: time.Second}}, ""},
		{"upgrade 1 to protocol 2 @1s", Schedule{{Verb: Upgrade, Nodes: []int{1}, Detail: []string{"protocol", "2"}, At: seconds(1)}}, ""},
		{"  leave   any  @5s ", Schedule{{Verb: Leave, Nodes: []int{Any}, At: seconds(5)}}, "leave any @5s"},
	} {
		got, err := Parse(c.text)
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, want %+v", c.text, got, c.want)
		}
		if want := strings.TrimSpace(c.print); got.String() != want && (want != "" || got.String() != c.text) {
			t.Errorf("%q: canonical %q, want %q", c.text, got, want)
		}
	}
}

// Errors name the event, and say what to write.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{",", `"": the line ends where an event should stand`},
		{"kill 1 @20s,", `"": the line ends where an event should stand`},
		{"explode 1 @20s", `"explode 1 @20s": "explode": there is no such event; use one of kill, start, pause,`},
		{"kill 1", `"kill 1": it does not say when: write kill 1 @20s`},
		{"kill 1 for 5s", "does not say when"},
		{"kill @20s", `"@20s": a node should stand here: a number from 0,`},
		{"kill one @20s", `"one": a node should stand here`},
		{"kill -1 @20s", `"-1": a node should stand here`},
		{"kill 1+ @20s", "this is no node"},
		{"kill 4-2 @20s", `"4-2": this is no node`},
		{"kill 1 @soon", `"@soon": when is a time from 0s to 8760h such as 40s`},
		{"kill 1 @-1s", `"@-1s": when is a time`},
		{"kill 1 @1us", "when is a time"},
		{"kill 1 @101%", "a share of the tokens is a number from 0 to 100"},
		{"kill 1 @NaN%", "a share of the tokens is a number from 0 to 100"},
		{"kill 1 @1s @2s", "it says twice when"},
		{"kill any every 5s for 1s @20s", "it says twice when"},
		{"kill 1 @1s..2s for 1s", "it says twice when this ends"},
		{"kill 1 @33% for 1s", "end it at another: write @33%..40%"},
		{"kill 1 quietly @1s", `"quietly": the line should end before this word; write kill 1 @20s`},
		{"leave 1 @1s..2s", "this has no end"},
		{"leave any every 60s for 10s", "this has no end"},
		{"join @1s for 3s", `"join": this has no end, so `},
		{"merge 1 @2s", `"1": the line should end before this word; write merge @80s`},
		{"cut 1 @2s", `the word ">" should stand here`},
		{"cut 1>x @2s", `"x": a node should stand here`},
		{"partition 0|x @1s..2s", `"x": a node should stand here`},
		{"partition 0" + strings.Repeat("|1", maxGroups) + " @1s", "at most 60 groups"},
		{"kill any every 500ms for 10ms", "at least 1s"},
		{"kill any every 0s for 10s", "how often is a time"},
		{"kill any every 10s for 10s", "shorter than every"},
		{"kill any every 10s", "say how long it lasts"},
		{"random @5s", "write random, or random every 10s"},
		{"random 1 every 5s", "write random, or random every 10s"},
		{"random every 5s for 1s", "write random, or random every 10s"},
		{"every 1s from 2s", `the line ends where the word "to" should stand`},
		{"every 1s from 2s to 1s kill 1", "when it ends is a time from 2s"},
		{"merge in turn every 1s from 1s to 2s", "no nodes that could take turns"},
		{"kill 1 @1s in turn", "`in turn` is for what happens every so often"},
		{"slow 1 4 @1s", `"@1s": a factor such as x4 should stand here`},
		{"slow 1 x0.5 @1s", "a number from 1"},
		{"slow 1 xx @2s", "a number from 1"},
		{"loss 1 y @1s", "does not end in %: write loss 2 1% @0s"},
		{"attack SignFlip 1 @1s", "small letters: write attack signflip 1"},
		{"network @1s", "a trait of links should stand"},
		{"upgrade 1 protocol 2 @1s", `"protocol": the word "to" should stand here`},
		{"upgrade 1 to @1s", "a trait of programs should stand"},
		{"link 1 @1s", "it does not say what the link becomes: write link 0 rate=5mbit @60s..120s"},
		{"link 1 rate 5mbit @1s", `"rate": this is no trait of a link: write link 0 rate=5mbit`},
		{"rate=5mbit @1s", "there is no such event"},
		{"kill learner @1s", `"@1s": a node should stand here`},
		{"kill learner 1 rank x @1s", "a process of the data-parallel group is a whole number from 0 to 1000"},
		{"kill learner 1 @1s for 2s", "this has no end"},
		{"join x @1s", ""}, // the executor reads traits
		{"kill " + strings.Repeat("0-9999 ", 3) + "@1s", "more than 20000 nodes"},
		{strings.Repeat("join @1s, ", maxLength), "use at most"},
	} {
		_, err := Parse(c.text)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: error %v, want one with %q", c.text, err, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	for text, want := range map[string]string{
		"kill 0,2 @5s":                              "kill 0 @5s, kill 2 @5s",
		"at 5s kill all for 2s":                     "kill 0 @5s, start 0 @7s, kill 1 @5s, start 1 @7s, kill 2 @5s, start 2 @7s",
		"every 1s from 1s to 4s pause 0-1 in turn":  "pause 0 @1s, pause 1 @2s, pause 0 @3s",
		"every 2s from 1s to 5s slow all x3 for 1s": "slow 0 x3 @1s, slow 0 x1 @2s, slow 1 x3 @1s, slow 1 x1 @2s, slow 2 x3 @1s, slow 2 x1 @2s, slow 0 x3 @3s, slow 0 x1 @4s, slow 1 x3 @3s, slow 1 x1 @4s, slow 2 x3 @3s, slow 2 x1 @4s",
		"partition all|3 @1s..10%":                  "partition 0,1,2|3 @1s, merge @10%",
		"cut 0 1>all @1s for 1s":                    "cut 0>0,1,2 @1s, mend 0>0,1,2 @2s, cut 1>0,1,2 @1s, mend 1>0,1,2 @2s",
		"join 2 @1s":                                "join @1s, join @1s",
		"kill any @1s for 1s":                       "kill any @1s, start any @2s",
		"at 1s network latency 1s for 1s":           "network latency 1s @1s, network @2s",
		"link 0,1 rate=5mbit,loss=1% @1s..10%":      "link 0 rate=5mbit,loss=1% @1s, link 0 @10%, link 1 rate=5mbit,loss=1% @1s, link 1 @10%",
		"kill any every 5s for 1s":                  "kill any every 5s for 1s",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all, err := s[0].Expand(3)
		if err != nil {
			t.Fatal(err)
		}
		var got Schedule
		for _, e := range all {
			if e.Every > 0 {
				got = append(got, e)
				continue
			}
			begin, end := e.Undone()
			if got = append(got, begin); end != nil {
				got = append(got, *end)
			}
		}
		if got.String() != want {
			t.Errorf("%q:\n got %s\nwant %s", text, got, want)
		}
	}
	for _, text := range []string{"every 1ms from 0s to 1h kill 1", "join 10001 @1s"} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s[0].Expand(3); err == nil || !strings.Contains(err.Error(), "more than 10000 events") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// An executor refuses an event that it cannot execute by name, and says what to write.
func TestCan(t *testing.T) {
	can := Can{Who: "a toy", Verbs: []Verb{Kill, Partition}, Instead: map[Verb]string{Merge: "give the partition its end"}}
	for text, want := range map[string]string{
		"kill 1 @1s, kill 1 every 2s from 1s to 9s": "",
		"join @1s":                      `"join @1s": a toy knows no join: use one of kill, partition`,
		"kill 1 @1s, merge @1s":         `"merge @1s": a toy knows no merge: give the partition its end`,
		"kill any @1s":                  "a toy leaves nothing to chance: name the nodes by number",
		"partition any @1s..2s":         "a toy leaves nothing to chance",
		"kill 1 every 2s for 1s":        "write every 2s from TIME to TIME",
		"kill 1 @33%":                   "a toy has no shares of the tokens: write a time such as @20s",
		"partition 0|1 @1s..33%":        "a toy has no shares of the tokens",
		"partition 0|1 @1s, kill 1 @1s": "",
	} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if err := can.Check(s); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if all := (Can{Who: "all", Verbs: Verbs(), Chance: true, Shares: true}); all.Check(Schedule{{Verb: Random}, {Verb: Kill, Nodes: []int{Any}, At: percent(3)}}) != nil {
		t.Error("all verbs, chance and shares are refused")
	}
}

func TestWhenReached(t *testing.T) {
	if w := seconds(5); w.Reached(4*time.Second, 99) || !w.Reached(5*time.Second, 0) {
		t.Error("a time does not follow the clock")
	}
	if w := percent(5); w.Reached(time.Hour, 4.9) || !w.Reached(0, 5) {
		t.Error("a share does not follow the tokens")
	}
}

// drawn is any event.
func drawn(t *rapid.T) Event {
	node := rapid.SampledFrom([]int{0, 1, 2, 70, All})
	some := rapid.SliceOfN(node, 1, 3)
	ms := func(least, most int) time.Duration {
		return time.Duration(rapid.IntRange(least, most).Draw(t, "ms")) * time.Millisecond
	}
	e := Event{Verb: rapid.SampledFrom(Verbs()).Draw(t, "verb"), At: At(ms(0, 1e8))}
	switch e.Verb {
	case Random:
		return Event{Verb: Random, Every: ms(1000, 1e6)}
	case Join:
		e.Count, e.Detail = rapid.IntRange(1, 5).Draw(t, "count"), rapid.SampledFrom([][]string{nil, {"observer"}, {"5"}}).Draw(t, "traits")
	case Network:
		e.Detail = []string{"latency", "1s"}
	case Partition:
		e.Groups = rapid.SliceOfN(some, 0, 3).Draw(t, "groups")
		if len(e.Groups) == 0 {
			e.Groups = nil
		}
	case Merge:
	case Cut:
		e.Nodes, e.To = some.Draw(t, "from"), some.Draw(t, "to")
	case Mend:
		if rapid.Bool().Draw(t, "some") {
			e.Nodes, e.To = some.Draw(t, "from"), some.Draw(t, "to")
		}
	default:
		e.Nodes = rapid.OneOf(some, rapid.Just([]int{Any})).Draw(t, "nodes")
	}
	switch e.Verb {
	case Slow:
		e.Factor = rapid.Float64Range(1, maxFactor).Draw(t, "factor")
	case Loss:
		e.Percent = rapid.Float64Range(0, 100).Draw(t, "percent")
	case Skew:
		e.By = ms(-1e6, 1e6)
	case Attack:
		e.Kind = "sign-flip"
	case Upgrade:
		e.Detail = []string{"newer"}
	case KillLearner:
		e.Detail = rapid.SampledFrom([][]string{nil, {"rank", "0"}, {"rank", "17"}}).Draw(t, "rank")
	case Link:
		e.Detail = rapid.SampledFrom([][]string{{"rate=5mbit"}, {"up=1mbit", "loss=0.1%"}}).Draw(t, "traits")
	}
	ends := e.Verb.undo() != ""
	switch rapid.IntRange(0, 4).Draw(t, "timing") {
	case 0:
		e.At = percent(rapid.Float64Range(0, 100).Draw(t, "share"))
	case 1:
		if ends {
			e.Until = new(At(e.At.After + ms(0, 1e6)))
		}
	case 2:
		if ends {
			e.For = ms(1, 1e6)
		}
	case 3:
		e.Every, e.Until, e.InTurn = ms(1, 1e6), new(At(e.At.After+ms(0, 1e6))), len(e.Nodes) > 0
	case 4:
		if ends {
			e.At, e.Every, e.For = When{}, ms(1000, 1e6), ms(1, 999)
		}
	}
	return e
}

// What is written is read as the same events.
func TestPrintedIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule(rapid.SliceOfN(rapid.Custom(drawn), 1, 4).Draw(t, "events"))
		if again, err := Parse(s.String()); err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q is read as %+v (%v), want %+v", s, again, err, s)
		}
	})
}

// FuzzParse checks that a schedule that is accepted has a canonical form which
// means the same.
func FuzzParse(f *testing.F) {
	f.Add("kill 1 @20s, start 1 @30s, join @33%, leave 2 @60%, pause 0 @10s, resume 0 @20s, slow 3 x4 @0s, partition 0,1|2,3 @40s..80s")
	f.Add("random every 10s, partition any every 90s for 15s, slow any x2 every 3s for 1s, every 1s from 2s to 9s kill 0-3 in turn")
	f.Add("kill any every 60s for 10s, loss 2 1% @0s, corrupt 1 @50%, attack signflip 1 @0s, cut 0>1+2 @1s, skew 1 by -5s @1s")
	f.Add("kill learner 1 @20s, kill-learner 2,3 rank 1 @30%, every 5s from 1s to 20s kill learner 0-2 in turn")
	f.Add("link 0 rate=5mbit @60s..120s, link 1,2 up=5mbit,down=1gbit,delay=40ms,jitter=4ms,loss=0.1% @1s")
	f.Add("at 5s join 3 slow 2 observer, network latency 1s uplink 3kB/s @1s for 2s, upgrade all to newer @2s, mend @9s")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q: canonical %q is %+v (%v), want %+v", text, s, again, err, s)
		}
	})
}
