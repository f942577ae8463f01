package p2p

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A stranger that makes libp2p warn all the time fills no log, and the log says that lines are left out.
func TestLibraryLogIsBounded(t *testing.T) {
	for _, c := range []struct {
		level slog.Level
		want  int
	}{{slog.LevelInfo, libraryLines}, {slog.LevelDebug, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			lines := func() int { return strings.Count(out.String(), "\n") }
			log := slog.New(seldomLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: c.level})))
			for i := range 1000 {
				log.With("peer", i).WithGroup("conn").Warn("broken", "n", i)
			}
			if n := lines(); n != c.want {
				t.Errorf("%v: %d lines, want %d", c.level, n, c.want)
			}
			log.Error("failed")
			if !strings.Contains(out.String(), "failed") {
				t.Errorf("%v: warnings hide an error", c.level)
			}
			for range 999 {
				log.With("peer", 1).WithGroup("conn").Error("failed again")
			}
			if n := lines(); n != 2*c.want {
				t.Errorf("%v: %d lines with errors, want %d", c.level, n, 2*c.want)
			}
			out.Reset()
			time.Sleep(time.Minute)
			log.Warn("later")
			if n := lines(); n != 1 {
				t.Errorf("%v: %d lines a minute later, want one", c.level, n)
			}
			if told := strings.Contains(out.String(), "lines_left_out=990"); told != (c.level == slog.LevelInfo) {
				t.Errorf("%v: says how many lines are left out: %v", c.level, told)
			}
		})
	}
}

// Who logs warnings hears of the library's errors alone.
func TestLibraryWarningsAreNotOurs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(seldomLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	log.Warn("tried in vain")
	if log.Error("broken"); strings.Contains(out.String(), "in vain") || !strings.Contains(out.String(), "broken") {
		t.Errorf("logged: %s", out.String())
	}
}
