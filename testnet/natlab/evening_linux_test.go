package natlab

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// friends are people with a run, in a laboratory.
type friends struct {
	*testing.T
	lab *Lab
	ids map[string]string // of their machines, once they are known
}

// atoll runs a command that must succeed, and returns what it prints.
func (f *friends) atoll(args ...string) string {
	f.Helper()
	out, err := command(f.lab.binary, args...)
	if err != nil {
		f.Fatal(err)
	}
	return out
}

// start runs a node that is called as its machine.
func (f *friends) start(machine string, args ...string) *Node {
	f.Helper()
	n, err := f.lab.Start(machine, append(append(args, "--as", machine), quick...)...)
	if err != nil {
		f.Fatal(err)
	}
	return n
}

// evening is a run of friends: who is in it, and what every node that runs must say of each.
type evening struct {
	friends
	nodes map[string]*Node  // by the machine, those that run
	want  map[string]string // likewise: what is to be said of each that ever trained
	link  string            // as the first node printed it
}

// An evening of friends, two of four behind routers: everything that people do to a run and that happens to them. After each
// step every node says the same of who is here, who left and who is gone, and of nobody else; in the end all reports
// tell one story.
func TestEvening(t *testing.T) {
	l := world(t, Net{Machines: []string{"a", "d", "g", "x"}, Nets: []Net{
		{Router: "rb", Machines: []string{"b"}},
		{Router: "rc", NAT: ScramblePorts, Machines: []string{"c"}},
	}})
	e := &evening{friends: friends{T: t, lab: l, ids: map[string]string{}}, nodes: map[string]*Node{}, want: map[string]string{}}
	e.atoll("new", l.path("a"), "--tokens", "25e4")
	e.start("a", "join", l.path("a"))
	e.link, e.ids["a"] = linkOf(t, e.nodes["a"]), idOf(t, e.nodes["a"])
	e.joins("b", e.link)
	e.joins("c", e.link)
	e.agree("two joined")

	found, err := l.Doctor(within(t, doctorWithin), "x", e.link)
	if err != nil || !found["link"].OK {
		t.Errorf("doctor on x: %v, %+v", err, found)
	}
	e.agree("doctor looked")
	e.joins("d", linkOf(t, e.nodes["b"]), e.link) // the address of a member behind a router, and the old link
	e.agree("d came late")
	e.refusesAnotherText()
	e.agree("another text was refused")

	var guests struct{ Link string }
	if err := json.Unmarshal([]byte(e.atoll("invite", l.path("a"), "--guests", "--json")), &guests); err != nil {
		t.Fatal(err)
	}
	e.joins("g", guests.Link)
	e.agree("a guest came")
	e.atoll("revoke", e.ids["g"][:10], l.path("a"), "--reason", "the evening is for friends")
	e.ends("g")
	e.want["g"] = status.Revoked
	e.agree("the guest was revoked")

	e.atoll("pause", l.path("b"))
	e.want["b"] = status.Paused
	e.agree("b was paused")
	e.atoll("resume", l.path("b"))
	e.want["b"] = here
	e.agree("b went on")

	e.cable("c")
	kill(t, e.nodes["d"])
	e.is("d", status.Gone)
	e.agree("d was killed")
	e.start("d", "join", l.path("d"))
	e.agree("d is back")

	e.atoll("leave", l.path("d"))
	e.ends("d")
	e.is("d", status.Left)
	e.agree("d left")
	e.start("d", "join", l.path("d"))
	e.agree("d came back")
	kill(t, e.nodes["a"])
	e.is("a", status.Gone)
	e.agree("the first node is gone")
	e.joins("x", linkOf(t, e.nodes["b"]), e.link) // by a member at home, which has the addresses of others
	e.agree("x came without the first node")
	e.start("a", "join", l.path("a"))
	e.agree("the first node is back")
	e.story()
}

// here is a machine that takes part.
const here = "here"

// start runs a node, which is then expected to be here.
func (e *evening) start(machine string, args ...string) {
	e.Helper()
	e.nodes[machine], e.want[machine] = e.friends.start(machine, args...), here
}

// joins has a newcomer join, and waits until something that it made is folded: from then on it is of the run for ever.
func (e *evening) joins(machine string, links ...string) {
	e.Helper()
	e.start(machine, append(append([]string{"join"}, links...), e.lab.path(machine))...)
	e.ids[machine] = idOf(e.T, e.nodes[machine])
	for _, n := range e.nodes {
		await(e.T, n, "a folded delta of "+machine, func(s status.Snapshot) bool { return peerOf(s, e.ids[machine]).Trained })
	}
}

// is notes that a node does not run any more.
func (e *evening) is(machine, state string) {
	delete(e.nodes, machine)
	e.want[machine] = state
}

// ends waits for the end of a process.
func (e *evening) ends(machine string) {
	e.Helper()
	select {
	case <-e.nodes[machine].Ended():
		delete(e.nodes, machine)
	case <-time.After(stepTimeout):
		e.Fatalf("the node on %s does not end:\n%s", machine, tail(e.nodes[machine].Log()))
	}
}

// refusesAnotherText joins with a text that is not the run's.
func (e *evening) refusesAnotherText() {
	e.Helper()
	text := e.lab.path("other.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("This is not the text of the run. ", 4000)), 0o600); err != nil {
		e.Fatal(err)
	}
	e.start("x", "join", e.link, e.lab.path("x"), "--data", text)
	n := e.nodes["x"]
	e.ends("x")
	delete(e.want, "x")
	if n.Err() == nil || !strings.Contains(n.Log(), "text") {
		e.Errorf("joined with another text (%v):\n%s", n.Err(), tail(n.Log()))
	}
}

// cable pulls the cable of a machine until the others take it for gone, and puts it back.
func (e *evening) cable(machine string) {
	e.Helper()
	if err := e.lab.Unplug(machine); err != nil {
		e.Fatal(err)
	}
	n := e.nodes[machine]
	e.is(machine, status.Gone)
	e.agree(machine + " was cut off")
	if err := e.lab.Plug(machine); err != nil {
		e.Fatal(err)
	}
	e.nodes[machine], e.want[machine] = n, here
	e.agree(machine + " was plugged in again")
}

// said is what a node says of each machine that it lists, by its name. A guest knows no names.
func (e *evening) said(s status.Snapshot) map[string]string {
	said := map[string]string{}
	for _, p := range s.Peers {
		name := p.Label
		if s.Self == e.ids["g"] {
			name = p.ID
			for machine, id := range e.ids {
				if id == p.ID && p.Name == "" || id == p.ID && p.Self {
					name = machine
				}
			}
		}
		said[name] = p.State
		if p.Here() && p.State != status.Paused {
			said[name] = here
		}
	}
	return said
}

// agree waits until every node that runs says what is true.
func (e *evening) agree(after string) {
	e.Helper()
	began := time.Now()
	for _, machine := range slices.Sorted(maps.Keys(e.nodes)) {
		var last map[string]string
		_, err := e.nodes[machine].Await(within(e.T, stepTimeout), after, func(s status.Snapshot) bool {
			last = e.said(s)
			want := maps.Clone(e.want)
			if _, met := last["g"]; machine == "x" && !met {
				delete(want, "g") // it left before x came, and its rounds may have gone with it
			}
			return maps.Equal(last, want)
		})
		if err != nil {
			e.Fatalf("%s: %s says %v, want %v\n%v", after, machine, last, e.want, err)
		}
	}
	took(e.T, after, time.Since(began), time.Minute)
}

// story waits for the end of the run and compares what the nodes' folders tell of it.
func (e *evening) story() {
	e.Helper()
	nodes := slices.Collect(maps.Values(e.nodes))
	endsAsOne(e.T, nodes...)
	told := map[string][]string{}
	for _, n := range nodes {
		var s status.Snapshot
		if err := json.Unmarshal([]byte(e.atoll("status", "--json", n.Dir)), &s); err != nil {
			e.Fatal(err)
		}
		one := fmt.Sprintf("bits %.3f, %v", s.ValBPB, e.report(n))
		if n.Name == "x" {
			continue // it came when nobody had the first rounds any more: it does not know who made them
		}
		told[one] = append(told[one], n.Name)
	}
	if len(told) != 1 {
		e.Errorf("the folders tell different stories: %v", told)
	}
}

// report is what the page that a node's folder makes says of the run, without what is of the node alone.
func (e *evening) report(n *Node) string {
	e.Helper()
	file := filepath.Join(e.lab.dir, n.Name+".html")
	e.atoll("report", n.Dir, "--out", file)
	page, err := os.ReadFile(file)
	if err != nil {
		e.Fatal(err)
	}
	_, data, _ := strings.Cut(string(page), `<script type="application/json" id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	var v struct {
		Folded   uint64  `json:"folded"`
		TookPart int     `json:"took_part"`
		TookS    float64 `json:"took_s"`
		Peers    []struct {
			ID     string  `json:"id"`
			Share  float64 `json:"share"`
			Tokens float64 `json:"tokens"`
		} `json:"peers"`
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		e.Fatalf("the report of %s: %v", n.Name, err)
	}
	var gave []string
	for _, p := range v.Peers {
		if p.Tokens > 0 {
			gave = append(gave, fmt.Sprintf("%.10s %.0f tokens %.3f", p.ID, p.Tokens, p.Share))
		}
	}
	slices.Sort(gave)
	e.Logf("%s: took %.0f s", n.Name, v.TookS)
	return fmt.Sprintf("%d tokens by %d: %v", v.Folded, v.TookPart, gave)
}
