package main

import (
	"strings"
	"testing"

	"atoll/node/status"
)

func TestNumbersForPeople(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{big(0), "0"},
		{big(950), "950"},
		{big(12_345), "12.3k"},
		{big(3e6), "3.00M"},
		{big(456e9), "456G"},
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
		{peersText(0), "alone"},
		{peersText(1), "1 peer"},
		{peersText(7), "7 peers"},
		{quoted("plain/path-1.txt"), "plain/path-1.txt"},
		{quoted("it's here"), `'it'\''s here'`},
		{quoted(""), "''"},
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
