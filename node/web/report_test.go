package web

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// reportOf is the report of a world with a hostile summary.
func reportOf(t *testing.T, w World) string {
	t.Helper()
	var b bytes.Buffer
	err := WriteReport(&b, w, Summary{
		Sections: []Section{{"Settings", []Row{{"seed", "1"}, {"text", hostile}}}, NodeSummary(trainingStatus(2))},
		Card:     "# opticks\n\n| parameters | 824448 |\n" + hostile,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A report is one file: it loads nothing, and neither text nor link that peers know leaks into it.
func TestReportIsOneFile(t *testing.T) {
	for _, w := range testWorlds {
		page := reportOf(t, w.world)
		for _, word := range []string{"<link", " src=", "url(", "secret-of-the-invite", "<!--head-->", "<!--data-->"} {
			if strings.Contains(page, word) && (word != " src=" || strings.Contains(page, "<script src") || strings.Contains(page, "<script defer")) {
				t.Errorf("%s: the report contains %q", w.name, word)
			}
		}
		if n := strings.Count(page, "</script>"); n != 2 {
			t.Errorf("%s: %d ends of scripts, want 2: a text ends one", w.name, n)
		}
		data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(page)
		var v reportView
		if data == nil || json.Unmarshal([]byte(data[1]), &v) != nil || len(v.Sections) != 2 || v.CanJoin {
			t.Errorf("%s: the data cannot be read, or it offers to join", w.name)
		}
	}
}

// A report is sent on: it does not say where machines are.
func TestReportHasNoAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"learner at /ip4/198.51.100.7/tcp/27182":                              "learner at (address)",
		"dial /ip6/2001:db8::1/udp/9/quic-v1/p2p/12D3K: timeout, tries again": "dial (address) timeout, tries again",
		"read tcp 192.0.2.1:4001->198.51.100.7:27182: reset":                  "read tcp (address)->(address): reset",
		"[2001:db8::1]:27182 is gone":                                         "(address) is gone",
		"no node runs at example.org:27182 any more":                          "no node runs at (address) any more",
		"it is 2001:db8::1 now, or 2001:db8:0:0:0:0:0:1":                      "it is (address) now, or (address)",
		"since 12:26:40, SHA256: 12":                                          "since 12:26:40, SHA256: 12",
		"fragment 3 round 14: 2.5.1 is no address":                            "fragment 3 round 14: 2.5.1 is no address",
	} {
		if got := withoutAddresses(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	s := trainingStatus(3)
	s.Peers[1].State, s.Peers[1].Reason = "refused", "at /dns4/example.org/tcp/1: another run"
	s.Events = append(s.Events, status.Event{At: testTime, Kind: "disk", Text: "asked 192.0.2.77"})
	page := reportOf(t, oneNode(s))
	for _, word := range []string{"198.51.100.7", "example.org", "192.0.2"} {
		if strings.Contains(page, word) {
			t.Errorf("the report contains %s", word)
		}
	}
}

// framesOfTests are a run of two authors, of which the second is no peer any more.
func framesOfTests() (frames []Frame) {
	for i := range 50 {
		tokens := 17_000 * float64(i+1)
		f := Frame{Tokens: tokens, Closed: []uint32{uint32(i / 2), uint32(i / 3)}, Contributors: []int{1, 2}, By: map[string]float64{idOf(0): tokens}}
		if i > 10 {
			f.By[idOf(77)] = tokens / 2
		}
		frames = append(frames, f)
	}
	return frames
}

func TestFrames(t *testing.T) {
	v := view(oneNode(trainingStatus(3)))
	history := []status.Point{{AtMs: 1000, Tokens: 0}, {AtMs: 2000, Tokens: 100}, {AtMs: 4000, Tokens: 200}}
	got := framesOf(&v, []Frame{{Tokens: 50, By: map[string]float64{idOf(1): 50}}, {Tokens: 150, By: map[string]float64{idOf(1): 90, idOf(77): 60}}, {Tokens: 300}}, history, nil)
	if len(v.Peers) != 4 || v.Peers[3].ID != idOf(77) || v.Peers[3].Class != ClassGone {
		t.Fatalf("%d peers, want the author that has left as the fourth", len(v.Peers))
	}
	for i, want := range []int64{1500, 3000, 0} {
		if got[i].AtMs != want {
			t.Errorf("frame %d is at %d ms, want %d", i, got[i].AtMs, want)
		}
	}
	if by := got[1].By; len(by) != 4 || by[1] != 90 || by[3] != 60 {
		t.Errorf("the tokens by peer are %v, want 90 of the second and 60 of the fourth", by)
	}
}

// The slider takes the page back through the run.
func TestReplayInABrowser(t *testing.T) {
	c := startChromium(t)
	var b bytes.Buffer
	if err := WriteReport(&b, oneNode(trainingStatus(3)), Summary{Replay: framesOfTests()}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "replay.html")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{375, 1440} {
		c.wrong = nil
		c.screen(width, 900, false)
		c.open("file://"+file, "2 machines have contributed to the model.")
		c.judge("replay-end", []string{"42 % done", "has contributed", "not yet"})
		c.evaluate("document.getElementById('slider').value = 3; document.getElementById('slider').oninput()", nil)
		c.judge("replay-begin", []string{"1 machine has contributed to the model.", "3 % done"})
		c.evaluate("document.getElementById('play').click()", nil)
		c.until("document.body.innerText.includes('2 machines have contributed')")
	}
}

func TestReportOfARunThatDiverged(t *testing.T) {
	s := trainingStatus(2)
	s.ValBPB = math.Inf(1)
	if page := reportOf(t, oneNode(s)); !strings.Contains(page, `"value":0`) {
		t.Error("the number that is none is not left out")
	}
}

// A report opens from a file, in every browser window, with nothing around it.
func TestReportInABrowser(t *testing.T) {
	c := startChromium(t)
	for name, w := range map[string]World{"finished": finishedWorld(), "alarm": alarmWorld()} {
		file := filepath.Join(t.TempDir(), "report.html")
		if err := os.WriteFile(file, []byte(reportOf(t, w)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, width := range []int{375, 1440} {
			c.wrong = nil
			c.screen(width, 900, width == 375)
			c.open("file://"+file, "Model card")
			c.judge("report-"+name, []string{"Settings", "Model card", "824448", `onerror="window.hurt=1"`, "tokens trained here"})
		}
	}
}

// A report for others names nobody: machines have numbers, in texts as well, and what is left of ids, addresses and paths goes.
func TestSharedReportNamesNobody(t *testing.T) {
	s := trainingStatus(3)
	for i := range s.Peers {
		s.Peers[i].Name = []string{"annas-desk", "lab", "attic"}[i]
	}
	status.Label(s.Peers)
	s.Name = "family-run"
	s.Peers[2].State, s.Peers[2].LagS, s.Started = status.Gone, 40, s.At.Add(-time.Hour)
	thief := status.Peer{ID: strings.Repeat("4c", 32), State: status.Revoked, Trained: true, Reason: "by owner x, from round 3 on: Bob Miller stole it"}
	s.Peers = append(s.Peers, thief)
	other, stranger := s.Peers[1].ID, strings.Repeat("9e", 32)
	libp2p := "12D3KooWBtmCV5wVkpyuFLP1wNiuHxwfXeSpYdqq4FwSq5MfGdMf"
	s.Events = append(s.Events,
		status.Event{At: testTime, Kind: "silent", Peer: other, Text: "waits for " + status.ShortID(other) + " at 192.0.2.77"},
		status.Event{At: testTime, Kind: "refused", Peer: stranger, Text: "of " + libp2p + ": write /srv/anna/second/ledger.db: no space; see https://example.org/x; 1234567890123 tokens"},
		status.Event{At: testTime, Kind: status.Revoked, Peer: thief.ID, Text: thief.Reason + "; what it made before stays"})
	s.Alarms = status.AlarmsOf(s)
	frames := []Frame{{Tokens: 10, Closed: []uint32{1}, Contributors: []int{1}, By: map[string]float64{strings.Repeat("7d", 32): 10}}}
	var b bytes.Buffer
	err := WriteReport(&b, oneNode(s), Summary{Sections: []Section{NodeSummary(s), Network(s), {"Settings", []Row{{"text", "diary.txt"}, {"seed", "1"}}}}, Card: "# family-run", Replay: frames, Share: true})
	if err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, word := range []string{"annas-desk", "lab\"", "attic", "family-run", "192.0.2", "example.org", "/home", "anna", "diary", "Miller", libp2p,
		s.Run[:10], s.Self[:10], other[:10], stranger[:10], "7d7d7d7d7d"} {
		if strings.Contains(page, word) {
			t.Errorf("the report has %q", word)
		}
	}
	for _, want := range []string{"machine 1", "machine 3", "machine 4", "waits for machine ", "1 of 2 peers not heard (machine 3)", "by itself: 1 of ", "by an owner of the run", "1234567890123 tokens", `"title":"Network"`, `"name":"seed"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if s.Peers[0].Name == "" || s.Name == "" {
		t.Error("the status itself was changed")
	}
}
