package allowance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"atoll/node/limits"
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
		allowance Allowance
		at        time.Time
		want      []string // parts of each reason
	}{
		"no limit":            {Allowance{onBattery: true, traffic: used(1 << 40)}, evening, nil},
		"asked":               {Allowance{asked: true}, evening, []string{"atoll resume"}},
		"before the hours":    {Allowance{limits: Limits{Hours: hoursOf(t, "22-07")}}, evening, []string{"--hours 22-07, until Wed 22:00"}},
		"in the hours":        {Allowance{limits: Limits{Hours: hoursOf(t, "22-07")}}, evening.Add(time.Hour), nil},
		"on battery":          {Allowance{limits: Limits{Battery: true}, onBattery: true}, evening, []string{"battery"}},
		"plugged in":          {Allowance{limits: Limits{Battery: true}}, evening, nil},
		"quota left":          {Allowance{limits: Limits{Quota: month}, traffic: used(979)}, evening, nil},
		"quota up to reserve": {Allowance{limits: Limits{Quota: month}, traffic: used(980)}, evening, []string{"until 1 December 00:00"}},
		"a new month":         {Allowance{limits: Limits{Quota: month}, traffic: used(5000)}, evening.AddDate(0, 0, 6), nil},
		"two of them":         {Allowance{limits: Limits{Quota: month, Battery: true}, onBattery: true, traffic: used(980)}, evening, []string{"battery", "quota"}},
	} {
		got := c.allowance.Reasons(c.at)
		if !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A look says once that there are other reasons.
func TestLookTellsChanges(t *testing.T) {
	a, at := New(Limits{Battery: true}), time.Date(2026, 11, 25, 21, 0, 0, 0, time.Local)
	for i, c := range []struct {
		asked, onBattery bool
		changed          bool
		why              int
	}{
		{}, {asked: true, changed: true, why: 1}, {asked: true, why: 1}, {asked: true, onBattery: true, changed: true, why: 2},
		{onBattery: true, changed: true, why: 1}, {changed: true}, {},
	} {
		a.Ask(c.asked)
		a.Power(c.onBattery)
		if changed := a.Look(at); changed != c.changed || len(a.Why()) != c.why || a.Paused() != (c.why > 0) {
			t.Errorf("look %d: changed is %v, paused %v, for %q", i, changed, a.Paused(), a.Why())
		}
	}
}

// Other limits change what is allowed, and nothing of what was counted.
func TestChangeKeepsTheCount(t *testing.T) {
	at := time.Date(2026, 11, 25, 21, 0, 0, 0, time.Local)
	a := New(Limits{Hours: hoursOf(t, "22-23")})
	a.Carried(at, limits.Bytes{Sent: 600, Received: 400})
	for _, c := range []struct {
		limits Limits
		why    string // part of the only reason; "" for none
	}{
		{Limits{Hours: hoursOf(t, "22-23")}, "until Wed 22:00"}, {Limits{Hours: hoursOf(t, "23-07")}, "until Wed 23:00"}, {Limits{}, ""},
		{Limits{Quota: limits.Quota{Bytes: 1000, Period: limits.Month}}, "quota of 1 kB"}, {Limits{Quota: limits.Quota{Bytes: 2000, Period: limits.Day}}, ""},
	} {
		a.Change(c.limits)
		if why := a.Reasons(at); len(why) > 1 || (len(why) == 1) != (c.why != "") || !strings.Contains(strings.Join(why, ""), c.why) {
			t.Errorf("%+v: %q, want %q", c.limits, why, c.why)
		}
	}
	if q := a.Status(at, false).Quota; q.Used != 1000 || q.Left != 1000 {
		t.Errorf("of the last quota %d bytes are used, %d left", q.Used, q.Left)
	}
}

// Whatever a node carries, and however often it is killed: what its folder counts is never
// more than what was carried, and lacks at most what each kill found not yet written.
func TestQuotaOutlivesKills(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Quota: limits.Quota{Bytes: 1 << 50, Period: limits.Month}}
		now := time.Date(2026, 11, 3, 12, 0, 0, 0, time.Local)
		var total, unwritten, lost uint64
		writes, began := 0, now
		a := New(l)
		var file []byte
		var carried limits.Bytes
		for range rapid.IntRange(1, 80).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 9000).Draw(t, "ms")) * time.Millisecond)
			more := limits.Bytes{Sent: rapid.Uint64Range(0, 1e6).Draw(t, "sent"), Received: rapid.Uint64Range(0, 1e6).Draw(t, "received")}
			carried.Sent, carried.Received = carried.Sent+more.Sent, carried.Received+more.Received
			total, unwritten = total+more.Sum(), unwritten+more.Sum()
			a.Carried(now, carried)
			if b := a.Due(now); b != nil {
				writes, unwritten, file = writes+1, 0, b
			}
			if rapid.IntRange(0, 9).Draw(t, "kill") == 0 {
				lost, unwritten, carried = lost+unwritten, 0, limits.Bytes{}
				a = New(l)
				if file != nil {
					if err := a.Recall(file); err != nil {
						t.Fatal(err)
					}
				}
				a.saved = now // a start counts as a writing
			}
			if used := a.traffic.Used(limits.Month, now).Sum(); used != total-lost {
				t.Fatalf("%d bytes are counted of %d, %d were not written at kills", used, total, lost)
			}
		}
		if most := 2 + int(now.Sub(began)/saveTrafficEvery); writes > most {
			t.Fatalf("%d writings in %v, want %d at most", writes, now.Sub(began), most)
		}
	})
}
