package node

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"atoll/node/allowance"
	"atoll/node/hardware"
	"atoll/node/limits"
	"atoll/node/status"
	"atoll/node/store"
)

func TestDamagedTrafficIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, store.TrafficFile), []byte(`{"days":{"today":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	n := &node{cfg: Config{Dir: dir}, allowance: allowance.New(allowance.Limits{Quota: limits.Quota{Bytes: 1, Period: limits.Day}})}
	if err := n.recallTraffic(); err == nil || !strings.Contains(err.Error(), "delete the file") {
		t.Errorf("error %v names no remedy", err)
	}
	n.allowance.Change(allowance.Limits{})
	if err := n.recallTraffic(); err != nil {
		t.Errorf("without a quota: %v", err)
	}
}

// What a node keeps of its traffic, the next one on the folder counts.
func TestTrafficIsRecalled(t *testing.T) {
	cfg := Config{Dir: t.TempDir(), Limits: allowance.Limits{Quota: limits.Quota{Bytes: 1000, Period: limits.Day}}}
	a := allowance.New(cfg.Limits)
	a.Count(time.Now(), limits.Bytes{Sent: 100, Received: 200})
	must(t, cfg.disk.SaveTraffic(cfg.Dir, a.Traffic()))
	n := &node{cfg: cfg, allowance: allowance.New(cfg.Limits)}
	must(t, n.recallTraffic())
	if !bytes.Equal(n.allowance.Traffic(), a.Traffic()) {
		t.Errorf("recalls %s of %s", n.allowance.Traffic(), a.Traffic())
	}
}

// onBattery says whether a node would pause for its battery.
func onBattery(n *node) bool { return len(n.allowance.Reasons(time.Now())) > 0 }

// A system that cannot tell says so once and changes nothing; one that can is looked at again.
func TestWatchPower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		on.Store(true)
		n := newNode(Config{Log: slog.New(slog.DiscardHandler), Limits: allowance.Limits{Battery: true}, power: func(context.Context) (bool, error) { return on.Load(), nil }})
		if err := n.watchPower(t.Context()); err != nil || !onBattery(n) {
			t.Errorf("at the start: on battery %v, %v", onBattery(n), err)
		}
		on.Store(false)
		time.Sleep(powerEvery + time.Second)
		if n.readInbox(); onBattery(n) {
			t.Error("plugged in, and not noticed")
		}
		n.work.stop()
		none := newNode(Config{Log: slog.New(slog.DiscardHandler), Limits: allowance.Limits{Battery: true}, power: func(context.Context) (bool, error) { return false, hardware.ErrPowerUnknown }})
		if err := none.watchPower(t.Context()); !errors.Is(err, hardware.ErrPowerUnknown) || len(none.screen.Events()) != 1 || !strings.Contains(none.lastEvent().Text, "changes nothing") {
			t.Errorf("%v, events %+v", err, none.screen.Events())
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
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace, Stay: true, Limits: allowance.Limits{Quota: limits.Quota{Bytes: 1 << 40, Period: limits.Day}}})
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

// setsTo has a node take settings.
func setsTo(t *testing.T, control *status.Client, change any) error {
	t.Helper()
	note, err := control.Set(t.Context(), change)
	if note != "" {
		t.Errorf("note %q", note)
	}
	return err
}

// A running node takes other limits at once. A quota that comes late counts what passed before it, and one of another size has used as much.
func TestSetLimits(t *testing.T) {
	t.Parallel()
	text := toyText(t)
	first := launch(t, Config{Genesis: toyGenesis(1 << 40).Encode(), Data: text, Pace: slowPace})
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace, power: func(context.Context) (bool, error) { return true, nil }})
	second.until("it contributes", contributes)
	control := dialNode(t, second)
	daily := func(bytes uint64) limits.Quota { return limits.Quota{Bytes: bytes, Period: limits.Day} }
	change := Change{
		Names:  []string{"up", "down", "quota", "battery"},
		Limits: allowance.Limits{Up: 1 << 20, Down: 1 << 21, Quota: daily(1000)}, Pace: slowPace,
		Settings: []status.Setting{{Name: "up", Value: "8mbit", From: "a test"}},
	}
	must(t, setsTo(t, control, change))
	if up, down := second.handle().n.host.Caps(); up != 1<<20 || down != 1<<21 {
		t.Errorf("it sends %d bytes/s and receives %d", up, down)
	}
	over := second.until("it pauses", func(s status.Snapshot) bool { return len(s.Limits.Why) > 0 })
	if q := over.Limits.Quota; q == nil || q.Used < 1000 || !slices.Equal(over.Settings, change.Settings) {
		t.Errorf("limits %+v, settings %+v", over.Limits, over.Settings)
	}
	change.Limits = allowance.Limits{Quota: daily(1 << 40)}
	must(t, setsTo(t, control, change))
	if up, down := second.handle().n.host.Caps(); up != 0 || down != 0 {
		t.Errorf("without limits it sends %d bytes/s and receives %d", up, down)
	}
	more := second.until("it trains again", func(s status.Snapshot) bool { return s.Step > over.Step+3 })
	if q := more.Limits.Quota; q.Bytes != 1<<40 || q.Used < over.Limits.Quota.Used {
		t.Errorf("of the larger quota %d bytes are used, %d before", q.Used, over.Limits.Quota.Used)
	}
	change.Names, change.Limits = []string{"pace"}, allowance.Limits{} // what is not named stays
	must(t, setsTo(t, control, change))
	if l := second.until("it goes on", func(status.Snapshot) bool { return true }).Limits; l.Quota == nil || l.Quota.Bytes != 1<<40 {
		t.Errorf("limits %+v after a change of something else", l)
	}
	change.Names, change.Limits = []string{"up", "quota", "battery"}, allowance.Limits{Battery: true}
	must(t, setsTo(t, control, change))
	second.until("it pauses on its battery", func(s status.Snapshot) bool {
		return slices.Equal(s.Limits.Why, []string{"this machine runs on its battery"})
	})
	change.Limits.Up = -1
	refuses(t, map[string]error{"Limits are -1 bytes/s up": setsTo(t, control, change), "settings: json": setsTo(t, control, "up")})
	second.leave()
	first.leave()
}

// What is heavy before there is a machine to pause waits for the hours as well, and says so.
func TestFirstValuesWaitForTheHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		opens := now.Add(2 * time.Hour).Truncate(time.Minute)
		hours, err := limits.ParseHours(opens.Format("15:04") + "-" + opens.Add(time.Hour).Format("15:04"))
		must(t, err)
		var said []string
		n := newNode(Config{Limits: allowance.Limits{Hours: hours}, OnStatus: func(s status.Snapshot) { said = append(said, s.Stage) }})
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
		n.allowance.Ask(true)
		time.AfterFunc(time.Minute, cancel)
		if err := n.allowed(ctx); err == nil {
			t.Error("one that is told to leave goes on waiting")
		}
		n.work.stop()
	})
}
