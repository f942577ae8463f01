package node

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

func TestConfigNamesTheField(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(*Config)
	}{
		{"Dir is empty", func(c *Config) { c.Dir = "" }},
		{"Threads is -1", func(c *Config) { c.Threads = -1 }},
		{"Batch is -1", func(c *Config) { c.Batch = -1 }},
		{"Pace is -1ns", func(c *Config) { c.Pace = -1 }},
		{"peer \"nobody\"", func(c *Config) { c.Peers = []string{"nobody"} }},
		{"peer \"\"", func(c *Config) { c.Link.Peers = []string{""} }},
	} {
		cfg := Config{Dir: "x"}
		c.spoil(&cfg)
		if _, err := cfg.withDefaults(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	cfg, err := Config{Dir: "x"}.withDefaults()
	if err != nil || cfg.Log == nil || cfg.Profile == "" || cfg.JoinWithin == 0 || cfg.AloneAfter == 0 || cfg.EvalEvery == 0 {
		t.Errorf("defaults %+v, %v", cfg, err)
	}
}

func TestModelFitsMemory(t *testing.T) {
	n := &node{genesis: fixedGenesis()}
	for _, c := range []struct {
		observe bool
		have    uint64
		fits    bool
	}{
		{false, 0, true}, // the system does not say
		{false, 1 << 30, true},
		{false, 10 << 20, false},
		{true, 10 << 20, true},
		{true, 1 << 20, false},
	} {
		n.cfg.Observe = c.observe
		if err := n.fits(c.have); (err == nil) != c.fits || err != nil && !strings.Contains(err.Error(), "use a larger machine") {
			t.Errorf("observer %v with %d MiB: %v", c.observe, c.have>>20, err)
		}
	}
}

func TestPassRows(t *testing.T) {
	for _, c := range []struct {
		batch, micro  int
		secondsPerRow float64
		want          int
	}{
		{8, 0, 0.01, 8}, // fast: all at once
		{8, 4, 0.01, 4}, // memory bounds it
		{8, 0, 0.3, 2},  // a divisor of the batch
		{7, 0, 0.3, 1},
		{4, 2, 60, 1}, // no less than a row
	} {
		if got := passRows(c.batch, c.micro, c.secondsPerRow); got != c.want {
			t.Errorf("%d rows, %d at once, %v s each: %d, want %d", c.batch, c.micro, c.secondsPerRow, got, c.want)
		}
	}
}

// Peers keep the record with the higher number, so a restart must not count
// from the start again.
func TestRecordNumbersGrowOverRestarts(t *testing.T) {
	var last uint64
	for _, started := range []int64{1_700_000_000_000, 1_700_000_001_000} {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
		n := &node{key: key, self: wire.PeerIDOf(key), cfg: Config{Observe: true}}
		r := n.firstRecord()
		r.StartedMs = started
		box := &recordBox{key: key}
		for range 3 {
			if err := box.set(r); err != nil {
				t.Fatal(err)
			}
			got, err := box.latest().Open()
			if err != nil || got.Seq <= last || got.Seq != box.seq() {
				t.Errorf("number %d after %d, %v", got.Seq, last, err)
			}
			last = got.Seq
			if err := box.change(func(r *hello.Record) { r.Addrs = limitAddrs(make([]string, 0)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Folds and drops that were wanted before tips of another chain came must not
// touch the new ones.
func TestInstallOvertakesFolds(t *testing.T) {
	l := newLedger(t).rounds(2)
	defer l.close()
	n := l.loader()
	n.tips.put(0, l.tips[0])
	before := n.tips.epoch
	n.tips.epoch++
	n.dropBase(outer.DropBase{Fragment: 0, Round: 2}, before, 3)
	if _, err := n.tips.get(0, 2); err != nil {
		t.Errorf("dropped by an old wish: %v", err)
	}
	want := outer.WantFold{Fragment: 0, Start: 2, Sets: [][]outer.Delta{{}}}
	if _, err := n.foldAndKeep(t.Context(), want, before); err == nil {
		t.Error("folded by an old wish")
	}
	if _, err := l.store.Round(0, 3); err == nil {
		t.Error("an old wish went into the record")
	}
	if _, err := n.foldAndKeep(t.Context(), want, n.tips.epoch); err != nil {
		t.Error(err)
	}
	n.dropBase(outer.DropBase{Fragment: 0, Round: 2}, n.tips.epoch, 3)
	if _, err := n.tips.get(0, 2); err == nil {
		t.Error("not dropped")
	}
}
