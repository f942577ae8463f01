package testnet

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/optimizer/trainer/corpus"
	"atoll/tensor/codec"
	"atoll/testnet/baseline"
)

func TestConfigErrorsNameTheFlag(t *testing.T) {
	for want, c := range map[string]Config{
		"--nodes is -1":                     {Nodes: -1},
		"--nodes is 1000":                   {Nodes: 1000},
		"--speed has the divisor 0.5":       {Speed: []float64{1, 0.5}},
		"--speed has the divisor NaN":       {Speed: []float64{nan()}},
		"--pace is -1s":                     {Pace: -time.Second},
		"--timeout is -1s":                  {Timeout: -time.Second},
		"--lr is 11":                        {LR: 11},
		"--h is -1":                         {H: -1},
		"--h is 100000":                     {H: 100000},
		"--fragments is -1":                 {Fragments: -1},
		"--fragments is 39":                 {Fragments: 39},
		"--batch is -1":                     {Batch: -1},
		"--batch is 100000":                 {Batch: 100000},
		"--lr is NaN":                       {LR: nan()},
		`model "huge"`:                      {Model: "huge"},
		`--optimizer: optimizer "sgd"`:      {Optimizer: "sgd"},
		`--codec: codec "int3"`:             {Codec: "int3"},
		`"explode": there is no such event`: {Chaos: "explode 1 @1s"},
		"there are only nodes 0 to 3,":      {Chaos: "leave 4 @1s"},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if err := (Config{}).Validate(); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func nan() float64 { var zero float64; return zero / zero }

func TestDivisorsRepeat(t *testing.T) {
	c := Config{Speed: []float64{1, 4}}
	if got := []float64{c.divisor(0), c.divisor(1), c.divisor(2), c.divisor(3)}; !slices.Equal(got, []float64{1, 4, 1, 4}) {
		t.Errorf("divisors %v", got)
	}
}

func TestMakeDirRefusesAnEarlierWorld(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "world")
	got, err := makeDir(dir)
	if err != nil || got != dir {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := makeDir(dir); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, genesisFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := makeDir(dir); err == nil || !strings.Contains(err.Error(), "remove it or choose another folder") {
		t.Errorf("a folder with a world in it: %v", err)
	}
}

func TestGenesisOfAWorld(t *testing.T) {
	c, err := Config{Tokens: 5000, Seed: 3, H: 8, Fragments: 4, Batch: 2, Optimizer: "muon", Codec: "sparse", LR: 1e-3}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	data := corpus.New("text", make([]byte, 4000))
	g, err := Genesis(c, data, time.UnixMilli(1234))
	if err != nil {
		t.Fatal(err)
	}
	o := g.OuterParams()
	if o.Codec != codec.Sparse || o.H != 8 || o.HMin != 2 || o.Fragments != 4 || o.Budget != 5000 || o.CreatedMs != 1234 || g.Batch != 2 || g.Inner.LR != 1e-3 || g.Inner.Optimizer != "muon" || g.Seed != 3 {
		t.Errorf("%+v", g)
	}
	if g.WayMs != 1 || g.Data.SHA256 != data.SHA256() {
		t.Errorf("%+v", g)
	}
	c.Fragments = 100
	if _, err := Genesis(c, data, time.UnixMilli(1234)); err == nil || !strings.Contains(err.Error(), "--fragments is 100: the model has only 38 tensors") {
		t.Errorf("more fragments than tensors: %v", err)
	}
	c.Fragments = 4
	if _, err := Genesis(c, corpus.New("text", make([]byte, 100)), time.UnixMilli(1234)); err == nil || !strings.Contains(err.Error(), "pass at least") {
		t.Errorf("a text that is too short: %v", err)
	}
}

// Baselines without outer steps, and those with momentum or without, each have the rate that measured best with them.
func TestRatesOfBaselines(t *testing.T) {
	for _, c := range []struct {
		Config
		want float64
	}{
		{Config{}, 0.004}, {Config{H: 4}, 0.008}, {Config{Codec: "sparse"}, 0.008},
		{Config{Baseline: baseline.DP}, 0.0057}, {Config{Baseline: baseline.Local}, 0.0057}, {Config{Baseline: baseline.DiLoCo}, 0.004}, {Config{Baseline: baseline.DiLoCo, H: 4}, 0.008},
		{Config{LR: 0.03}, 0.03},
	} {
		c.Optimizer = "muon"
		filled, err := c.withDefaults()
		if err != nil {
			t.Fatal(err)
		}
		g, err := Genesis(filled, corpus.New("text", make([]byte, 4000)), time.UnixMilli(1234))
		if err != nil || g.Inner.LR != c.want {
			t.Errorf("%+v: a rate of %v, want %v, %v", c.Config, g.Inner.LR, c.want, err)
		}
	}
}

func TestChildEnv(t *testing.T) {
	got := childEnv([]string{"PATH=/bin", "ATOLL_DIR=x", "ATOLL_KERNEL=go", "HOME=/"})
	if want := []string{"PATH=/bin", "ATOLL_KERNEL=go", "HOME=/"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestLogTail(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("early\n", 10_000) + "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nlast\n"
	if err := os.WriteFile(filepath.Join(dir, logFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := logTail(dir); got != "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nlast" {
		t.Errorf("%q", got)
	}
}
