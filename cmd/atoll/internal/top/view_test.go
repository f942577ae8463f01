package top

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"atoll/node/status"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func id(i int) string {
	return fmt.Sprintf("%02x%s", 17*i%251, strings.Repeat(fmt.Sprintf("%02x", i), 31))
}

// nodeOf is the status of node i of n after so many seconds.
func nodeOf(i, n, second int) Node {
	at := start.Add(time.Duration(second) * time.Second)
	s := status.Snapshot{
		Identity: status.Identity{Version: "atoll/0.1", Run: id(99), Name: "opticks", Self: id(i), Role: "learner", State: "training", Started: start.Add(-time.Minute), At: at},
		Progress: status.Progress{
			Model: "tiny", Params: 824448, Optimizer: "muon", BudgetTokens: 3_000_000, TokensFolded: uint64(10_000 * second), TokensPerS: 10_000,
			ETASeconds: float64(300 - second), Step: int64(4 * second), TokensTrained: uint64(2600 * second), TrainLoss: 2 + 20/float64(second+8),
		},
		Agreement: status.Agreement{Agreed: true},
		Net:       status.Net{SentBytes: uint64(120_000 * second), ReceivedBytes: uint64(360_000 * second)},
	}
	if i == 0 {
		s.ValBPB, s.ValBytes, s.ValAtTokens = 2.1+40/float64(second+10), 16384, s.TokensFolded
	}
	for p := range 8 {
		s.Fragments = append(s.Fragments, status.Fragment{Closed: uint32((second + p) / 8), Contributors: min(n, 4), Params: 103056})
	}
	for j := range n {
		s.Peers = append(s.Peers, peer((i+j)%n, n, j == 0))
	}
	return Node{Name: fmt.Sprintf("node%d", i), Running: true, Status: s}
}

func peer(i, n int, self bool) status.Peer {
	p := status.Peer{
		ID: id(i), Self: self, Role: "learner", State: "training", Hardware: []string{"AMD EPYC 9R14 (2 threads)", "1 x NVIDIA H100", "Apple M3 (8 threads)"}[i%3], Trainer: []string{"atoll", "atoll.torch 0.1.0"}[i%2],
		Precision: "f32", Steps: uint64(900 + 13*i), Tokens: uint64(400_000 + 7000*i), TokensPerS: 11_000 / float64(n), Share: 1 / float64(n),
		Upload: 2.5e6, UploadFull: i%2 == 0,
	}
	if !self {
		p.LagS, p.Link, p.Addr = 0.3+0.1*float64(i%9), status.LinkDirect, fmt.Sprintf("/ip4/192.0.2.%d/tcp/4001", i)
		if i%5 == 3 {
			p.Link, p.Relay = status.LinkRelayed, "192.0.2.99:443"
		}
	}
	return p
}

func happened(n *Node, second int, kind, peer, text string) {
	n.Status.Events = append(n.Status.Events, status.Event{At: start.Add(time.Duration(second) * time.Second), Kind: kind, Peer: peer, Text: text})
}

// play gives a history the polls of a scene, one a second.
func play(seconds int, scene func(second int) []Node) *History {
	h := &History{}
	for second := range seconds {
		nodes := scene(second)
		for i := range nodes {
			clean(&nodes[i].Status)
		}
		h.Add(start.Add(time.Duration(second)*time.Second), nodes)
	}
	return h
}

// scenes are what goldens show.
var scenes = map[string]func() *History{
	"empty": func() *History { return &History{} },
	"joining": func() *History {
		return play(3, func(second int) []Node {
			n := nodeOf(0, 1, 0)
			n.Status.State, n.Status.Stage, n.Status.Fragments, n.Status.TokensPerS, n.Status.ETASeconds = "joining", "fetching snapshot (43 %)", nil, 0, 0
			n.Status.ValBPB, n.Status.TrainLoss = 0, 0
			n.Status.Peers = []status.Peer{{ID: id(0), Self: true, State: "joining", Hardware: "AMD EPYC 9R14 (2 threads)", Trainer: "atoll"}}
			happened(&n, 1, "addresses", "", "only this network reaches this node as yet, at /ip4/192.168.1.5/tcp/27182")
			return []Node{n}
		})
	},
	"four": func() *History {
		return play(120, func(second int) []Node {
			n := nodeOf(0, 4, second)
			for i, name := range []string{"lab", "Lab", "Johns-MacBook-Pro of Sales"} {
				n.Status.Peers[i].Name = name
			}
			status.Label(n.Status.Peers)
			happened(&n, 1, "connected", id(1), "learner at /ip4/192.0.2.1/tcp/4001")
			happened(&n, 2, "connected", id(2), "learner at /ip4/192.0.2.2/tcp/4001")
			happened(&n, 9, "contributing", "", "first own delta is folded")
			return []Node{n}
		})
	},
	"testnet": func() *History {
		return play(120, func(second int) []Node {
			var nodes []Node
			for i := range 4 {
				nodes = append(nodes, nodeOf(i, 4, second))
			}
			happened(&nodes[2], 30, "connected", id(1), "learner at /ip4/192.0.2.1/tcp/4001")
			nodes[3].Running = second < 100
			return nodes
		})
	},
	"forty": func() *History {
		return play(60, func(second int) []Node { return []Node{nodeOf(0, 40, second)} })
	},
	"partition": func() *History {
		return play(90, func(second int) []Node {
			n := nodeOf(0, 4, second)
			for _, i := range []int{2, 3} {
				n.Status.Peers[i].State, n.Status.Peers[i].LagS = status.Gone, 31
				n.Status.Peers[i].Link = ""
			}
			n.Status.Alarms = status.AlarmsOf(n.Status)
			return []Node{n}
		})
	},
	"alarm": func() *History {
		return play(90, func(second int) []Node {
			n := nodeOf(0, 4, second)
			happened(&n, 80, "state differs", id(2), "this peer folded the same deltas to another state")
			n.Status.Events[len(n.Status.Events)-1].Remedy = "wait: the two compare, and it is said whose is wrong"
			n.Status.Alarms = status.AlarmsOf(n.Status)
			return []Node{n}
		})
	},
}

var sizes = []Screen{{Width: 80, Height: 24}, {Width: 160, Height: 50}}

// checkSize fails if a drawing is larger than the terminal, or could move its cursor.
func checkSize(t interface {
	Helper()
	Errorf(string, ...any)
}, text string, s Screen) {
	t.Helper()
	lines := strings.Split(text, "\n")
	if len(lines) > s.Height {
		t.Errorf("%d lines on %d", len(lines), s.Height)
	}
	for _, l := range lines {
		if w := ansi.StringWidth(l); w > s.Width {
			t.Errorf("a line of %d columns on %d: %q", w, s.Width, l)
		}
		if plainLine := ansi.Strip(l); !s.Colour && plainLine != l || strings.ContainsFunc(plainLine, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
			t.Errorf("control characters in %q", l)
		}
	}
}

func TestGoldens(t *testing.T) {
	for name, scene := range scenes {
		for _, s := range sizes {
			got := View(scene(), s)
			checkSize(t, got, s)
			path := filepath.Join("testdata", fmt.Sprintf("%s-%dx%d.txt", name, s.Width, s.Height))
			if *update {
				if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				continue
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got+"\n" != string(want) {
				t.Errorf("%s is not as drawn now; look at it and run with -update:\n%s", path, got)
			}
		}
	}
}

// Whatever is shown fits a terminal of any size, with colours and without, and colours change no text.
func TestFitsAnyTerminal(t *testing.T) {
	histories := map[string]*History{}
	for name, scene := range scenes {
		histories[name] = scene()
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"empty", "joining", "four", "testnet", "forty", "partition", "alarm"}).Draw(t, "scene")
		s := Screen{Width: rapid.IntRange(0, 220).Draw(t, "width"), Height: rapid.IntRange(0, 70).Draw(t, "height"), First: rapid.IntRange(-5, 60).Draw(t, "first")}
		text := View(histories[name], s)
		if s.Width < 1 || s.Height < 1 {
			if text != "" {
				t.Fatalf("%q on nothing", text)
			}
			return
		}
		checkSize(t, text, s)
		s.Colour = true
		painted := View(histories[name], s)
		checkSize(t, painted, s)
		if ansi.Strip(painted) != text {
			t.Fatalf("colours change the text:\n%s\n%s", ansi.Strip(painted), text)
		}
		s.Colour, s.ASCII = false, true
		ascii := View(histories[name], s)
		checkSize(t, ascii, s)
		if strings.ContainsFunc(ascii, func(r rune) bool { return r >= 0x80 }) || strings.Contains(ascii, "?") {
			t.Fatalf("no ASCII: %s", ascii)
		}
	})
}

// What a peer says of itself cannot move the cursor, change colours, or take more lines or columns than
// any other text.
func TestHostilePeers(t *testing.T) {
	nasty := []string{
		"\x1b[2J\x1b[Hgone", "a\r\nb\nc", "\x9b31m", "\u202eevil", "\u200b\u200d\ufeff", strings.Repeat("e\u0301\u0302\u0303", 200), "\x00\x07\x08\x7f",
		"\x1b]0;title\x07", "\xff\xfe", strings.Repeat("\u5bbd", 300), "tab\tbed", "\U0001f469\u200d\U0001f4bb\U0001f469\u200d\U0001f4bb",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.SampledFrom(nasty), rapid.String()).Draw(t, "text")
		h := play(20, func(second int) []Node {
			n := nodeOf(0, 4, second)
			n.Status.Name, n.Status.Stage = text, text
			n.Status.Peers[1].Hardware, n.Status.Peers[1].Trainer = text, text
			n.Status.Peers[2].State, n.Status.Peers[2].Reason, n.Status.Peers[2].Link = text, text, text
			n.Status.Peers[3].ID, n.Status.Peers[3].Addr = "", text
			happened(&n, 15, text, text, text)
			return []Node{n}
		})
		for _, s := range append(sizes, Screen{Width: 33, Height: 15}) {
			got := View(h, s)
			checkSize(t, got, s)
			if strings.ContainsAny(got, "\x1b\u202e\u200b\u200d\ufeff\u0301") {
				t.Fatalf("%q", got)
			}
		}
	})
}

// All of the forty peers can be reached with the keys, and each is on the screen once.
func TestGuestsOfTheTable(t *testing.T) {
	n := nodeOf(0, 3, 9)
	n.Status.Peers[2].Guest = true
	h := &History{}
	h.Add(start, []Node{n})
	table := strings.Join(Screen{Width: 100}.peers(h.rows(), 9), "\n")
	if strings.Count(table, "training, guest ") != 1 || strings.Count(table, "training") != 3 {
		t.Error(table)
	}
}

func TestPeersScroll(t *testing.T) {
	h := scenes["forty"]()
	seen := map[string]bool{}
	for first := range 40 {
		text := View(h, Screen{Width: 80, Height: 24, First: first})
		for i := range 40 {
			if n := strings.Count(text, short(id(i))); n > 1 {
				t.Fatalf("%s is there %d times:\n%s", id(i), n, text)
			} else if n == 1 {
				seen[id(i)] = true
			}
		}
	}
	if len(seen) != 40 {
		t.Errorf("%d of 40 peers can be seen", len(seen))
	}
}
