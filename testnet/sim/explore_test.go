package sim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"atoll/testnet/fault"
)

// How many schedules are explored. ATOLL_SIM_SEEDS says so (500 are 0 to 499, as
// 0-500 are; CI: 2-120, after the first 2); ATOLL_LONG=1 means longSeeds.
const (
	shortSeeds = 2
	longSeeds  = 10_000
	wildSeeds  = 400 // in so many every kind of fault has its turn; fewer than CI plays at once
)

// seedRange is which seeds TestAnySchedule runs.
func seedRange(t *testing.T) (from, to uint64) {
	text := os.Getenv("ATOLL_SIM_SEEDS")
	switch {
	case text == "" && os.Getenv("ATOLL_LONG") != "":
		return 0, longSeeds
	case text == "":
		return 0, shortSeeds
	}
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		first, last = "0", first
	}
	from, err := strconv.ParseUint(first, 10, 64)
	if err == nil {
		to, err = strconv.ParseUint(last, 10, 64)
	}
	if err != nil {
		t.Fatalf("ATOLL_SIM_SEEDS is %q: use a number of seeds, or FROM-TO", text)
	}
	return from, to
}

// failedOnce is a schedule that failed once, or fails still.
type failedOnce struct {
	name  string // a seed of Explore, or a file of testdata with the scenario
	check string // of a fault that is known and not mended yet; "" = mended
}

// failed reads a list such as testdata/seeds.txt: one schedule a line, then the checker that
// is known to fail, or "mended", then what it was.
func failed(t *testing.T, file string) (all []failedOnce) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		name, check, found := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" {
			continue
		}
		if !found {
			t.Fatalf(file+": %q: want a seed or a file, and a checker or mended", lines.Text())
		}
		if check = strings.TrimSpace(check); check == "mended" {
			check = ""
		}
		all = append(all, failedOnce{name, check})
	}
	return all
}

// scenario is the stored one, or what Explore draws today from the seed.
func (f failedOnce) scenario(t *testing.T) Scenario {
	t.Helper()
	if strings.HasSuffix(f.name, ".json") {
		return stored(t, filepath.Join("testdata", f.name))
	}
	seed, err := strconv.ParseUint(f.name, 10, 64)
	if err != nil {
		t.Fatalf("testdata/seeds.txt: %q is neither a seed nor a file.json", f.name)
	}
	return Explore(seed)
}

// stored reads what `atoll sim --save` wrote. A field that the scenario has no
// more fails the test: without it the file would be another world.
func stored(t *testing.T, file string) (s Scenario) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return s
}

// replay is the command that plays it.
func (f failedOnce) replay() string {
	if strings.HasSuffix(f.name, ".json") {
		return "replay: go run ./cmd/atoll sim --scenario testnet/sim/testdata/" + f.name
	}
	return replay(f.name)
}

// The schedules that failed once come first: those that are mended pass, and those
// that are not fail by the checker that is known to. ATOLL_LONG=1 plays all of them, else every
// eighth one.
func TestSeedsThatFailedOnce(t *testing.T) {
	for i, old := range failed(t, "testdata/seeds.txt") {
		if !taken(i, 8) {
			continue
		}
		t.Run(old.name, func(t *testing.T) {
			t.Parallel()
			r := played(t, old.scenario(t))
			switch {
			case r.Err != nil && r.Check != old.check:
				t.Errorf("%v\n%s", r.Err, old.replay())
			case r.Err == nil && old.check != "":
				t.Errorf("does not fail any more by %q: mark it mended", old.check)
			}
		})
	}
}

// Every stored scenario is listed, so that none is played by nobody.
func TestStoredScenariosAreListed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	all := failed(t, "testdata/seeds.txt")
	for _, file := range files {
		if !slices.ContainsFunc(all, func(f failedOnce) bool { return f.name == filepath.Base(file) }) {
			t.Errorf("testdata/seeds.txt does not list %s", filepath.Base(file))
		}
	}
}

// A scenario that is stored and read is the one that was drawn.
func TestStoredScenarioIsTheOneDrawn(t *testing.T) {
	for seed := range uint64(shortSeeds) {
		drawn := Explore(seed)
		text, err := json.Marshal(drawn)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "scenario.json")
		if err := os.WriteFile(file, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, file); !reflect.DeepEqual(got, drawn) {
			t.Fatalf("seed %d: drew\n%+v\nread\n%+v", seed, drawn, got)
		}
	}
}

func replay(seed string) string {
	return "replay: go run ./cmd/atoll sim --seed " + seed + " --shrink 100 --save small.json"
}

func explored(t *testing.T, seed uint64) Result {
	t.Helper()
	return played(t, Explore(seed))
}

func played(t *testing.T, s Scenario) Result {
	t.Helper()
	r, err := Run(s)
	if err != nil {
		t.Fatalf("seed %d: %v", s.Seed, err)
	}
	return r
}

// A schedule has crashes, power cuts, lost disks, pauses, losses, delays, cuts,
// partitions, full disks, joins and leaves. After it ends every promise of the
// checkers holds, and all nodes come to one chain and one state.
func TestAnySchedule(t *testing.T) {
	known := failed(t, "testdata/seeds.txt")
	var total exploration
	seeds := playSeeds(t, Explore, func(name string, r Result) {
		if r.Err != nil && !knownToFail(known, name, r) {
			t.Errorf("%v\n%s", r.Err, replay(name))
		}
		total.add(r)
	})
	t.Log(total.String())
	if seeds >= wildSeeds {
		total.checkWild(t)
	}
}

// playSeeds plays what is drawn from the seeds that are asked for, side by side, and has each
// judged by its seed's name. It returns how many.
func playSeeds(t *testing.T, draw func(uint64) Scenario, judge func(name string, r Result)) (seeds uint64) {
	from, to := seedRange(t)
	var next atomic.Uint64
	next.Store(from)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), int(to-from)) {
		workers.Go(func() {
			for seed := next.Add(1) - 1; seed < to; seed = next.Add(1) - 1 {
				judge(strconv.FormatUint(seed, 10), played(t, draw(seed)))
			}
		})
	}
	workers.Wait()
	return to - from
}

// knownToFail says that a list has a schedule with the promise that it breaks.
func knownToFail(known []failedOnce, name string, r Result) bool {
	return slices.ContainsFunc(known, func(f failedOnce) bool { return f.name == name && f.check == r.Check })
}

// exploration sums up many schedules.
type exploration struct {
	mu     sync.Mutex
	runs   int
	longer int    // that were run again with a larger budget
	least  uint32 // rounds
	slow   uint32 // most rounds from the end of the faults to one chain
	faults map[fault.Verb]int
	counts Counts
	did    tally
}

func (x *exploration) add(r Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs == 0 {
		x.faults, x.least = map[fault.Verb]int{}, math.MaxUint32
	}
	x.runs++
	if r.Longer > 0 {
		x.longer++
	}
	if r.Err == nil {
		x.least, x.slow = min(x.least, r.Rounds), max(x.slow, r.AgreedIn)
	}
	for kind, n := range r.Counts.Faults {
		x.faults[kind] += n
	}
	x.did.add(r.Did)
	x.counts.Events += r.Counts.Events
	x.counts.MessagesLost += r.Counts.MessagesLost
	x.counts.FilesDamaged += r.Counts.FilesDamaged
	x.counts.LedgersUnchecked += r.Counts.LedgersUnchecked
}

func (x *exploration) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d schedules, %d of them with a larger budget, %d events, at least %d rounds, one chain at most %d rounds after the faults; %d gossip messages lost, %d files damaged, %d ledgers not to be checked; %+v; faults:",
		x.runs, x.longer, x.counts.Events, x.least, x.slow, x.counts.MessagesLost, x.counts.FilesDamaged, x.counts.LedgersUnchecked, x.did)
	for _, kind := range Kinds {
		fmt.Fprintf(&b, " %s %d", kind, x.faults[kind])
	}
	return b.String()
}

// checkWild fails if the schedules are too tame to test anything.
func (x *exploration) checkWild(t *testing.T) {
	for _, kind := range drawn {
		if x.faults[kind] == 0 {
			t.Errorf("no schedule had a %s", kind)
		}
	}
	if 10*x.longer > x.runs {
		t.Errorf("%d of %d schedules came to fewer than %d rounds at first: rounds take longer than they should", x.longer, x.runs, exploreLeast)
	}
	if x.did.Refolds == 0 || x.did.Installs == 0 || x.did.Unfolds == 0 {
		t.Errorf("too tame: %+v", x.did)
	}
}

// One seed, one history.
func TestOneSeedOneHistory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1 + 2*is(longMode())) {
		a, b := explored(t, seed), explored(t, seed)
		if a.History != b.History || a.State != b.State || a.Counts.Events != b.Counts.Events {
			t.Errorf("seed %d: histories %s and %s, states %s and %s", seed, a.History, b.History, a.State, b.State)
		}
	}
	if explored(t, 0).History == explored(t, 3).History {
		t.Error("two seeds have one history")
	}
}

// A run that ends before so many rounds is run again with a larger budget, and at last is
// a failure like any other.
func TestShortRunsAreRunAgain(t *testing.T) {
	t.Parallel()
	s := Small(2, 3, nil, 1)
	for atLeast, want := range map[uint32]int{1: 0, 8: 1, 30: 2, 1e6: longerRuns} {
		s.AtLeast = atLeast
		r, err := Run(s)
		if err != nil {
			t.Fatal(err)
		}
		if failed := r.Check == "rounds" && r.Err != nil; r.Longer != want || failed != (r.Rounds < atLeast) {
			t.Errorf("at least %d rounds: %d after %d longer runs, %v", atLeast, r.Rounds, r.Longer, r.Err)
		}
	}
}
