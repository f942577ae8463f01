package limits

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPeriodEnds(t *testing.T) {
	for _, c := range []struct {
		period         Period
		zone, at, ends string
	}{
		{Month, "UTC", "2026-11-25 12:00", "2026-12-01 00:00"},
		{Month, "UTC", "2026-12-31 23:59", "2027-01-01 00:00"},
		{Month, "UTC", "2028-01-31 00:00", "2028-02-01 00:00"},
		{Day, "UTC", "2028-02-28 00:00", "2028-02-29 00:00"},
		{Day, "Europe/Berlin", "2026-10-25 01:00", "2026-10-26 00:00"}, // a day of 25 hours
	} {
		if got, want := c.period.Ends(at(t, c.zone, c.at)), at(t, c.zone, c.ends); !got.Equal(want) {
			t.Errorf("the %s of %s ends %v, want %v", c.period, c.at, got, want)
		}
	}
	for text, want := range map[string]Period{"month": Month, "day": Day} {
		if p, err := ParsePeriod(text); p != want || err != nil {
			t.Errorf("%q: %v, %v", text, p, err)
		}
	}
	if _, err := ParsePeriod("year"); err == nil || !strings.Contains(err.Error(), "use month or day") {
		t.Errorf("a year: %v", err)
	}
}

// count is one booking.
type count struct {
	at time.Time
	b  Bytes
}

// Whatever order times come in, as clocks are set ahead and back, what is used in a period is
// what was counted at times of that period, and a copy read from a file says the same.
func TestTrafficByPeriods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		var all []count
		traffic := &Traffic{}
		now := time.Unix(1_764_000_000, 0).In(l)
		for range rapid.IntRange(0, 60).Draw(t, "counts") {
			now = now.Add(time.Duration(rapid.Int64Range(-40*24*3600, 50*24*3600).Draw(t, "jump")) * time.Second)
			c := count{now, Bytes{Sent: uint64(rapid.Uint32().Draw(t, "sent")), Received: uint64(rapid.Uint32().Draw(t, "received"))}}
			traffic.Count(c.at, c.b)
			all = append(all, c)
			if rapid.Bool().Draw(t, "restart") {
				if traffic, err = DecodeTraffic(traffic.Encode()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, p := range []Period{Month, Day} {
			var want Bytes
			ends := p.Ends(now)
			for _, c := range all {
				if p.Ends(c.at).Equal(ends) {
					want = want.plus(c.b)
				}
			}
			if got := traffic.Used(p, now); got != want {
				t.Fatalf("used %+v in the %s of %v, want %+v", got, p, now, want)
			}
		}
	})
}

// A clock that runs through years drops no day of the month that it comes back to.
func TestTrafficIsBounded(t *testing.T) {
	var traffic Traffic
	today := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for d := range 3 * maxDays {
		traffic.Count(today.AddDate(0, 0, d-3*maxDays+1), Bytes{Sent: 1})
	}
	if len(traffic.days) != maxDays {
		t.Errorf("%d days are kept, want %d", len(traffic.days), maxDays)
	}
	for d := range 200 {
		traffic.Count(today.AddDate(20, 0, d), Bytes{Sent: 1})
		traffic.Count(today, Bytes{Sent: 1})
	}
	if used := traffic.Used(Month, today); used.Sent != 25+200 {
		t.Errorf("%d bytes in this month, want 225", used.Sent)
	}
	if n := len(traffic.Encode()); n > maxTrafficFile {
		t.Errorf("a file of %d bytes, at most %d are read", n, maxTrafficFile)
	}
	traffic.Count(today, Bytes{Sent: math.MaxUint64, Received: math.MaxUint64})
	if used := traffic.Used(Month, today).Sum(); used != math.MaxUint64 {
		t.Errorf("a sum over the largest number is %d", used)
	}
}

func TestQuotaReserve(t *testing.T) {
	q := Quota{Bytes: 300e9, Period: Month}
	if !q.Limited() || q.Bulk() != 294e9 || (Quota{}).Limited() {
		t.Errorf("bulk has %d of %d", q.Bulk(), q.Bytes)
	}
}

func FuzzDecodeTraffic(f *testing.F) {
	f.Add([]byte(`{"days":{"2026-11-25":{"sent":1,"received":2}}}`))
	f.Add([]byte(`{"days":{"2026-13-25":{"sent":1}}}`))
	f.Add([]byte(`{"days":{"x":{"sent":-1}}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, b []byte) {
		traffic, err := DecodeTraffic(b)
		if err != nil {
			return
		}
		again, err := DecodeTraffic(traffic.Encode())
		if err != nil || !bytes.Equal(again.Encode(), traffic.Encode()) {
			t.Fatalf("%q is read and written as %q: %v", b, traffic.Encode(), err)
		}
		today := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
		before := traffic.Used(Day, today).Sent
		if traffic.Count(today, Bytes{Sent: 1}); traffic.Used(Day, today).Sent != add(before, 1) {
			t.Errorf("%q: a byte is not counted", b)
		}
	})
}
