package main

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"atoll/cmd/atoll/internal/statustext"
	"atoll/cmd/atoll/internal/top"
	"atoll/node/inspect"
	"atoll/node/metrics"
	"atoll/node/status"
	"atoll/node/web"
)

// Whatever a node does, and whoever is here, left or is gone: the status, top, the page, the report, the doctor and the metrics
// say the same.
func TestScreensAgree(t *testing.T) {
	with := func(change func(s *status.Snapshot)) status.Snapshot {
		s := trainingStatus()
		s.Started, s.ETASeconds = s.At.Add(-time.Minute), 240
		for i := range 3 {
			s.Peers = append(s.Peers, status.Peer{ID: strings.Repeat(fmt.Sprintf("%02x", i+1), 32), Role: "learner", State: "training", Trained: true})
		}
		change(&s)
		s.Alarms = status.AlarmsOf(s)
		return s
	}
	others := func(s *status.Snapshot, states ...string) {
		for i, state := range states {
			s.Peers[i+1].State, s.Peers[i+1].Trained, s.Peers[i+1].LagS = state, true, 50
		}
	}
	for name, s := range map[string]status.Snapshot{
		"four train": with(func(*status.Snapshot) {}),
		"it joins": with(func(s *status.Snapshot) {
			s.State, s.Stage, s.Peers, s.ETASeconds = "joining", "fetches the model (43 %)", s.Peers[:1], 0
		}),
		"alone": with(func(s *status.Snapshot) { s.Peers = s.Peers[:1] }),
		"paused": with(func(s *status.Snapshot) {
			s.State, s.Stage, s.Limits.Why = status.Paused, "on battery", []string{"on battery"}
		}),
		"another paused": with(func(s *status.Snapshot) { others(s, status.Paused, status.Paused) }),
		"cut off":        with(func(s *status.Snapshot) { others(s, status.Gone, status.Gone, status.Gone); s.ETASeconds = 0 }),
		"disk full": with(func(s *status.Snapshot) {
			s.Disk = "full"
			s.Events = []status.Event{{At: s.At, Kind: status.AlarmDisk, Text: "the disk is full", Remedy: "free some of it"}}
		}),
		"one left, one gone, one revoked": with(func(s *status.Snapshot) { others(s, status.Left, status.Gone, status.Revoked) }),
		"it serves":                       with(func(s *status.Snapshot) { s.State, s.Role = "observing", "observer" }),
		"at the end":                      with(func(s *status.Snapshot) { s.State, s.Stage = "stopped", "waits until all show the same model" }),
		"finished":                        with(func(s *status.Snapshot) { s.State, s.Finished, s.ETASeconds = "stopped", true, 0 }),
	} {
		t.Run(name, func(t *testing.T) {
			is := s.Condition()
			shown := shownOf(t, s)
			for screen, text := range shown {
				if !strings.Contains(text, is.Word) {
					t.Errorf("%s does not say %q:\n%s", screen, is.Word, text)
				}
				if alarmed := screen == "top" && len(s.Alarms) > 0; !alarmed && !strings.Contains(strings.ToLower(text), strings.ToLower(is.Why)) {
					t.Errorf("%s does not say why, %q:\n%s", screen, is.Why, text)
				}
				for _, a := range s.Alarms {
					if !strings.Contains(text, a.Text) {
						t.Errorf("%s does not say what is wrong, %q:\n%s", screen, a.Text, text)
					}
				}
			}
			for _, row := range s.Said(true) {
				for _, screen := range []string{"status", "report"} {
					if !strings.Contains(strings.ToLower(shown[screen]), strings.ToLower(row[1])) {
						t.Errorf("%s does not say %q:\n%s", screen, row[1], shown[screen])
					}
				}
			}
			count := map[string]int{}
			for _, p := range s.Peers[1:] {
				count[p.State]++
			}
			for _, state := range []string{status.Paused, status.Left, status.Gone, status.Revoked} {
				for _, screen := range []string{"status", "top"} {
					if n := len(regexp.MustCompile(`(?m)^ *[0-9a-f]{10} .*\b`+state+`\b`).FindAllString(shown[screen], -1)); n != count[state] {
						t.Errorf("%s lists %d as %s, want %d:\n%s", screen, n, state, count[state], shown[screen])
					}
				}
				if n := strings.Count(shown["report"], `"state":"`+state); n != count[state]+map[bool]int{true: 2}[is.Word == state] {
					t.Errorf("the page lists %d as %s, want %d", n, state, count[state])
				}
				if want := fmt.Sprintf("state=%q} %d\n", state, count[state]); !strings.Contains(shownMetrics(s), want) {
					t.Errorf("metrics lack %s", want)
				}
			}
		})
	}
}

// shownOf is what each screen shows of a status.
func shownOf(t *testing.T, s status.Snapshot) map[string]string {
	var table, page strings.Builder
	if err := statustext.Print(&table, s, true); err != nil {
		t.Fatal(err)
	}
	h := &top.History{}
	h.Add(s.At, []top.Node{{Name: "node0", Running: true, Status: s}})
	if err := web.WriteReport(&page, web.World{Nodes: []web.Node{{Status: s}}}, web.Summary{}); err != nil {
		t.Fatal(err)
	}
	data := regexp.MustCompile(`(?s)id="data">(.*?)</script>`).FindStringSubmatch(page.String())
	if data == nil || !json.Valid([]byte(data[1])) {
		t.Fatal("the report has no data")
	}
	return map[string]string{"status": table.String(), "top": top.View(h, top.Screen{Width: 200, Height: 60}), "report": data[1], "doctor": doctorOf(t, s)}
}

// doctorOf is what the doctor finds at a node that runs.
func doctorOf(t *testing.T, s status.Snapshot) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "genesis"), []byte("of no run"), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := status.Serve(dir, status.Handlers{Snapshot: func() (status.Snapshot, bool) { return s, true }})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	found, err := inspect.Doctor(t.Context(), dir, false, "")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, f := range found.Findings {
		text += f.Name + ": " + f.Text + "\n"
	}
	return text
}

func shownMetrics(s status.Snapshot) string {
	answer := httptest.NewRecorder()
	metrics.Handler(func() []status.Snapshot { return []status.Snapshot{s} }).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	return answer.Body.String()
}
