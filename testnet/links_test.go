package testnet

import (
	"strings"
	"testing"
	"time"

	"atoll/node/status"
	"atoll/testnet/nodelink"
	"atoll/testnet/shaping"
)

// The last that names a node wins, and what names none is for all.
func TestLinksOfNodes(t *testing.T) {
	ls, err := parseLinks([]string{"rate=8kbit,delay=40ms", "1,3-4:up=16kbit", "3:delay=1ms"})
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[int]string{
		0: "rate=8kbit,delay=40ms", 1: "up=16kbit", 3: "delay=1ms", 4: "up=16kbit", 9: "rate=8kbit,delay=40ms",
		nodelink.NoNode: "rate=8kbit,delay=40ms",
	} {
		if got := ls.Of(node).String(); got != want {
			t.Errorf("node %d: %s, want %s", node, got, want)
		}
	}
}

func TestLinkErrors(t *testing.T) {
	for text, want := range map[string]string{
		"100mbit":                `--link: link "100mbit": "100mbit" is no trait of a link`,
		"x:rate=1mbit":           `--link: nodes: "x": a node should stand here`,
		"1-0:rate=1mbit":         "this is no node",
		"1:":                     `"1:" names no link; write it like rate=100mbit`,
		"":                       `"" names no link`,
		":rate=1mbit":            "a node should stand here",
		"2:rate=1mbit":           "--link names node 2: there are only nodes 0 to 1, including those that join",
		"0,1:rate=1mbit":         "",
		"all:delay=20ms":         "",
		"1:delay=1ms,jitter=2ms": "jitter is 2ms: use at most the delay, 1ms",
	} {
		cfg := toyWorld(t)
		cfg.Link = []string{text}
		if err := cfg.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// A world whose links are as they are tells nodes nothing; one that changes a link shapes all.
func TestShapedWorlds(t *testing.T) {
	for _, c := range []struct{ link, chaos, want string }{
		{"", "", ""},
		{"", "slow 1 x2 @1s", ""},
		{"", "link 1 rate=8kbit @1s", "rate=none"},
		{"", "loss 1 1% @1s", "rate=none"},
		{"rate=8kbit", "", "rate=8kbit"},
	} {
		cfg := toyWorld(t)
		if cfg.Chaos = c.chaos; c.link != "" {
			cfg.Link = []string{c.link}
		}
		plan, err := planChaos(cfg)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{chaos: plan}
		if w.links, err = parseLinks(cfg.Link); err != nil {
			t.Fatal(err)
		}
		if got := w.shape(w.links.Of(0)); (got == nil) != (c.want == "") || got != nil && got.String() != c.want {
			t.Errorf("%+v: told %v", c, got)
		}
	}
}

// Chaos can only make a link that the node can have.
func TestChaosOfLinks(t *testing.T) {
	for text, want := range map[string]string{
		"link 0 rate=5mbit @60s..120s":                "",
		"link any up=5mbit,loss=1% every 60s for 20s": "",
		"link 1 jitter=10ms @1s":                      "",
		"link 0 jitter=10ms @1s":                      `--chaos "link 0 jitter=10ms @1s": link "jitter=10ms": jitter is 10ms: use at most the delay, 0s`,
		"link any jitter=10ms @1s":                    "use at most the delay",
		"loss any 30% @1s":                            "loss is 30%: use 0% to 20%",
		"link 0 speed=3 @1s":                          `"speed=3" is no trait of a link`,
		"link 7 rate=5mbit @1s":                       "there are only nodes 0 to 1",
	} {
		cfg := toyWorld(t)
		cfg.Link, cfg.Chaos = []string{"1:delay=20ms"}, text
		if err := cfg.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
}

// What an uplink could carry counts while a process runs, and follows its changes.
func TestLinkUse(t *testing.T) {
	now := time.Unix(0, 0)
	l := &life{last: status.Snapshot{Net: status.Net{SentBytes: 12_000}}}
	m := &member{lives: []*life{l}, link: shaping.Link{Up: 1000}}
	w := &world{members: []*member{m}, links: nodelink.Set{{Link: m.link}}}
	for range 10 {
		w.addCapacity(now)
		now = now.Add(time.Second)
	}
	m.link.Up = 2000
	w.addCapacity(now.Add(2 * time.Second)) // 9 s of 1000 and 3 s of 2000
	l.ended = now
	w.addCapacity(now.Add(time.Hour))
	row := NodeReport{Name: "node0"}
	w.describeLink(m, &row)
	if row.LinkUse == nil || *row.LinkUse != 0.8 || row.Link != "up=8kbit" {
		t.Errorf("%+v", row)
	}
	r := Report{Setup: Setup{Link: "up=8kbit"}, NodesReport: []NodeReport{row}}
	if got := r.linkText(); got != "up=8kbit; of what uplinks could carry, node0 80 %" {
		t.Errorf("%q", got)
	}
}
