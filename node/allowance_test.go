package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"atoll/node/hardware"
	"atoll/node/limits"
	"atoll/node/status"
	"atoll/node/store"
)

func hoursOf(t testing.TB, text string) limits.Hours {
	t.Helper()
	h, err := limits.ParseHours(text)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestReasonsToPause(t *testing.T) {
	evening := time.Date(2026, 11, 25, 21, 0, 0, 0, time.Local)
	used := func(bytes uint64) (traffic limits.Traffic) {
		traffic.Count(evening, limits.Bytes{Sent: bytes / 2, Received: bytes - bytes/2})
		return traffic
	}
	month := limits.Quota{Bytes: 1000, Period: limits.Month}
	for name, c := range map[string]struct {
		limits    Limits
		allowance allowance
		at        time.Time
		want      []string // parts of each reason
	}{
		"no limit":            {Limits{}, allowance{onBattery: true, traffic: used(1 << 40)}, evening, nil},
		"asked":               {Limits{}, allowance{asked: true}, evening, []string{"atoll resume"}},
		"before the hours":    {Limits{Hours: hoursOf(t, "22-07")}, allowance{}, evening, []string{"--hours 22-07, until Wed 22:00"}},
		"in the hours":        {Limits{Hours: hoursOf(t, "22-07")}, allowance{}, evening.Add(time.Hour), nil},
		"on battery":          {Limits{Battery: true}, allowance{onBattery: true}, evening, []string{"battery"}},
		"plugged in":          {Limits{Battery: true}, allowance{}, evening, nil},
		"quota left":          {Limits{Quota: month}, allowance{traffic: used(979)}, evening, nil},
		"quota up to reserve": {Limits{Quota: month}, allowance{traffic: used(980)}, evening, []string{"until 1 December 00:00"}},
		"a new month":         {Limits{Quota: month}, allowance{traffic: used(5000)}, evening.AddDate(0, 0, 6), nil},
		"two of them":         {Limits{Quota: month, Battery: true}, allowance{onBattery: true, traffic: used(980)}, evening, []string{"battery", "quota"}},
	} {
		n := &node{cfg: Config{Limits: c.limits}, allowance: c.allowance}
		got := n.reasons(c.at)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Whatever a node carries, and however often it is killed: what its folder counts is never
// more than what was carried, and lacks at most what each kill found not yet written.
func TestQuotaOutlivesKills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "atoll-quota-")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		cfg := Config{Dir: dir, Limits: Limits{Quota: limits.Quota{Bytes: 1 << 50, Period: limits.Month}}}
		now := time.Date(2026, 11, 3, 12, 0, 0, 0, time.Local)
		var total, unwritten, lost uint64
		writes, began := 0, now
		n := &node{cfg: cfg}
		var carried limits.Bytes
		for range rapid.IntRange(1, 80).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 9000).Draw(t, "ms")) * time.Millisecond)
			more := limits.Bytes{Sent: rapid.Uint64Range(0, 1e6).Draw(t, "sent"), Received: rapid.Uint64Range(0, 1e6).Draw(t, "received")}
			carried.Sent, carried.Received = carried.Sent+more.Sent, carried.Received+more.Received
			total, unwritten = total+more.Sum(), unwritten+more.Sum()
			n.book(now, carried)
			if b := n.due(now); b != nil {
				if err := cfg.disk.SaveTraffic(dir, b); err != nil {
					t.Fatal(err)
				}
				writes, unwritten = writes+1, 0
			}
			if rapid.IntRange(0, 9).Draw(t, "kill") == 0 {
				lost, unwritten, carried = lost+unwritten, 0, limits.Bytes{}
				n = &node{cfg: cfg}
				if err := n.recallTraffic(); err != nil {
					t.Fatal(err)
				}
				n.saved = now // a start counts as a writing
			}
			if used := n.traffic.Used(limits.Month, now).Sum(); used != total-lost {
				t.Fatalf("%d bytes are counted of %d, %d were not written at kills", used, total, lost)
			}
		}
		if most := 2 + int(now.Sub(began)/saveTrafficEvery); writes > most {
			t.Fatalf("%d writings in %v, want %d at most", writes, now.Sub(began), most)
		}
	})
}

func TestDamagedTrafficIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.TrafficFile), []byte(`{"days":{"today":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{cfg: Config{Dir: dir, Limits: Limits{Quota: limits.Quota{Bytes: 1, Period: limits.Day}}}}
	if err := n.recallTraffic(); err == nil || !strings.Contains(err.Error(), "delete the file") {
		t.Errorf("error %v names no remedy", err)
	}
	n.cfg.Limits.Quota = limits.Quota{}
	if err := n.recallTraffic(); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

// A system that cannot tell says so once and changes nothing; one that can is looked at again.
func TestWatchPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		on.Store(true)
		n := newNode(Config{Limits: Limits{Battery: true}, power: func(context.Context) (bool, error) { return on.Load(), nil }})
		n.log = slog.New(slog.DiscardHandler)
		if err := n.watchPower(t.Context()); err != nil || !n.onBattery {
			t.Errorf("at the start: on battery %v, %v", n.onBattery, err)
		}
		on.Store(false)
		time.Sleep(powerEvery + time.Second)
		if n.readInbox(); n.onBattery {
			t.Error("plugged in, and not noticed")
		}
		n.work.stop()
		none := newNode(Config{Limits: Limits{Battery: true}, power: func(context.Context) (bool, error) { return false, hardware.ErrPowerUnknown }})
		none.log = slog.New(slog.DiscardHandler)
		if err := none.watchPower(t.Context()); err != nil || len(none.view.events) != 1 || !strings.Contains(none.view.events[0].Text, "changes nothing") {
			t.Errorf("%v, events %+v", err, none.view.events)
		}
		none.work.stop()
	})
}

// A learner is paused through its control socket in the middle of a run. Its peer goes on and
// knows; then it contributes again, and nothing of it is lost.
func TestPauseAndResume(t *testing.T) {
	t.Parallel()
	const budget = 24_000
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(budget).Encode(), Data: text, Pace: slowPace, Stay: true})
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace, Stay: true, Limits: Limits{Quota: limits.Quota{Bytes: 1 << 40, Period: limits.Day}}})
	second.until("it contributes", contributes)
	control, err := status.Dial(second.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := control.Pause(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	rest := second.until("it rests", func(s status.Snapshot) bool { return s.Limits.Resting })
	if !rest.Limits.Asked || rest.State != status.Paused || rest.Peers[0].State != status.Paused || !strings.Contains(rest.Peers[0].Reason, "atoll resume") {
		t.Errorf("limits %+v, state %s, peers %+v", rest.Limits, rest.State, rest.Peers[0])
	}
	for p, tokens := range rest.Account.OwnUnpublished {
		if tokens > 0 {
			t.Errorf("%d tokens of fragment %d are not published", tokens, p)
		}
	}
	known := func(s status.Snapshot) bool {
		return slices.ContainsFunc(s.Peers, func(p status.Peer) bool { return p.ID == rest.Self && p.State == status.Paused })
	}
	before := first.until("its peer knows", known).TokensFolded
	first.until("its peer goes on", folded(before+budget/10))
	still := second.until("some time passes", func(s status.Snapshot) bool { return s.Time.Paused > 0.1 })
	if still.Step != rest.Step || still.TokensFolded > rest.TokensFolded+budget/10 {
		t.Errorf("takes %d steps while it is paused, and folds %d tokens", still.Step-rest.Step, still.TokensFolded-rest.TokensFolded)
	}
	if err := control.Pause(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	again := second.until("it trains again", func(s status.Snapshot) bool { return s.Step > rest.Step+3 })
	if len(again.Limits.Why) > 0 || !slices.ContainsFunc(again.Events, func(e status.Event) bool { return e.Kind == "goes on" }) {
		t.Errorf("limits %+v, events %+v", again.Limits, again.Events)
	}
	one, two := first.until("the end", finished), second.until("the end", finished)
	if one.ChainDigest != two.ChainDigest || one.StateDigest != two.StateDigest {
		t.Errorf("chains %.8s and %.8s, states %.8s and %.8s", one.ChainDigest, two.ChainDigest, one.StateDigest, two.StateDigest)
	}
	last := second.leave()
	checkNothingLost(t, second.cfg.Dir, last)
	if q := last.Limits.Quota; q == nil || q.Used == 0 || q.Used+q.Left != q.Bytes {
		t.Errorf("quota %+v", q)
	}
	if b, err := store.LoadTraffic(second.cfg.Dir); err != nil || b == nil {
		t.Errorf("traffic %q, %v", b, err)
	}
	first.leave()
}

// What is heavy before there is a machine to pause waits for the hours as well, and says so.
func TestFirstValuesWaitForTheHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		opens := now.Add(2 * time.Hour).Truncate(time.Minute)
		hours := hoursOf(t, opens.Format("15:04")+"-"+opens.Add(time.Hour).Format("15:04"))
		var said []string
		n := newNode(Config{Limits: Limits{Hours: hours}, OnStatus: func(s status.Snapshot) { said = append(said, s.Stage) }})
		n.record = &recordBox{}
		if err := n.allowed(t.Context()); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(opens); late < 0 || late > 2*powerEvery {
			t.Errorf("goes on %v after the hours begin", late)
		}
		if len(said) == 0 || !strings.HasPrefix(said[0], "paused: outside of --hours") {
			t.Errorf("says %q", said)
		}
		ctx, cancel := context.WithCancel(t.Context())
		n.asked = true
		time.AfterFunc(time.Minute, cancel)
		if err := n.allowed(ctx); err == nil {
			t.Error("one that is told to leave goes on waiting")
		}
		n.work.stop()
	})
}
