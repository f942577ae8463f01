package web

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

func view(w World) View { return viewOf(w, meter{}, testTime) }

func TestSentences(t *testing.T) {
	paused := trainingStatus(2)
	paused.State, paused.Stage = status.Paused, "on battery"
	observing := trainingStatus(2)
	observing.State = "observing"
	ending := trainingStatus(2)
	ending.State, ending.Stage = "stopped", "waits until all show the same model"
	starting := status.Snapshot{Identity: status.Identity{State: "joining", Stage: "measures this machine"}}
	ended := fourNodes(false)
	for i := range ended.Nodes {
		ended.Nodes[i].End = EndKilled
	}
	left := fourNodes(true)
	for i := range left.Nodes {
		left.Nodes[i].End, left.Nodes[i].Status.State = EndLeft, "joining"
	}
	cut, full := trainingStatus(2), trainingStatus(2)
	cut.Peers[1].State, cut.Peers[1].Trained = status.Gone, true
	full.Disk = "full"
	late := trainingStatus(3)
	late.Events = []status.Event{{At: testTime.Add(-time.Hour), Kind: "state wrong", Text: "long ago", Remedy: "none"}}
	late.Alarms = status.AlarmsOf(late)
	for _, c := range []struct {
		name, tone, state, headline, detail string
		world                               World
	}{
		{"nothing", ToneWait, "starting", "Waits for the first node to start.", "This page fills by itself.", World{}},
		{"starting", ToneWait, "starting", "This node is starting.", "Measures this machine.", oneNode(starting)},
		{"joining", ToneWait, "joining", "This node is joining the run.", "Fetches the model (43 %).", joiningWorld()},
		{"one", ToneGood, "training", "One machine trains a model of 824k parameters.", "43 % done, about 2 min 20 s left.", oneNode(trainingStatus(1))},
		{"four", ToneGood, "training", "4 machines train a model of 824k parameters together.", "43 % done, about 2 min 20 s left.", fourNodes(false)},
		{"paused", ToneRest, "paused", "This node is paused.", "On battery.", oneNode(paused)},
		{"observing", ToneGood, "observing", "This node holds and serves the model. It does not train.", "43 % done, about 2 min 20 s left.", oneNode(observing)},
		{"ending", ToneGood, "ending", "All tokens are trained. The last deltas are being folded.", "Waits until all show the same model.", oneNode(ending)},
		{"parted", ToneWarn, "parted", "The network is in 2 parts, and each trains on.", "node0, node1 | node2, node3. They merge what they learned when they meet again.", fourNodes(true)},
		{"alarm", ToneBad, "training", "1 machine cannot be heard. The run goes on.", "43 % done, about 2 min 20 s left.", alarmWorld()},
		{"cut off", ToneWarn, status.CutOff, "This node hears no other machine.", "The other machine is not heard; the work here is kept, and merged when they are heard again.", oneNode(cut)},
		{"disk full", ToneBad, "disk full", "The disk of this node takes nothing.", "Nothing is published until it is well; the work here is kept in memory.", oneNode(full)},
		{"an alarm of long ago", ToneGood, "training", "3 machines train a model of 824k parameters together.", "43 % done, about 2 min 20 s left.", oneNode(late)},
		{"all left as they joined", ToneRest, EndLeft, "No node runs now.", "This is what was known last.", left},
		{"all killed", ToneRest, EndKilled, "No node runs now.", "This is what was known last.", ended},
		{"finished", ToneGood, "finished", "The run is finished.", "2M tokens are folded into the model. Every live node holds the same bits.", finishedWorld()},
	} {
		v := view(c.world)
		if v.Tone != c.tone || v.State != c.state || v.Headline != c.headline || v.Detail != c.detail {
			t.Errorf("%s: %s, %s: %q %q\nwant %s, %s: %q %q", c.name, v.Tone, v.State, v.Headline, v.Detail, c.tone, c.state, c.headline, c.detail)
		}
	}
}

// What others wrote has no characters that steer a screen, and is not endless.
func TestTextOfOthersIsPlain(t *testing.T) {
	s := trainingStatus(2)
	s.Peers[1].Hardware = "a\x1b[2Jb\u202ec\nd" + strings.Repeat("x", 10_000)
	got := view(oneNode(s)).Peers[1].Hardware
	if !strings.HasPrefix(got, "a\ufffd[2Jb\ufffdc d") || len([]rune(got)) != longestText {
		t.Errorf("%.40q, %d characters; want the visible ones alone, at most %d", got, len([]rune(got)), longestText)
	}
}

// A link is a secret: no view has it, only a request for it.
// The state of a guest says so, and a guest is there like others.
func TestGuestsOfAView(t *testing.T) {
	s := trainingStatus(3)
	s.Peers[0].Guest, s.Peers[2].Guest, s.Peers[2].State = true, true, status.Paused
	for i, want := range []struct{ state, class string }{{"training, guest", ClassLive}, {"training", ClassLive}, {"paused, guest", ClassRest}} {
		if p := view(oneNode(s)).Peers[i]; p.State != want.state || p.Class != want.class {
			t.Errorf("peer %d: %s, %s; want %s, %s", i, p.State, p.Class, want.state, want.class)
		}
	}
}

func TestViewHasNoLink(t *testing.T) {
	for _, w := range testWorlds {
		if b := encode(view(w.world)); strings.Contains(string(b), "secret-of-the-invite") || strings.Contains(string(b), "atoll:") {
			t.Errorf("%s: the view contains the join link", w.name)
		}
	}
}

func TestLinks(t *testing.T) {
	s := trainingStatus(5)
	s.Peers[1].Link, s.Peers[2].Link, s.Peers[3].Link = status.LinkDirect, status.LinkRelayed, ""
	s.Peers[4].Link, s.Peers[4].State = "", status.Gone
	got := view(oneNode(s)).Links
	want := []LinkView{{0, 1, status.LinkDirect}, {0, 2, status.LinkRelayed}, {0, 3, LinkHeard}}
	if len(got) != len(want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("link %d is %v, want %v", i, got[i], want[i])
		}
	}
	w := fourNodes(false)
	w.Nodes[3].End = EndStopped
	if v := view(w); len(v.Links) != 3 || v.Peers[3].Class != ClassSilent {
		t.Errorf("a stopped node is %s and there are the links %v, want it silent and three links", v.Peers[3].Class, v.Links)
	}
	w.Nodes[3].End = EndKilled
	if v := view(w); v.Peers[3].Class != ClassGone || v.Headline != "3 machines train a model of 824k parameters together." {
		t.Errorf("a killed node is %s: %q", v.Peers[3].Class, v.Headline)
	}
}

// The page of one node has what it and its peers have sent each other.
func TestPeersHaveTheirBytes(t *testing.T) {
	v := view(oneNode(trainingStatus(3)))
	if v.Peers[0].Sent != 0 || v.Peers[1].Sent != 1_800_000 || v.Peers[2].Received != 3_900_000 {
		t.Errorf("%+v", v.Peers)
	}
}

// A world of more peers than fit keeps the node itself and those who contributed most.
func TestPeersAreBounded(t *testing.T) {
	v := view(oneNode(trainingStatus(3 * maxPeers)))
	if len(v.Peers) != maxPeers || !v.Peers[0].Self {
		t.Fatalf("%d peers, the first is this node: %v; want %d, true", len(v.Peers), v.Peers[0].Self, maxPeers)
	}
	for i := 2; i < len(v.Peers); i++ {
		if v.Peers[i].Tokens > v.Peers[i-1].Tokens {
			t.Fatalf("peer %d has contributed more than the one before", i)
		}
	}
}

func TestAccountAddsUp(t *testing.T) {
	s := trainingStatus(2)
	v := view(oneNode(s))
	var sum float64
	for _, part := range v.Account {
		sum += part.Tokens
	}
	if sum != float64(s.TokensTrained) || len(v.Account) != 6 {
		t.Errorf("%d parts come to %v, trained are %d", len(v.Account), sum, s.TokensTrained)
	}
	s.TokensTrained += 60_000
	if v := view(oneNode(s)); len(v.Account) != 7 || v.Account[6].Tokens != 60_000 {
		t.Errorf("the rest is not there: %v", v.Account)
	}
}

// A measure stands once on the curve, where it was new.
func TestCurve(t *testing.T) {
	got := curveOf([]status.Point{{AtMs: 1000, Tokens: 1, Val: 8}, {AtMs: 2000, Tokens: 5, Val: 3, ValAt: 4}, {AtMs: 3000, Tokens: 9, Val: 3, ValAt: 4}, {AtMs: 4500, Tokens: 12, Val: 2, ValAt: 10}}, false)
	want := []CurvePoint{{0, 1, 8, 0}, {1, 5, 3, 0}, {2, 9, 0, 0}, {3.5, 12, 2, 0}}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("point %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// A run that diverged has a loss that JSON cannot write.
func TestInfiniteNumbers(t *testing.T) {
	s := trainingStatus(2)
	s.ValBPB, s.TokensPerS, s.Peers[1].TokensPerS, s.History[3].Val = math.Inf(1), math.NaN(), math.Inf(-1), float32(math.NaN())
	var v View
	if err := json.Unmarshal(encode(view(oneNode(s))), &v); err != nil {
		t.Fatal(err)
	}
	if v.PerS != 0 || v.Peers[1].PerS != 0 || v.Folded != s.TokensFolded {
		t.Errorf("speeds are %v and %v, folded are %d; want 0, 0, %d", v.PerS, v.Peers[1].PerS, v.Folded, s.TokensFolded)
	}
}

func TestMeter(t *testing.T) {
	m := meter{}
	s := trainingStatus(1)
	for second := range 20 {
		s.At = testTime.Add(time.Duration(second) * time.Second)
		s.Net.SentBytes, s.Net.ReceivedBytes = uint64(1000*second), uint64(300*second)
		m.record(s)
		if up, down := m.of(s); second > 0 && (up != 1000 || down != 300) {
			t.Fatalf("after %d s: %v up and %v down, want 1000 and 300", second, up, down)
		}
	}
	s.Net.SentBytes = 5 // a new process
	m.record(s)
	if up, _ := m.of(s); up != 0 {
		t.Errorf("a process that has just begun sends %v", up)
	}
}

// How long a run took and how fast it was is the same after its nodes have started again, and not said where nobody knows.
func TestTimesOutliveProcesses(t *testing.T) {
	s := trainingStatus(3)
	s.Finished = true
	first := view(oneNode(s))
	s.Started = testTime.Add(-2 * time.Second)
	again := view(oneNode(s))
	if !first.Over || first.TookS != 238 || first.Average != 119*7000/238. || first.TookS != again.TookS || first.Average != again.Average || first.Run.StartedMs != again.Run.StartedMs {
		t.Errorf("%v s, %v tokens/s from %d; after a restart %v s, %v tokens/s from %d", first.TookS, first.Average, first.Run.StartedMs, again.TookS, again.Average, again.Run.StartedMs)
	}
	s.History = nil
	if v := view(oneNode(s)); v.TookS != 0 || v.Average != 0 {
		t.Errorf("%v s, %v tokens/s, where nobody knows", v.TookS, v.Average)
	}
}

// While a run goes on a page shows who is here or was lately, and once it is over who trained.
func TestWhoIsShown(t *testing.T) {
	s := trainingStatus(5)
	s.Peers[1].State, s.Peers[1].LagS = status.Left, 60
	s.Peers[2].State, s.Peers[2].LagS, s.Peers[2].Faded = status.Gone, 90_000, true
	s.Peers[3].State, s.Peers[3].Trained = "observing", false
	s.Peers[4].State, s.Peers[4].Trained = status.Refused, false
	if v := view(oneNode(s)); len(v.Peers) != 4 || v.TookPart != 3 {
		t.Errorf("%d are shown, %d took part: %+v", len(v.Peers), v.TookPart, v.Peers)
	}
	s.Finished = true
	if v := view(oneNode(s)); len(v.Peers) != 3 || v.TookPart != 3 || v.Peers[1].State != "left, 60 s" || v.Peers[2].State != "gone, 25 h" {
		t.Errorf("at the end %d are shown, %d took part: %+v", len(v.Peers), v.TookPart, v.Peers)
	}
}
