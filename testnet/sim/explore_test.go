package sim

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// How many schedules are explored. ATOLL_SIM_SEEDS says so (CI: 50-499; or 1000-1200
// for a range); ATOLL_LONG=1 means longSeeds.
const (
	shortSeeds = 50
	longSeeds  = 10_000
	wildSeeds  = 500 // in so many every kind of fault has its turn
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

// oldSeed is a seed that failed once, or fails still.
type oldSeed struct {
	seed  uint64
	check string // of a fault that is known and not mended yet; "" = mended
}

// oldSeeds reads testdata/seeds.txt: one seed a line, then the checker that is
// known to fail, or "mended", then what it was.
func oldSeeds(t *testing.T) (seeds []oldSeed) {
	t.Helper()
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.SplitN(strings.TrimSpace(line), " ", 2)
		if fields[0] == "" {
			continue
		}
		seed, err := strconv.ParseUint(fields[0], 10, 64)
		if err != nil || len(fields) != 2 {
			t.Fatalf("testdata/seeds.txt: %q: want a seed and a checker or mended", lines.Text())
		}
		s := oldSeed{seed: seed}
		if check := strings.TrimSpace(fields[1]); check != "mended" {
			s.check = check
		}
		seeds = append(seeds, s)
	}
	return seeds
}

// The seeds that failed once come first: those that are mended pass.
func TestSeedsThatFailedOnce(t *testing.T) {
	for _, old := range oldSeeds(t) {
		r := explored(t, old.seed)
		switch {
		case r.Check != old.check && r.Err != nil:
			t.Errorf("%v\n%s", r.Err, replay(old.seed))
		case old.check != "" && r.Err == nil:
			t.Logf("seed %d does not fail any more by %q: mark it mended", old.seed, old.check)
		}
	}
}

func replay(seed uint64) string {
	return fmt.Sprintf("replay: go run ./cmd/atoll sim protocol --seed %d --shrink 100 --save small.json", seed)
}

func explored(t *testing.T, seed uint64) Result {
	t.Helper()
	r, err := Run(Explore(seed))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return r
}

// After any schedule of crashes, power cuts, lost disks, pauses, losses, delays,
// cuts, partitions, full disks, joins and leaves ends, every promise that the
// checkers stand for holds, and all nodes come to one chain and one state.
func TestAnySchedule(t *testing.T) {
	from, to := seedRange(t)
	known := oldSeeds(t)
	var total exploration
	var next atomic.Uint64
	next.Store(from)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), int(to-from)) {
		workers.Go(func() {
			for seed := next.Add(1) - 1; seed < to; seed = next.Add(1) - 1 {
				i := slices.IndexFunc(known, func(o oldSeed) bool { return o.seed == seed })
				r := explored(t, seed)
				if r.Err != nil && (i < 0 || known[i].check != r.Check) {
					t.Errorf("%v\n%s", r.Err, replay(seed))
				}
				total.add(r)
			}
		})
	}
	workers.Wait()
	t.Log(total.String())
	if to-from >= wildSeeds {
		total.checkWild(t)
	}
}

// exploration sums up many schedules.
type exploration struct {
	mu     sync.Mutex
	runs   int
	longer int    // that were run again with a larger budget
	least  uint32 // rounds
	slow   uint32 // most rounds from the end of the faults to one chain
	faults map[Kind]int
	counts Counts
	did    tally
}

func (x *exploration) add(r Result) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.runs == 0 {
		x.faults, x.least = map[Kind]int{}, math.MaxUint32
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
	for seed := range uint64(3) {
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
