package testnet

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/genesis"
	"atoll/testnet/baseline"
)

// baselineWorld is a small world of a baseline, of real processes.
func baselineWorld(t *testing.T, name string) Config {
	t.Helper()
	cfg := toyWorld(t)
	cfg.Binary = buildAtoll(t)
	cfg.Baseline, cfg.Nodes, cfg.Tokens, cfg.Pace = name, 3, 20_000, 5*time.Millisecond
	return cfg
}

// TestBaselines runs each baseline from start to end.
func TestBaselines(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some seconds")
	}
	for _, name := range []string{baseline.DP, baseline.DiLoCo, baseline.Local} {
		cfg := baselineWorld(t, name)
		if name == baseline.DP {
			cfg.Link = []string{"rate=1gbit,delay=1ms"}
		}
		r := runWorld(t, cfg)
		nodes := 3
		if name == baseline.Local {
			nodes = 1
		}
		if r.Baseline != name || r.Nodes != nodes || len(r.NodesReport) != nodes || r.Link != strings.Join(cfg.Link, " ") {
			t.Errorf("%s: baseline %s, %d nodes, %d rows, link %q", name, r.Baseline, r.Nodes, len(r.NodesReport), r.Link)
		}
		if r.ValBPB == nil || *r.ValBPB > 7 || r.TrainLoss == nil || r.Goodput == nil || !r.DigestsEqual || *r.Views != 1 {
			t.Errorf("%s: %+v", name, r)
		}
		if want := r.TokensFolded / uint64(nodes) / 64; *r.Steps != want || r.TokensLost != 0 || r.TokensTrained != r.TokensFolded {
			t.Errorf("%s: %d steps of %d, %d tokens trained, %d in the model, %d lost", name, *r.Steps, want, r.TokensTrained, r.TokensFolded, r.TokensLost)
		}
		checkBaselineBytes(t, name, r)
		checkBaselinePage(t, name, r)
	}
}

// checkBaselinePage looks for what the page of a baseline says, and for what it must not.
func checkBaselinePage(t *testing.T, name string, r Report) {
	t.Helper()
	b, err := os.ReadFile(r.Page)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, want := range []string{"Result of the baseline " + name, "of every member, in 1 view", `"rounds":[]`} {
		if !strings.Contains(page, want) {
			t.Errorf("%s: the page does not have %s", name, want)
		}
	}
	if share := fmt.Sprintf(`"share":%.3g`, r.NodesReport[0].Share); !strings.Contains(page, share) {
		t.Errorf("%s: the page does not have %s", name, share)
	}
	if strings.Contains(page, "rounds and deltas") {
		t.Errorf("%s: the page speaks of deltas", name)
	}
}

// checkBaselineBytes compares what the members received with what the ring takes: 2(n-1)/n of
// the vector in bfloat16, for each member and round, and something for all else.
func checkBaselineBytes(t *testing.T, name string, r Report) {
	t.Helper()
	rounds := float64(*r.Steps)
	if name == baseline.DiLoCo {
		rounds = (rounds + 3) / 4 // H of toyWorld
	}
	vector := rounds * 2 * float64(r.Nodes-1) * float64(r.Params) * 2
	if got := float64(r.BytesReceived); got < vector || got > 1.5*vector+100_000 {
		t.Errorf("%s: %.0f bytes received, the vectors take %.0f", name, got, vector)
	}
}

// TestBaselineSurvivesAKill: a member is killed and comes back, with real processes.
func TestBaselineSurvivesAKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some seconds")
	}
	for _, name := range []string{baseline.DP, baseline.DiLoCo} {
		cfg := baselineWorld(t, name)
		cfg.Tokens, cfg.Pace, cfg.Chaos = 3*7*50*64, 20*time.Millisecond, "kill 1 @20%, start 1 @40%"
		r := runWorld(t, cfg)
		if r.Kills != 1 || *r.Views < 3 || len(r.RecoverS) != 1 || len(r.NodesReport) != 3 {
			t.Errorf("%s: %d kills, %d views, recovered in %v, %d rows", name, r.Kills, *r.Views, r.RecoverS, len(r.NodesReport))
		}
		if r.TokensTrained != r.TokensFolded+r.TokensLost {
			t.Errorf("%s: %s", name, r.baselineAccountText())
		}
	}
}

// TestShapedWorld: atoll itself runs over shaped links.
func TestShapedWorld(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes that train for some seconds")
	}
	cfg := baselineWorld(t, Atoll)
	cfg.Link, cfg.Pace = []string{"rate=1gbit,delay=1ms"}, 15*time.Millisecond
	if r := runWorld(t, cfg); r.Link != strings.Join(cfg.Link, " ") || r.Views != nil {
		t.Errorf("link %q, views %v", r.Link, r.Views)
	}
}

func TestBaselineConfigErrors(t *testing.T) {
	for want, c := range map[string]Config{
		`--baseline is "ring": use atoll, dp, diloco, local`: {Baseline: "ring"},
		"--link: link":        {Link: []string{"speed=1%"}},
		"damaged memory":      {Baseline: baseline.DP, Chaos: "corrupt 1 @1s"},
		"always has one node": {Baseline: baseline.Local, Chaos: "join @1s"},
		"only nodes 0 to 0":   {Baseline: baseline.Local, Chaos: "kill 1 @1s, start 1 @2s"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (Config{Baseline: baseline.Local, Nodes: 7, Chaos: "kill 0 @1s, start 0 @2s"}).Validate(); err != nil {
		t.Errorf("local: %v", err)
	}
}

func TestOuterSettingsReachTheGenesis(t *testing.T) {
	for name, c := range map[string]struct {
		cfg     Config
		eta, mu float64
	}{
		"atoll":                  {Config{}, 0.8, 0.6},
		"atoll, H = 4":           {Config{H: 4}, 1, 0},
		"atoll, sparse":          {Config{Codec: "sparse"}, 1, 0},
		"atoll, sparse8":         {Config{Codec: "sparse8"}, 0.8, 0.6},
		"atoll, H = 4, sparse8":  {Config{H: 4, Codec: "sparse8"}, 1, 0},
		"thirty-two, in turns":   {Config{Nodes: 32}, 0.4, 0.6},
		"diloco of thirty-two":   {Config{Nodes: 32, Baseline: baseline.DiLoCo}, 0.8, 0.6},
		"diloco":                 {Config{Baseline: baseline.DiLoCo}, 0.8, 0.6},
		"diloco, atoll's sparse": {Config{Baseline: baseline.DiLoCo, Codec: "sparse"}, 0.8, 0.6},
		"diloco, H = 4":          {Config{Baseline: baseline.DiLoCo, H: 4}, 1, 0},
		"diloco, H = 4, sparse8": {Config{Baseline: baseline.DiLoCo, H: 4, Codec: "sparse8"}, 1, 0},
	} {
		if p := settingsOf(t, c.cfg).OuterParams(); p.Eta != c.eta || p.Mu != c.mu {
			t.Errorf("%s: eta %v, mu %v, want %v, %v", name, p.Eta, p.Mu, c.eta, c.mu)
		}
	}
	for want, c := range map[int]Config{24: {}, 4: {Codec: "sparse"}, 12: {Codec: "sparse", H: 12}} {
		if h := settingsOf(t, c).Outer.H; h != want {
			t.Errorf("codec %q: H = %d, want %d", c.Codec, h, want)
		}
	}
	for _, h := range []int{4, 24, 2000} {
		if o := settingsOf(t, Config{H: h}).OuterParams(); o.H != h || o.HMin != h/4 {
			t.Errorf("H = %d: %d, at least %d", h, o.H, o.HMin)
		}
	}
}

// settingsOf is the genesis of a world without its data.
func settingsOf(t *testing.T, c Config) genesis.Genesis {
	t.Helper()
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	g, err := settings(c, genesis.Text{}, time.UnixMilli(0))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestBaselineReportHasNoDeltas: what a baseline does not have is absent, never zero, and
// all else is there and can be read back.
func TestBaselineReportHasNoDeltas(t *testing.T) {
	r := someReport()
	steps, views := uint64(7), uint64(1)
	r.Baseline, r.Steps, r.Views, r.Trace = baseline.DP, &steps, &views, nil
	absent := []string{"trace", "tokens_returned", "tokens_discarded", "tokens_lost_here", "tokens_unpublished", "rounds", "deltas", "late", "refused", "corruptions", "chain_digest", "chain_equal"}
	have := fields(t, r)
	for _, name := range absent {
		if slices.Contains(have, name) {
			t.Errorf("the report of a baseline has %q", name)
		}
	}
	r.Amplification, r.EndDeltasS = nil, nil
	for _, name := range append(slices.Clone(documented), "steps", "views") {
		if !slices.Contains(absent, name) && !slices.Contains(have, name) {
			t.Errorf("the report of a baseline has no %q", name)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again Report
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if again.TokensFolded != r.TokensFolded || again.Baseline != r.Baseline || !reflect.DeepEqual(again.NodesReport[0].Time, r.NodesReport[0].Time) {
		t.Errorf("read back: %+v", again)
	}
	var rows struct {
		NodesReport []map[string]any `json:"nodes_report"`
	}
	if err := json.Unmarshal(b, &rows); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"tokens_returned", "tokens_discarded"} {
		if _, ok := rows.NodesReport[0][name]; ok {
			t.Errorf("a row of a baseline has %q", name)
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "7 of every member, in 1 view") || strings.Contains(text.String(), "deltas") {
		t.Errorf("%v\n%s", err, text.String())
	}
}
