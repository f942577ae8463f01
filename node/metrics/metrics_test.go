package metrics

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"atoll/node/status"
)

// full is a status in which every number is there.
func full(self string) status.Snapshot {
	at := time.Unix(1_700_000_000, 0)
	return status.Snapshot{
		Identity:  status.Identity{Version: "atoll/0.1", Run: "57e73ea93cc78517", Name: "opticks \"\xff\"\n", Self: self, Role: "learner", State: "training", Started: at, At: at.Add(time.Minute)},
		Progress:  status.Progress{Model: "tiny", Params: 8, Optimizer: "muon", BudgetTokens: 2e6, TokensFolded: 1e6, TokensPerS: 5, ETASeconds: 3, Step: 7, TokensTrained: 9, TrainLoss: 1.5, ValBPB: 2.5, ValLoss: 1.25, ValAtTokens: 11, LearningRate: 0.02},
		Plan:      status.Plan{Planned: 24},
		Fragments: []status.Fragment{{Closed: 3, Contributors: 2, Params: 1}, {Closed: 4, Contributors: 2, Params: 3}},
		Peers: []status.Peer{{ID: self, Label: "here", Self: true, Share: 0.5, State: "training"}, {ID: "aaaabbbbcccc", Label: "lab 2", Share: 0.25, State: status.Gone, LagS: 9, SentBytes: 3000, ReceivedBytes: 4000}, {ID: "bbbbccccdddd", State: status.Paused, Link: status.LinkRelayed},
			{ID: "ccccddddeeee", State: "training", Link: status.LinkDirect}, {State: "refused"}},
		Account: status.Account{Rounds: 3, OwnFolded: []uint64{4, 8}},
		Time:    status.TimeAccount{Step: 50, Total: 60},
		Net:     status.Net{SentBytes: 1, ReceivedBytes: 2, ByProtocol: map[string]uint64{"gossip": 1}},
		Limits:  status.Limits{Quota: &status.Quota{Left: 5}},
		Data:    &status.Data{MissingBytes: 6, UsedBytes: 7},
		Process: status.Process{RSSBytes: 1, Goroutines: 2, OpenFiles: 3},
		Alarms:  []status.Alarm{{Kind: status.AlarmSilent}},
	}
}

// scraped is what Prometheus reads of some statuses.
func scraped(t *testing.T, all ...status.Snapshot) string {
	t.Helper()
	w := httptest.NewRecorder()
	Handler(func() []status.Snapshot { return all }).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	b, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("%d, %v: %s", w.Code, err, b)
	}
	return string(b)
}

func TestMetrics(t *testing.T) {
	text := scraped(t, full("11112222333344445555"))
	for _, want := range []string{
		`atoll_run_folded_tokens{node="1111222233"} 1e+06`,
		`atoll_validation_bpb{node="1111222233"} 2.5`,
		`atoll_own_tokens{node="1111222233",part="folded"} 7`,
		`atoll_training_seconds_total{activity="step",node="1111222233"} 50`,
		`atoll_peers{node="1111222233",state="live"} 1`,
		`atoll_peers{node="1111222233",state="gone"} 1`,
		`atoll_peers{node="1111222233",state="paused"} 1`,
		`atoll_peers{node="1111222233",state="refused"} 1`,
		`atoll_connections{kind="relayed",node="1111222233"} 1`,
		`atoll_peer_lag_seconds{name="lab 2",node="1111222233",peer="aaaabbbbcc"} 9`,
		`atoll_peer_sent_bytes_total{name="lab 2",node="1111222233",peer="aaaabbbbcc"} 3000`,
		`atoll_peer_received_bytes_total{name="lab 2",node="1111222233",peer="aaaabbbbcc"} 4000`,
		`atoll_state{node="1111222233",state="training"} 1`,
		`atoll_state{node="1111222233",state="joining"} 0`,
		`atoll_alarms{kind="silent",node="1111222233"} 1`,
		`atoll_fragment_closed_rounds{fragment="1",node="1111222233"} 4`,
		`run_name="opticks \"\"\n"`,
		`atoll_info{model="tiny",name="here",`,
		`# TYPE atoll_sent_bytes_total counter`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s", want)
		}
	}
	absent := full("1")
	absent.ValBPB = 0
	if strings.Contains(scraped(t, absent), "atoll_validation_bpb") {
		t.Error("what was not measured is there as 0")
	}
}

// Names and types are as Prometheus wants them.
func TestMetricsAreConventional(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scraped(t, full("11112222")))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// The nodes of a testnet, one of which is there twice, and more peers than have series.
func TestManyNodes(t *testing.T) {
	crowd := full("aaaa0000")
	for i := range 3 * maxPeers {
		crowd.Peers = append(crowd.Peers, status.Peer{ID: fmt.Sprintf("%08x", i), State: "training", TokensFolded: float64(i)})
	}
	text := scraped(t, crowd, full("bbbb0000"), full("bbbb0000"), full(""))
	if n := len(regexp.MustCompile(`atoll_peer_share_ratio{name="(here|lab 2)?",node="aaaa0000"`).FindAllString(text, -1)); n != maxPeers {
		t.Errorf("%d peers have series, want %d", n, maxPeers)
	}
	if !strings.Contains(text, fmt.Sprintf(`atoll_peer_share_ratio{name="",node="aaaa0000",peer="%08x"}`, 3*maxPeers-1)) {
		t.Error("the peer that contributed most has no series")
	}
	if n := strings.Count(text, "atoll_run_folded_tokens{"); n != 3 {
		t.Errorf("%d nodes, want 3", n)
	}
	if text := scraped(t); text != "" {
		t.Errorf("of no node: %q", text)
	}
}

// Every metric that the dashboard names exists, and every panel shows one.
func TestDashboard(t *testing.T) {
	w := httptest.NewRecorder()
	Dashboard().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/grafana.json", nil))
	var board struct {
		Title  string
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(w.Body.Bytes(), &board); err != nil || len(board.Panels) < 10 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	names, there := regexp.MustCompile(`atoll_[a-z_]+`), map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(scraped(t, full("1")), -1) {
		there[name[1]] = true
	}
	for _, p := range board.Panels {
		named := 0
		for _, target := range p.Targets {
			for _, name := range names.FindAllString(target.Expr, -1) {
				if named++; !there[name] {
					t.Errorf("panel %q asks for %s, which is not there", p.Title, name)
				}
			}
		}
		if named == 0 {
			t.Errorf("panel %q shows nothing", p.Title)
		}
	}
	for _, name := range names.FindAllString(w.Body.String(), -1) {
		if !there[name] {
			t.Errorf("the dashboard names %s, which is not there", name)
		}
	}
}
