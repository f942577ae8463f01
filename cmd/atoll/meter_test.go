package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMeter(t *testing.T) {
	var errs bytes.Buffer
	m := newMeter(&console{err: &errs}, "replaying rounds")
	clock := m.begun
	m.now = func() time.Time { return clock }
	for _, step := range []struct {
		after     time.Duration
		done, all float64
	}{{time.Second, 1, 8}, {5 * time.Second, 0, 0}, {5 * time.Second, 2, 8}, {9 * time.Second, 3, 8}, {12 * time.Second, 6, 8}, {20 * time.Second, 8, 8}} {
		clock = m.begun.Add(step.after)
		m.at(step.done, step.all)
	}
	want := "replaying rounds: 25 %, 15s left\nreplaying rounds: 75 %, 4s left\nreplaying rounds: 100 %\n"
	if got := errs.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSizeOfAFolder(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"a": 3, "b": 40} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := sizeOf(dir); got != 43 {
		t.Errorf("%d bytes", got)
	}
	if got := sizeOf(filepath.Join(dir, "absent")); got != 0 {
		t.Errorf("%d bytes of nothing", got)
	}
	writing(&console{err: &bytes.Buffer{}}, dir, 43)()
}
