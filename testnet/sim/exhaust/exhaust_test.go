package exhaust

import (
	"os"
	"testing"
	"time"
)

// bounded is a search and how many states of the world it has: what changes that
// number changes behaviour. 0 is a number that nobody has looked at.
type bounded struct {
	Bounds
	states int
}

// TestEveryInterleaving searches each of some bounds to the end. ATOLL_LONG=1 adds
// those that take minutes.
func TestEveryInterleaving(t *testing.T) {
	all := []bounded{
		{Bounds{Nodes: 3, Steps: 3}, 1332},
		{Bounds{Nodes: 3, Steps: 2, Ticks: 1, Drops: 1}, 0},
		{Bounds{Nodes: 2, Steps: 2, Ticks: 2, Crashes: 1}, 0},
	}
	if os.Getenv("ATOLL_LONG") != "" {
		all = append(all, []bounded{
			{Bounds{Nodes: 3, Steps: 2, Ticks: 1, Crashes: 1}, 0},
			{Bounds{Nodes: 2, Steps: 3, Ticks: 2, Crashes: 1, Copies: 1, Drops: 2}, 0},
			{Bounds{Nodes: 3, Steps: 2, Ticks: 1, Copies: 1, Drops: 2}, 0},
			{Bounds{Nodes: 3, Steps: 2, Ticks: 1, Crashes: 1, Copies: 1, Drops: 2}, 0},
			{Bounds{Nodes: 2, Steps: 4, Ticks: 2, Crashes: 2, Copies: 1, Drops: 2}, 0},
			{Bounds{Nodes: 2, Steps: 3, Ticks: 4, Crashes: 1, Drops: 2}, 0},
			{Bounds{Nodes: 3, Steps: 3, Crashes: 1, Copies: 1, Drops: 2}, 0},
			{Bounds{Nodes: 3, Steps: 3, Ticks: 2}, 0},
			{Bounds{Nodes: 3, Steps: 3, Ticks: 1, Crashes: 1}, 0},
			{Bounds{Nodes: 3, Steps: 3, Ticks: 1, Copies: 1, Drops: 1}, 0},
		}...)
	}
	for _, s := range all {
		b, began := s.Bounds, time.Now()
		r, err := Search(b, mostStates)
		t.Logf("%+v: %v in %.1f s", b, r, time.Since(began).Seconds())
		if err != nil {
			t.Error(err)
		} else if !r.Whole {
			t.Errorf("%+v: more than %d states", b, mostStates)
		} else if b.Ticks > 0 && r.Rounds < 2 {
			t.Errorf("%+v: only %d rounds", b, r.Rounds)
		} else if s.states != 0 && r.States != s.states {
			t.Errorf("%+v: %d states, and they were %d", b, r.States, s.states)
		}
	}
}

// mostStates bounds the memory of a search: about a KiB for each.
const mostStates = 8_000_000

// A search that is cut short says so.
func TestSearchSaysThatItWasCutShort(t *testing.T) {
	r, err := Search(Bounds{Nodes: 3, Steps: 2}, 50)
	if err != nil || r.Whole || r.States != 50 {
		t.Errorf("%v, %v", r, err)
	}
}

// Values that differ anywhere, in fields that are not exported too, have
// fingerprints that do; the order of a map's keys and what is scratch memory do
// not matter.
func TestFingerprint(t *testing.T) {
	type inner struct {
		words map[string]int
		next  *inner
	}
	type outer struct {
		list   []float32
		inner  *inner
		values []int // an idle field
	}
	make := func() outer {
		in := &inner{words: map[string]int{"one": 1, "two": 2, "three": 3}}
		in.next = in
		return outer{list: []float32{1, 2}, inner: in, values: []int{1}}
	}
	want := fingerprintOf(make())
	for range 20 {
		same := make()
		same.values = []int{7}
		if fingerprintOf(same) != want {
			t.Fatal("two fingerprints of equal values")
		}
	}
	for name, spoil := range map[string]func(*outer){
		"a number":     func(o *outer) { o.list[1] = 3 },
		"a length":     func(o *outer) { o.list = append(o.list, 0) },
		"a map":        func(o *outer) { o.inner.words["one"] = 2 },
		"a key":        func(o *outer) { delete(o.inner.words, "two") },
		"a pointer":    func(o *outer) { o.inner.next = nil },
		"another loop": func(o *outer) { o.inner.next = &inner{words: o.inner.words, next: o.inner} },
	} {
		o := make()
		if spoil(&o); fingerprintOf(o) == want {
			t.Errorf("%s does not show", name)
		}
	}
}

// What is wrong at rest is found: each line spoils a world that came to rest.
func TestRestCatches(t *testing.T) {
	s := newSearch(Bounds{Nodes: 3}, 1)
	w := s.begin()
	for !w.over() {
		s.calm(w)
	}
	if text := w.atRest(); text != "" {
		t.Fatal(text)
	}
	for name, spoil := range map[string]func(l *local){
		"two chains":             func(l *local) { l.chain[0]++ },
		"two states":             func(l *local) { l.state[0]++ },
		"a lost token":           func(l *local) { l.mine++ },
		"other local parameters": func(l *local) { l.off = 1 },
	} {
		spoiled := *w.at[2]
		spoil(&spoiled)
		v := w.clone()
		v.at[2] = &spoiled
		if v.atRest() == "" {
			t.Errorf("%s is not found", name)
		}
	}
}

// A broken promise is told with the way that leads to it.
func TestBrokenTellsTheWay(t *testing.T) {
	s := newSearch(Bounds{Nodes: 3, Steps: 1}, 100)
	w := s.begin()
	first := choice{kind: step, at: 1}
	w, _ = s.apply(w, first)
	second := choice{kind: drop, at: 0, what: w.flying[0]}
	got := s.broken(&way{&way{nil, first, 1}, second, 2}, "it fell").Error()
	if want := "it fell\n  node 1: step\n  drop node 1's delta of round 1 to node 0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
