package limits

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // zones in which the clock is changed, wherever the test runs

	"pgregory.net/rapid"
)

func at(t testing.TB, zone, text string) time.Time {
	t.Helper()
	l, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	moment, err := time.ParseInLocation("2006-01-02 15:04", text, l)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestHours(t *testing.T) {
	// 2026-11-25 is a Wednesday.
	for _, c := range []struct{ hours, at, next string }{
		{"22-07", "2026-11-25 21:59", "2026-11-25 22:00"},
		{"22-07", "2026-11-25 22:00", "2026-11-26 07:00 open"},
		{"22-07", "2026-11-26 06:59", "2026-11-26 07:00 open"},
		{"22-07", "2026-11-26 07:00", "2026-11-26 22:00"},
		{"9-17", "2026-11-25 09:00", "2026-11-25 17:00 open"},
		{"22:30-07, 12-13:15", "2026-11-25 13:14", "2026-11-25 13:15 open"},
		{"22:30-07, 12-13:15", "2026-11-25 13:15", "2026-11-25 22:30"},
		{"mon-fri 22-07, sat-sun", "2026-11-27 23:00", "2026-11-30 00:00 open"},
		{"mon-fri 22-07, sat-sun", "2026-11-30 00:00", "2026-11-30 22:00"},
		{"Fri 22-07", "2026-11-28 06:00", "2026-11-28 07:00 open"},
		{"fri 22-07", "2026-11-25 23:00", "2026-11-27 22:00"},
		{"sat-mon", "2026-11-25 23:00", "2026-11-28 00:00"},
		{"00-24", "2026-11-25 23:00", "never open"},
		{"", "2026-11-25 23:00", "never open"},
		{"12-24, 00-12", "2026-11-25 23:00", "never open"},
	} {
		h, err := ParseHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		now := at(t, "UTC", c.at)
		got, ok := "never", false
		var next time.Time
		if next, ok = h.Next(now); ok {
			got = next.Format("2006-01-02 15:04")
		}
		if h.Open(now) {
			got += " open"
		}
		if got != c.next {
			t.Errorf("%q at %s: changes %s, want %s", c.hours, c.at, got, c.next)
		}
	}
}

// Twice a year an hour is missing or comes twice; the hours follow the clock on the wall.
func TestHoursWhereTheClockChanges(t *testing.T) {
	for _, c := range []struct {
		hours, zone, from string
		after             time.Duration // until it changes
	}{
		{"22-07", "Europe/Berlin", "2026-03-28 22:00", 8 * time.Hour},
		{"22-07", "Europe/Berlin", "2026-10-24 22:00", 10 * time.Hour},
		{"02:30-07", "Europe/Berlin", "2026-03-29 01:00", time.Hour}, // 02:30 does not come: it is 03:00 at once
		{"01-01:30", "Australia/Lord_Howe", "2026-04-05 01:00", 30 * time.Minute},
	} {
		h, err := ParseHours(c.hours)
		if err != nil {
			t.Fatal(err)
		}
		from := at(t, c.zone, c.from)
		if next, ok := h.Next(from); !ok || next.Sub(from) != c.after {
			t.Errorf("%s in %s from %s: changes after %v, want %v", c.hours, c.zone, c.from, next.Sub(from), c.after)
		}
	}
}

func TestHoursRefused(t *testing.T) {
	for _, text := range []string{
		"22", "22-22", "24-07", "25-07", "22-7:5", "22-07:60", "-", "22-", "mon 22", "xyz 22-07", "mon-xyz", "22-07,", "222-7", "22h-7", "+2-07", "22-07 mon",
		strings.Repeat("1-2,", maxWindows) + "1-2",
	} {
		if h, err := ParseHours(text); err == nil || h.Limited() {
			t.Errorf("%q is taken: %+v", text, h)
		} else if !strings.Contains(err.Error(), "write them like") && !strings.Contains(err.Error(), "at most") {
			t.Errorf("%q: %v names no remedy", text, err)
		}
	}
}

var zones = []string{"UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Apia"}

func drawHours(t *rapid.T) Hours {
	minute := func(name string, most int) string {
		return time.Date(2000, 1, 1, 0, rapid.IntRange(0, most).Draw(t, name), 0, 0, time.UTC).Format("15:04")
	}
	var parts []string
	for range rapid.IntRange(1, 3).Draw(t, "windows") {
		from, to := minute("from", dayMinutes-1), minute("to", dayMinutes-1)
		if from == to {
			to = "24"
		}
		days := rapid.SampledFrom([]string{"", "mon ", "fri-mon ", "sat-sun ", "tue-thu "}).Draw(t, "days")
		parts = append(parts, days+from+"-"+to)
	}
	h, err := ParseHours(strings.Join(parts, ", "))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// At Next Open is another, and at no time before, in any zone and on any day.
func TestNextIsTheFirstChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		h := drawHours(t)
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "second"), 0).In(l)
		next, ok := h.Next(now)
		until := next
		if !ok {
			until = now.Add(nextWithin)
		} else if h.Open(next) == h.Open(now) || !next.After(now) || next.Second() != 0 {
			t.Fatalf("hours %q at %v: nothing changes at %v", h, now, next)
		}
		for range 300 {
			between := now.Add(time.Duration(rapid.Int64Range(0, int64(until.Sub(now)-1)).Draw(t, "between")))
			if h.Open(between) != h.Open(now) {
				t.Fatalf("hours %q at %v: open %v at %v, before the change at %v", h, now, h.Open(between), between, next)
			}
		}
	})
}

func FuzzParseHours(f *testing.F) {
	for _, text := range []string{"22-07", "mon-fri 22:30-07, sat-sun", "00-24", "", "x"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHours(text)
		if err != nil {
			return
		}
		now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
		again, err := ParseHours(h.String())
		if err != nil || again.Open(now) != h.Open(now) {
			t.Errorf("%q is read as %q, which is read otherwise: %v", text, h, err)
		}
	})
}
