package node

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
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

// Peers keep the record with the higher number, so a restart must not count
// from the start again.
func TestRecordNumbersGrowOverRestarts(t *testing.T) {
	var last uint64
	for _, started := range []int64{1_700_000_000_000, 1_700_000_001_000} {
		key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
		n := &node{identity: identity{key: key, self: wire.PeerIDOf(key)}, cfg: Config{Observe: true}}
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
			if err := box.change(func(r *hello.Record) { r.Addrs = hello.FirstAddrs(make([]string, 0)) }); err != nil {
				t.Fatal(err)
			}
		}
	}
}
