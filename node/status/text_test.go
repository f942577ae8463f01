package status

import (
	"strings"
	"testing"
	"time"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"AMD EPYC (2 threads)": "AMD EPYC (2 threads)", "Zo\u00eb": "Zo\u00eb", "a\tb\nc": "a b c", "\x1b[31mred": "\ufffd[31mred", "e\u0301": "e", "\xff": "\ufffd",
		strings.Repeat("x", maxPrintable+5): strings.Repeat("x", maxPrintable),
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestCount(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 950: "950", 12_345: "12.3k", 3e6: "3.00M", 456e9: "456G", 1.5e9: "1.50G", 2e12: "2.00T"} {
		if got := Count(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}

func TestBytesAndIDs(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Traffic(0), "0 B"},
		{Traffic(999), "999 B"},
		{Traffic(300e9), "300 GB"},
		{Traffic(1_234_567), "1.23 MB"},
		{Bytes(0), "0 B"},
		{Bytes(1023), "1023 B"},
		{Bytes(1536), "1.5 KiB"},
		{Bytes(3 << 40), "3.0 TiB"},
		{ShortID("0123456789abcdef"), "0123456789"},
		{ShortID("01"), "01"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1500 * time.Microsecond: "2ms", time.Second + 40*time.Millisecond: "1s", 90*time.Second + 500*time.Millisecond: "1m31s",
		2 * time.Minute: "2m", 10*time.Minute + time.Second: "10m1s", time.Hour: "1h", time.Hour + 20*time.Second: "1h", 26*time.Hour + 5*time.Minute: "26h5m", -time.Minute: "-1m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}
