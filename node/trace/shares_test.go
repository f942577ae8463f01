package trace

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

func TestSum(t *testing.T) {
	a, b := wire.PeerID{1}, wire.PeerID{2}
	way := func(late bool, t Times) Line {
		return Line{Node: b, What: What{Author: a}, Times: t, How: How{Gave: a, Requests: 2, Busy: 1, Late: late, End: Adopted}}
	}
	s := Sum(Trace{Closes: []Close{{Why: "complete"}, {Why: "grace over"}, {Why: "complete"}}, Lines: []Line{
		{Node: a, What: What{Author: a}, How: How{End: Returned}},
		way(false, Times{Drafted: 1000, Announced: 1100, Heard: 1200, Asked: 1200, Requested: 1200, FirstByte: 1500, LastByte: 1600, Held: 1600, Closed: 1800, Folded: 1900, Adopted: 2000}),
		way(true, Times{Drafted: 1000, Announced: 1100, Heard: 1200, Asked: 1200, Requested: 1200, FirstByte: 3500, LastByte: 3600, Held: 3600, Closed: 1800, Folded: 3900, Adopted: 4000}),
		{Node: b, What: What{Author: a}, Times: Times{Drafted: 1000, Heard: 1300}, How: How{End: Open}},
		{Node: b, What: What{Author: a}, Times: Times{Heard: 1300, Adopted: 1400}, How: How{End: Adopted}}, // its author's file is not here
	}})
	if s.Closed["complete"] != 2 || s.Closed["grace over"] != 1 {
		t.Errorf("rounds closed: %v", s.Closed)
	}
	if s.Deltas != 2 || s.Late != 1 || s.ByAuthor != 2 || s.Requests != 4 || s.Busy != 2 || s.MeanS != 2 || s.P95S != 3 || s.Own[Returned] != 1 || s.Others[Adopted] != 3 || s.Others[Open] != 1 {
		t.Errorf("%+v", s)
	}
	for _, want := range []StageSum{
		{"announced", 200. / 4000, 0.1, 0.1},
		{"reached", 0, 0, 0},                   // not known, so that
		{"first_byte", 2600. / 4000, 2.3, 2.3}, // this is from the request on
		{"closed", 200. / 4000, 0.2, 0.2},      // nothing for the late one
		{"folded", 400. / 4000, 0.3, 0.3},
	} {
		for _, got := range s.Stages {
			if got.Until == want.Until && got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
	}
}

// The shares of all stages are the whole, and stages neither overlap nor leave gaps,
// whatever the clocks say.
func TestSharesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Line{Node: wire.PeerID{1}, How: How{End: Adopted}}
		ms := func(name string) int64 { return rapid.Int64Range(0, 1e13).Draw(t, name) }
		l.Times = Times{ms("drafted") + 1, ms("announced"), ms("heard"), ms("asked"), ms("requested"), ms("reached"), ms("begun"),
			ms("first"), ms("last"), ms("verified"), ms("held"), ms("closed"), ms("folded"), ms("adopted")}
		s := Sum(Trace{Lines: []Line{l}})
		shares, last := 0.0, int64(0)
		for k, at := range l.elapsed() {
			if at < last || s.Stages[k].Share < 0 {
				t.Fatalf("stage %s ends at %d, the one before at %d, with a share of %v", stages[k].until, at, last, s.Stages[k].Share)
			}
			last, shares = at, shares+s.Stages[k].Share
		}
		if last > 0 && math.Abs(shares-1) > 1e-9 {
			t.Fatalf("the shares are %v in sum", shares)
		}
	})
}

func TestSharesText(t *testing.T) {
	var b strings.Builder
	s := Sum(Trace{})
	if err := s.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != len(stages)+2 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if len(l) > 79 {
			t.Errorf("a line has %d characters: %s", len(l), l)
		}
	}
	s = Shares{Deltas: 4, Late: 1, ByAuthor: 3, Requests: 10, Busy: 1, Failed: 2, Own: map[End]int{Adopted: 5, Returned: 2, Discarded: 1}}
	want := "4 deltas in other nodes' models, 25.0 % of them late, 75.0 % given by their author; 10 requests, 10.0 % busy, 20.0 % failed, 0.0 % for what was there; at their authors 1 discarded, 2 returned"
	if s.Text("") != want {
		t.Errorf("%q", s.Text(""))
	}
	s.Closed = map[string]int{"grace over": 2, "complete": 7, "next": 2}
	if want += "; rounds closed: 7 complete, 2 grace over, 2 next"; s.Text("") != want {
		t.Errorf("%q", s.Text(""))
	}
}
