package sim

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"atoll/testnet/fault"
)

var update = flag.Bool("update", false, "take schedules that break nothing any more off testdata/thin.txt")

// drawnSeeds is how many are drawn, and not played, to see what they hold.
const drawnSeeds = 500

// thinList names the thin schedules that break a promise, and which. With -update those that
// break none any more are taken off; nothing is ever added.
const thinList = "testdata/thin.txt"

// In thin schedules links carry 0.3 to 3 times less than deltas of H steps take, differ,
// fall and come back. Every promise holds as in any schedule, and those about links that
// fits does not list as not kept yet.
func TestThinSchedules(t *testing.T) {
	x := thinly{known: failed(t, thinList), mended: map[string]bool{}}
	playSeeds(t, ExploreThin, func(name string, r Result) { x.judge(t, name, r) })
	t.Log(x.String())
	if *update {
		x.takeOff(t)
	}
}

// thinly sums up thin schedules.
type thinly struct {
	mu     sync.Mutex
	known  []failedOnce
	mended map[string]bool
	runs   []Result
}

func (x *thinly) judge(t *testing.T, name string, r Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.runs = append(x.runs, r)
	listed := slices.ContainsFunc(x.known, func(f failedOnce) bool { return f.name == name })
	switch {
	case r.Err != nil && !knownToFail(x.known, name, r):
		t.Errorf("%v\nreplay: go run ./cmd/atoll sim --thin --seed %s --shrink 100 --save small.json", r.Err, name)
	case r.Err == nil && listed && *update:
		x.mended[name] = true
	case r.Err == nil && listed:
		t.Errorf("seed %s breaks no promise any more: take it off %s, or run with -update", name, thinList)
	}
}

// String says how many runs keep each promise about links, those that are not checked yet
// among them.
func (x *thinly) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules", len(x.runs))
	for _, f := range fits {
		broken, of := 0, 0
		for _, r := range x.runs {
			if r.Err != nil || !f.applies(ExploreThin(r.Seed)) {
				continue
			}
			if of++; f.broken(r.Fit) != "" {
				broken++
			}
		}
		fmt.Fprintf(&b, "; %s: broken in %d of %d", f.name, broken, of)
	}
	ended, events := 0, 0
	for _, r := range x.runs {
		events += r.Counts.Events
		if r.Err == nil {
			ended++
		}
	}
	fmt.Fprintf(&b, "; all other promises kept in %d; %d events", ended, events)
	return b.String()
}

// takeOff writes the list without what is mended.
func (x *thinly) takeOff(t *testing.T) {
	text, err := os.ReadFile(thinList)
	if err != nil {
		t.Fatal(err)
	}
	var kept strings.Builder
	for line := range strings.Lines(string(text)) {
		if name, _, _ := strings.Cut(line, " "); !x.mended[name] {
			kept.WriteString(line)
		}
	}
	if err := os.WriteFile(thinList, []byte(kept.String()), 0o644); err != nil {
		t.Error(err)
	}
}

// What ExploreThin draws is what it says: demand from 0.3 to 3, thin uplinks, links that fall
// and come back, and all of it is read from a file as it was drawn.
func TestThinSchedulesAreThin(t *testing.T) {
	t.Parallel()
	var low, high, uneven, falls, large int
	for seed := range uint64(drawnSeeds) {
		s := ExploreThin(seed)
		if err := s.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if d := s.demand(); d < 0.99*thinLeast || d > 1.01*thinGreatest {
			t.Errorf("seed %d: a demand of %.2f", seed, d)
		} else if d < 0.7 {
			low++
		} else if d > 1.5 {
			high++
		}
		if slices.ContainsFunc(s.Founders, func(n NodeSpec) bool { return n.Link.BytesMs > 0 }) {
			uneven++
		}
		if disturbs(s, fault.Link) {
			falls++
		}
		if len(s.Founders) == thinMost {
			large++
		}
		text, err := json.Marshal(s)
		var again Scenario
		if err == nil {
			err = json.Unmarshal(text, &again)
		}
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("seed %d: read as another world (%v)", seed, err)
		}
	}
	if min(low, high, uneven, falls) < drawnSeeds/6 || large == 0 {
		t.Errorf("of %d schedules %d have little demand and %d much, %d uneven links, %d links that fall, %d sixteen nodes", drawnSeeds, low, high, uneven, falls, large)
	}
}

// Each promise about links is broken by what it is about, and by nothing else.
func TestFitsCatch(t *testing.T) {
	t.Parallel()
	good := Fit{Late: 0.1, Over: 0.02, MostOver: 0.02, EndMs: 900, MostEndMs: 900, Plans: 1.25}
	for name, harm := range map[string]func(f *Fit){
		"nothing discarded": func(f *Fit) { f.Discarded = 1e-9 },
		"in time":           func(f *Fit) { f.Late = 0.11 },
		"exact budget":      func(f *Fit) { f.Over = 0.03 },
		"soon over":         func(f *Fit) { f.EndMs = 901 },
		"plans settle":      func(f *Fit) { f.Plans = 1.3 },
	} {
		bad, found := good, 0
		harm(&bad)
		for _, f := range fits {
			if f.broken(good) != "" || (f.broken(bad) != "") != (f.name == name) {
				t.Errorf("%s: %s says %q, and of a good run %q", name, f.name, f.broken(bad), f.broken(good))
			}
			if f.name == name {
				found++
			}
		}
		if found != 1 {
			t.Errorf("there is no promise %q", name)
		}
	}
}

// What a run came to on its links is what happened: one over wide links keeps all promises, and
// one whose payloads are twelve times what the uplinks carry is late.
func TestFitOfWorlds(t *testing.T) {
	t.Parallel()
	of := func(link string) Fit {
		links, err := ParseLinks([]string{link}, 3)
		if err != nil {
			t.Fatal(err)
		}
		return play(t, OnLinks(links, 8, 50_000, 2400, nil, 1)).Fit
	}
	wide := of("rate=100mbit,delay=5ms")
	for _, f := range fits {
		if text := f.broken(wide); text != "" {
			t.Errorf("over wide links: %s: %s", f.name, text)
		}
	}
	if thin := of("rate=64kbit,delay=5ms"); thin.Late < 10*wide.Late+0.01 || thin.EndMs < 2*wide.EndMs {
		t.Errorf("over thin links %+v, over wide ones %+v", thin, wide)
	}
}
