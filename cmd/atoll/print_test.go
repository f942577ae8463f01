package main

import (
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{big(0), "0"},
		{big(950), "950"},
		{big(12_345), "12.3k"},
		{big(3e6), "3.00M"},
		{big(456e9), "456G"},
		{status.Traffic(0), "0 B"},
		{status.Traffic(999), "999 B"},
		{status.Traffic(300e9), "300 GB"},
		{status.Traffic(1_234_567), "1.23 MB"},
		{status.Bytes(0), "0 B"},
		{status.Bytes(1023), "1023 B"},
		{status.Bytes(1536), "1.5 KiB"},
		{status.Bytes(3 << 40), "3.0 TiB"},
		{percent(1, 4), "25.0 %"},
		{percent(1, 0), unknown},
		{measured(0, "%.1f"), unknown},
		{measured(2, "%.1f"), "2.0"},
		{seconds(75.4), "1m15s"},
		{shortID("0123456789abcdef"), "0123456789"},
		{shortID("01"), "01"},
		{peersText(0, 0), "alone"},
		{peersText(1, 0), "1 peer"},
		{peersText(7, 2), "7 peers, 2 paused"},
		{peersText(0, 1), "alone, 1 paused"},
		{fileName("a run/of mine"), "a-run-of-mine"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := table(&b, []string{"A", "LONG"}, []string{"wide", "x"}); err != nil {
		t.Fatal(err)
	}
	if want := "A     LONG\nwide  x\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
}

func TestLimitsText(t *testing.T) {
	ends := time.Date(2026, 12, 1, 0, 0, 0, 0, time.Local)
	for _, c := range []struct {
		limits status.Limits
		want   string
	}{
		{status.Limits{}, ""},
		{status.Limits{Asked: true, Why: []string{"x"}, Resting: true}, ""},
		{status.Limits{UpPerS: 625_000, DownPerS: 2.5e6, Hours: "mon-fri 22-07", OnBattery: "pause"}, "up 5 Mbit/s; down 20 Mbit/s; works mon-fri 22-07; pauses on battery"},
		{status.Limits{Quota: &status.Quota{Bytes: 300e9, Period: "month", Used: 123_400_000, Left: 300e9 - 123_400_000, Ends: ends}}, "123 MB of 300 GB this month used, 300 GB left until 2026-12-01"},
		{status.Limits{Quota: &status.Quota{Bytes: 2e9, Period: "day", Used: 3e9, Ends: ends}}, "3 GB of 2 GB this day used, 0 B left until 2026-12-01"},
	} {
		if got := limitsText(c.limits); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
