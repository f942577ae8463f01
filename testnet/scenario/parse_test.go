package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// What cannot be understood is named by file, line and word, with what to write
// instead.
func TestErrorsSayWhatToWrite(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "s.txt: it does not say how many nodes there are; add a line such as `nodes 4`"},
		{"nodes", "s.txt:1: the line ends where the number of nodes, a whole number, should stand"},
		{"nodes 0", `s.txt:1: "0": the number of nodes is a whole number from 1 to 100`},
		{"nodes 3\nnodes 4", `s.txt:2: "nodes": it is set on line 1 already; remove one of the two`},
		{"nodes 3 fast", `s.txt:1: "fast": nodes have no such trait; use slow, observer,`},
		{"nodes 3\nnode 3 slow 2", `s.txt:2: "3": there is no such node at the start`},
		{"nodes 3\nnode x slow 2", `s.txt:2: "x": a node should stand here: a number from 0, a range such as 1-4, or all`},
		{"nodes 3\nnode 4-2 slow 2", `s.txt:2: "4-2": this is no node`},
		{"nodes 3\nsneeze", `s.txt:2: "sneeze": no line begins with this word; use one of C, H,`},
		{"nodes 3\nstep 0s", `s.txt:2: "0s": a step is a time from 1ms to 24h`},
		{"nodes 3\nstep 5", `s.txt:2: "5": a step is a time from 1ms to 24h such as 40s, 1.5s or 250ms`},
		{"nodes 3\nlink loss 100%", `s.txt:2: "100%": the loss is a share of at least 0% and below 100%`},
		{"nodes 3\nlink colour", `s.txt:2: "colour": links have no such trait`},
		{"nodes 3\nlink uplink 5", `s.txt:2: "5": the uplink is a rate of at least 1kB/s`},
		{"nodes 3\nlink rate=5", `s.txt:2: "rate=5": link "rate=5": "5" is not the rate of a link`},
		{"nodes 3\nnode 1 link fast", `s.txt:2: "fast": links have no such trait`},
		{"nodes 3\npayload 1B", `s.txt:2: "1B": a payload is an amount from 2kB to 16MB such as 100kB`},
		{"nodes 3\nrounds 5\nsteps 5", "s.txt:3: the budget is set in rounds on line 2; remove one of the two"},
		{"nodes 3\nh_min 9", `s.txt:2: "h_min": outer: HMin is 9; use 1 to 8`},
		{"nodes 3\ncodec gif", `s.txt:2: "gif": codec "gif" is unknown`},
		{"nodes 3\nnode 1 attack tickle", `s.txt:2: "tickle": an attack is one of [bare-headers bought-run`},
		{"nodes 3\nat 5s", "s.txt:2: the line ends where an event should stand"},
		{"nodes 3\nat noon kill 1", `s.txt:2: "noon": when is a time`},
		{"nodes 3\nat 5s krash 1", `s.txt:2: "krash": there is no such event; use one of kill,`},
		{"nodes 3\nat 5s kill", "s.txt:2: a node should stand here"},
		{"nodes 3\nat 5s kill 3", `s.txt:2: "3": there is no such node at 5.0s: then they are 0 to 2`},
		{"nodes 3\nat 5s join\nat 4s kill 3", `s.txt:3: "3": there is no such node at 4.0s`},
		{"nodes 3\nat 5s partition 0 | 5", `s.txt:2: "5": there is no such node`},
		{"nodes 3\nat 5s kill 1 quietly", `s.txt:2: "quietly": the line should end before this word`},
		{"nodes 3\nat 5s kill 1 in turn", `s.txt:2: "in": ` + "`in turn` is for what happens every so often"},
		{"nodes 3\nat 5s join for 3s", `s.txt:2: "join": this has no end`},
		{"nodes 3\nat 5s slow 1 for 3s", `s.txt:2: "for": a factor such as x4 should stand here`},
		{"nodes 3\nat 5s cut 0 1", `s.txt:2: the line ends where the word ">" should stand`},
		{"nodes 3\nat 5s kill any", `s.txt:2: the simulator leaves nothing to chance`},
		{"nodes 3\nat 33% kill 1", `s.txt:2: the simulator has no shares of the tokens`},
		{"nodes 3\nat 5s loss 1 1%", `s.txt:2: the simulator knows no loss: write network,`},
		{"nodes 3\nevery 1s kill 1 for 500ms", `s.txt:2: the simulator needs to know when this ends: write every 1s from TIME to TIME`},
		{"nodes 3\nevery 1s from 2s", `s.txt:2: the line ends where the word "to" should stand`},
		{"nodes 3\nevery 1ms from 0s to 1h kill 1", `s.txt:2: "kill": this makes more than 10000 events`},
		{"nodes 3\nevery 1s from 2s to 3s merge in turn", `s.txt:2: "merge": this befalls no nodes that could take turns`},
		{"nodes 3\nexpect joy at least 1", `s.txt:2: "joy": an outcome has no such thing; use one of time, rounds, loss,`},
		{"nodes 3\nexpect idle below 1s", `s.txt:2: "below": a comparison should stand here: at most, at least, within or is`},
		{"nodes 3\nexpect idle at most 1", `s.txt:2: "1": idle is written like 1.5s`},
		{"nodes 3\nexpect lost at most 1s", `s.txt:2: "1s": lost is written like 12 or 2.5%`},
		{"nodes 3\nexpect share at least 5%", `s.txt:2: "5%": there is no share of a whole world`},
		{"nodes 3\nexpect rounds of 1 at least 5", `s.txt:2: "5": there is no rounds of a node`},
		{"nodes 3\nexpect share of 3 at least 5%", `s.txt:2: "3": there is no such node: they are 0 to 2`},
		{"nodes 3\nexpect marked 7", `s.txt:2: "7": there is no such node: they are 0 to 2`},
		{"nodes 3\nexpect idle within 1s known to fail:", `s.txt:2: "fail:": say why it is known to fail`},
		{"nodes 3\nbreaks converges", "s.txt:2: say which checker finds the broken promise"},
	} {
		_, err := Parse("s.txt", []byte(c.text))
		var e *Error
		if !errors.As(err, &e) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
	}
}

// What a script says is what the simulator gets.
func TestLinesBecomeFaults(t *testing.T) {
	for _, c := range []struct {
		text string
		want []sim.Fault
	}{
		{"at 5s kill 0 2", []sim.Fault{{At: 5000, Kind: fault.Kill}, {At: 5000, Kind: fault.Kill, Node: 2}}},
		{"at 5s kill 1 for 2s", []sim.Fault{{At: 5000, Kind: fault.Kill, Node: 1}, {At: 7000, Kind: fault.Start, Node: 1}}},
		{"at 2s start 1\nat 1s power-cut 1", []sim.Fault{{At: 1000, Kind: fault.PowerCut, Node: 1}, {At: 2000, Kind: fault.Start, Node: 1}}},
		{"every 1s from 1s to 4s pause 0-1 in turn", []sim.Fault{
			{At: 1000, Kind: fault.Pause}, {At: 2000, Kind: fault.Pause, Node: 1}, {At: 3000, Kind: fault.Pause}}},
		{"at 1s partition 0 1 | 1 2 for 1s", []sim.Fault{
			{At: 1000, Kind: fault.Partition, Parts: [][]int{{0, 1}, {1, 2}}}, {At: 2000, Kind: fault.Merge}}},
		{"at 1s cut 0 > 1-2 for 1s", []sim.Fault{
			{At: 1000, Kind: fault.Cut, Others: []int{1, 2}}, {At: 2000, Kind: fault.Mend, Others: []int{1, 2}}}},
		{"at 1s mend", []sim.Fault{{At: 1000, Kind: fault.Mend}}},
		{"at 1s join 2 slow 3", []sim.Fault{
			{At: 1000, Kind: fault.Join, Spec: sim.NodeSpec{Slow: 3}}, {At: 1000, Kind: fault.Join, Spec: sim.NodeSpec{Slow: 3}}}},
		{"at 5s kill 0 2\nat 6s start 0-2\nat 7s merge", []sim.Fault{
			{At: 5000, Kind: fault.Kill}, {At: 5000, Kind: fault.Kill, Node: 2}, {At: 6000, Kind: fault.Start}, {At: 6000, Kind: fault.Start, Node: 1},
			{At: 6000, Kind: fault.Start, Node: 2}, {At: 7000, Kind: fault.Merge}}},
		{"at 1s slow 2 x4 for 1s", []sim.Fault{{At: 1000, Kind: fault.Slow, Node: 2, Factor: 4}, {At: 2000, Kind: fault.Slow, Node: 2, Factor: 1}}},
		{"at 1s skew 2 by -1m", []sim.Fault{{At: 1000, Kind: fault.Skew, Node: 2, Factor: -60_000}}},
		{"at 1s network latency 1s loss 5% for 1s\nlink latency 7ms", []sim.Fault{
			{At: 1000, Kind: fault.Network, Link: sim.Link{LatencyMs: 1000, Loss: 0.05}}, {At: 2000, Kind: fault.Network}}},
		{"at 1s link 1 up=8kbit,delay=40ms,jitter=10ms for 1s", []sim.Fault{
			{At: 1000, Kind: fault.Link, Node: 1, Link: sim.Link{LatencyMs: 30, JitterMs: 20, BytesMs: 1}}, {At: 2000, Kind: fault.Link, Node: 1}}},
		{"at 1s upgrade 1 to protocol 2", []sim.Fault{
			{At: 1000, Kind: fault.Upgrade, Node: 1, Spec: sim.NodeSpec{Version: sim.Version{Protocol: 2}}}}},
	} {
		s, err := Parse("s.txt", []byte("nodes 3\n"+c.text))
		if err != nil {
			t.Error(err)
			continue
		}
		if !reflect.DeepEqual(s.World.Faults, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.text, s.World.Faults, c.want)
		}
		if last := c.want[len(c.want)-1].At; s.World.CalmMs != last+1 {
			t.Errorf("%s: calm at %d, the last event is at %d", c.text, s.World.CalmMs, last)
		}
	}
}

// Every setting of the outer step reaches the parameters.
func TestSettings(t *testing.T) {
	s, err := Parse("s.txt", []byte(`# in any order
rounds 10
P 2
H 4  # steps
h_min 1
W_a 5
W_u 6
C 7
grace 10ms 2s
codec f32
heartbeat 1s
seed 9
nodes 3 slow 2
node 1-2 observer drift -5
`))
	if err != nil {
		t.Fatal(err)
	}
	p, w := s.World.Params, s.World
	got := []int64{int64(p.Fragments), int64(p.H), int64(p.HMin), int64(p.WindowAccept), int64(p.WindowUnion), int64(p.LearnersPerRound),
		int64(p.Quorum), p.GraceMinMs, p.GraceMaxMs, w.HeartbeatMs, int64(w.Seed), int64(p.Budget / sim.TokensPerStep)}
	if want := []int64{2, 4, 1, 5, 6, 7, 3, 10, 2000, 1000, 9, 40}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	want := []sim.NodeSpec{{Slow: 2}, {Slow: 2, Observer: true, DriftPPM: -5}, {Slow: 2, Observer: true, DriftPPM: -5}}
	if !reflect.DeepEqual(w.Founders, want) {
		t.Errorf("founders %+v, want %+v", w.Founders, want)
	}
}

// Every script of testdata is named in the package's documentation, begins with
// what it shows, and is written as Format writes it.
func TestScriptsAreListedAndTidy(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range scripts(t) {
		s, text := read(t, file)
		if name := strings.TrimSuffix(s.Name, ".txt"); !strings.Contains(string(doc), "//	"+name+" ") {
			t.Errorf("doc.go does not list %s", name)
		}
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with what it shows", s.Name)
		}
		if string(s.Format()) != string(text) {
			t.Errorf("%s is not tidy: single spaces, two before a comment, a blank line before the marker", s.Name)
		}
		if len(s.Expects) == 0 && s.Breaks == "" {
			t.Errorf("%s expects nothing", s.Name)
		}
	}
}

// Reading, writing and reading again gives the same script, and nothing makes the
// reader panic.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte("nodes 3 # three\r\n\n  at\t5s kill  0-1 all # x\n-- outcome --\n#"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("s.txt", text)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || s != nil || e.Text == "" {
				t.Fatalf("error %v, script %v", err, s)
			}
			return
		}
		again, err := Parse("s.txt", s.Format())
		if err != nil {
			t.Fatalf("%v\n%s", err, s.Format())
		}
		if !same(s, again) {
			t.Fatalf("not the same script:\n%s\n--- is written\n%s", text, s.Format())
		}
	})
}

// same compares what two scripts say.
func same(a, b *Script) bool {
	texts := func(s *Script) (all []string) {
		for _, e := range s.Expects {
			all = append(all, e.Text, e.Fails)
		}
		return all
	}
	return string(a.Format()) == string(b.Format()) && reflect.DeepEqual(a.World, b.World) && a.Outcome == b.Outcome &&
		a.Breaks == b.Breaks && slices.Equal(texts(a), texts(b))
}
