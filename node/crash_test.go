package node

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"atoll/gossip/wire"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
)

// The crash-point test kills a real node, in a process of its own, at its k-th
// write to disk or send. It starts the node again and compares the two ledgers
// at the end of the run.

// Environment of the process that is killed.
const (
	crashDir   = "ATOLL_TEST_CRASH_DIR"   // of the node
	crashLink  = "ATOLL_TEST_CRASH_LINK"  // of the run
	crashText  = "ATOLL_TEST_CRASH_TEXT"  // corpus
	crashPoint = "ATOLL_TEST_CRASH_POINT" // where it dies; 0 = nowhere
	crashAmong = "ATOLL_TEST_CRASH_AMONG" // what the points have in their names that count
)

// dieNow ends this process as a kill does: nothing is flushed and nothing deferred runs.
func dieNow() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until the system has done so
}

// crashPace is short, so that a run is a second and its points some hundreds.
const crashPace = 4 * time.Millisecond

// TestCrashChild is the process that is killed: not a test of its own.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		t.Skip("run by TestCrashPoints")
	}
	die, err := strconv.Atoi(os.Getenv(crashPoint))
	if err != nil {
		t.Fatal(err)
	}
	link, err := joinlink.Parse(os.Getenv(crashLink))
	if err != nil {
		t.Fatal(err)
	}
	var at atomic.Int64
	reach := func(what string) {
		if strings.Contains(what, os.Getenv(crashAmong)) && at.Add(1) == int64(die) {
			fmt.Printf("point %d: %s\n", die, what)
			dieNow()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestWait)
	defer cancel()
	s, err := Run(ctx, Config{
		heartbeatMs: crashHeartbeatMs,
		Dir:         dir, Link: link, Data: os.Getenv(crashText), Profile: "local", Threads: 1, Batch: 2, Pace: crashPace, measure: measure,
		disk: store.Disk{Before: func(op store.Op) error { reach(string(op.Kind) + " " + op.Path); return nil }},
		send: reach,
	})
	if err != nil || !s.Finished {
		t.Fatalf("finished %v, %v", s.Finished, err)
	}
	fmt.Printf("points %d\n", at.Load())
}

// victim is a node in a process of its own.
type victim struct {
	t         *testing.T
	dir, text string
	link      joinlink.Link
	among     string // points count that have this in their names
}

// live runs the process once and says where it was killed, or how many points it
// passed when it was not.
func (v victim) live(point int) (killed string, points int) {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashDir+"="+v.dir, crashLink+"="+v.link.String(), crashText+"="+v.text, crashAmong+"="+v.among, crashPoint+"="+strconv.Itoa(point))
	out, err := cmd.StdoutPipe()
	if err != nil {
		v.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		v.t.Fatal(err)
	}
	said, readErr := io.ReadAll(bufio.NewReader(out))
	err = cmd.Wait()
	if text, ok := lineAfter(string(said), fmt.Sprintf("point %d: ", point)); ok && !cmd.ProcessState.Success() {
		return text, 0
	}
	text, ok := lineAfter(string(said), "points ")
	n, parseErr := strconv.Atoi(text)
	if err != nil || readErr != nil || !ok || parseErr != nil {
		v.t.Fatalf("point %d: %v\n%s", point, err, said)
	}
	return "", n
}

func lineAfter(text, prefix string) (string, bool) {
	for line := range strings.SplitSeq(text, "\n") {
		if rest, ok := strings.CutPrefix(line, prefix); ok {
			return rest, true
		}
	}
	return "", false
}

// crashBudget is that of a run of about a second. crashHeartbeatMs is so slow that the peer
// seldom takes the node for gone, and ends the run, before it is back.
const (
	crashBudget      = 12_000
	crashHeartbeatMs = 250
)

// crashAt is one run in which the victim dies at a point. It returns how many
// points the victim passed, if it did not get to die.
func crashAt(t *testing.T, point int) (points int) {
	text := toyText(t)
	peer := launch(t, Config{Genesis: toyGenesis(crashBudget).Encode(), heartbeatMs: crashHeartbeatMs, Data: text, Pace: crashPace, Stay: true})
	v := victim{t: t, dir: t.TempDir(), text: text, link: peer.link()}
	killed, points := v.live(point)
	if killed == "" && point > 0 {
		t.Skipf("the run ended after %d points", points)
	}
	t.Logf("killed at point %d: %s", point, killed)
	lost := make([]uint64, 2)
	if killed != "" {
		lost = unpublished(t, v.dir)
		v.live(0)
	}
	peer.until("the end", finished)
	// On a busy machine the victim may be away for longer than the quiet time.
	// Then its peer ends the run without it, and still folds what it brings. What
	// the peer has when it leaves is what counts.
	last := peer.leave()
	checkSame(t, last, v.dir)
	checkLedger(t, peer.cfg.Dir, last)
	checkNothingLost(t, peer.cfg.Dir, last)
	checkLost(t, v.dir, lost)
	for _, dir := range []string{v.dir, peer.cfg.Dir} {
		checkHonest(t, dir)
		checkVerify(t, dir, last)
	}
	if t.Failed() {
		t.Logf("the killed node's events: %+v\nits peer's: %+v", lastStatusOf(t, v.dir).Events, last.Events)
		for _, dir := range []string{v.dir, peer.cfg.Dir} {
			view, err := inspect.Ledger(dir)
			t.Logf("the ledger of %s: %+v, %v", dir, view.Fragments, err)
		}
	}
	return points
}

// unpublished is what a killed node has trained and not published, per fragment:
// that, and nothing else, is lost. A node that died before it had an index has
// neither.
func unpublished(t *testing.T, dir string) []uint64 {
	t.Helper()
	rest := make([]uint64, 2)
	sum, err := store.SumSteps(dir)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Tokens == 0 {
		return rest
	}
	for p, published := range ownTokens(t, dir) {
		if published > sum.Tokens {
			t.Errorf("fragment %d: %d tokens are published of %d trained: a step counts twice", p, published, sum.Tokens)
		}
		rest[p] = sum.Tokens - published
	}
	return rest
}

// ownTokens are the tokens in a node's own deltas, per fragment.
func ownTokens(t *testing.T, dir string) []uint64 {
	t.Helper()
	view, err := inspect.Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	key, err := store.ReadKey(dir)
	if err != nil {
		t.Fatal(err)
	}
	self := wire.PeerIDOf(key)
	tokens := make([]uint64, len(view.Fragments))
	for _, d := range view.Deltas {
		if d.Author == fmt.Sprintf("%x", self[:]) {
			tokens[d.Fragment] += d.Tokens
		}
	}
	return tokens
}

// checkLost: at the end every trained token is in a delta, unpublished, or was
// lost at the kill: exactly what was unpublished then.
func checkLost(t *testing.T, dir string, lost []uint64) {
	t.Helper()
	sum, err := store.SumSteps(dir)
	if err != nil {
		t.Fatal(err)
	}
	end := lastStatusOf(t, dir)
	for p, published := range ownTokens(t, dir) {
		if got := published + end.Account.OwnUnpublished[p] + lost[p]; got != sum.Tokens {
			t.Errorf("fragment %d: %d published + %d unpublished + %d lost at the kill are %d tokens, trained are %d", p, published, end.Account.OwnUnpublished[p], lost[p], got, sum.Tokens)
		}
	}
}

// checkSame: the killed node ended where its peer did.
func checkSame(t *testing.T, want status.Snapshot, dir string) {
	t.Helper()
	got := lastStatusOf(t, dir)
	if !got.Finished || got.ChainDigest != want.ChainDigest || got.StateDigest != want.StateDigest {
		t.Errorf("finished %v, chain %.8s state %.8s; the peer has %.8s %.8s", got.Finished, got.ChainDigest, got.StateDigest, want.ChainDigest, want.StateDigest)
	}
}

// checkHonest: nobody signed two deltas for one round.
func checkHonest(t *testing.T, dir string) {
	t.Helper()
	view, err := inspect.Ledger(dir)
	if err != nil {
		t.Fatal(err)
	}
	signed := map[string]string{}
	for _, d := range view.Deltas {
		slot := fmt.Sprintf("%s fragment %d round %d", d.Author, d.Fragment, d.Round)
		if other, twice := signed[slot]; twice {
			t.Errorf("%s: two deltas, %.8s and %.8s", slot, other, d.ID)
		}
		signed[slot] = d.ID
	}
	s, err := store.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if equivocation, err := s.Equivocation(); err != nil || len(equivocation) > 0 {
		t.Errorf("equivocation proof %v, %v", equivocation, err)
	}
}

// TestCrashPoints kills a node at a sample of all points, and with ATOLL_LONG=1 at
// every one, which takes a quarter of an hour:
//
//	ATOLL_LONG=1 go test ./node -run TestCrashPoints -parallel 6 -timeout 1h
func TestCrashPoints(t *testing.T) {
	if testing.Short() {
		t.Skip("starts dozens of processes")
	}
	var points int
	t.Run("count", func(t *testing.T) { points = crashAt(t, 0) })
	if points < 100 {
		t.Fatalf("only %d points: the run shows nothing", points)
	}
	for _, k := range crashSample(points) {
		t.Run(strconv.Itoa(k), func(t *testing.T) {
			t.Parallel()
			crashAt(t, k)
		})
	}
}

// crashSamples is how many points the ordinary test takes.
const crashSamples = 4

// crashSample are the points to try: one of each stretch of the run, or all.
func crashSample(points int) (sample []int) {
	n := crashSamples
	if long {
		n = points
	}
	r := rand.New(rand.NewPCG(3, uint64(points)))
	for i := range n {
		from, to := i*points/n, (i+1)*points/n
		sample = append(sample, 1+from+r.IntN(to-from))
	}
	return sample
}

// lastStatusOf is what a node wrote when it ended.
func lastStatusOf(t *testing.T, dir string) (s status.Snapshot) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, status.FinalFile))
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}
