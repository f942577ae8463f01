package status

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func eventOf(i int) Event {
	return Event{At: time.Unix(int64(1000+i), 0).UTC(), Kind: "connected", Peer: fmt.Sprint(i), Text: "learner\nat \x1b[2J"}
}

func openLog(t interface{ Fatal(...any) }, dir string) *EventLog {
	l, err := OpenEventLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// What is written is read, over restarts, while it is written, and across the rotation of files; a reader
// that looks often enough misses nothing, and the files stay bounded.
func TestEventsAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "events")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		const most = 1000
		l := openLog(t, dir)
		l.most = most
		r, written := ReadEvents(dir), 0
		var read []Event
		for range rapid.IntRange(1, 40).Draw(t, "turns") {
			for range rapid.IntRange(0, 7).Draw(t, "events") { // fewer than a file has
				if err := l.Append(eventOf(written)); err != nil {
					t.Fatal(err)
				}
				written++
			}
			if rapid.Bool().Draw(t, "restart") {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = openLog(t, dir)
				l.most = most
			}
			next, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			read = append(read, next...)
		}
		if len(read) != written {
			t.Fatalf("%d events were read of %d", len(read), written)
		}
		for i, e := range read {
			if !reflect.DeepEqual(e, eventOf(i)) {
				t.Fatalf("event %d is %+v", i, e)
			}
		}
		for _, name := range []string{EventsFile, olderEvents} {
			if info, err := os.Stat(filepath.Join(dir, name)); err == nil && (info.Size() > most || info.Mode().Perm() != 0o600) {
				t.Fatalf("%s has %d bytes, mode %v", name, info.Size(), info.Mode())
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// Half a line, as a crash leaves it, costs that line only.
// A file that cannot make room for a new one costs no more than the events meanwhile.
func TestEventsWhoseFileCannotTurn(t *testing.T) {
	dir := t.TempDir()
	l, err := OpenEventLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.most = 150
	blocked := filepath.Join(dir, olderEvents, "in the way")
	if err := os.MkdirAll(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	full := Event{At: time.Unix(1, 0), Kind: "full", Text: strings.Repeat("a", 80)}
	if err := errors.Join(l.Append(full), l.Append(full)); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if err := errors.Join(os.RemoveAll(filepath.Dir(blocked)), l.Append(eventOf(7))); err != nil {
		t.Fatal(err)
	}
	events, err := ReadEvents(dir).Next()
	if err != nil || len(events) == 0 || events[len(events)-1].Peer != "7" {
		t.Errorf("%+v, %v", events, err)
	}
}

func TestEventsAfterACrash(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	if err := errors.Join(l.Append(eventOf(0)), l.Append(eventOf(1)), l.Close()); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, EventsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b[:len(b)-20], 0o600); err != nil {
		t.Fatal(err)
	}
	l = openLog(t, dir)
	if err := errors.Join(l.Append(eventOf(2)), l.Close()); err != nil {
		t.Fatal(err)
	}
	events, err := ReadEvents(dir).Next()
	if err != nil || len(events) != 2 || events[0].Peer != "0" || events[1].Peer != "2" {
		t.Errorf("%+v, %v", events, err)
	}
}

func TestEventsOfNoNode(t *testing.T) {
	if _, err := ReadEvents(t.TempDir()).Next(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := OpenEventLog(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a folder that is not there")
	}
	l := openLog(t, t.TempDir())
	e := eventOf(0)
	e.Text = strings.Repeat("x", 1<<20)
	if err := errors.Join(l.Append(e), l.Close()); err != nil {
		t.Fatal(err)
	}
	if events, err := ReadEvents(l.dir).Next(); err != nil || len(events) != 1 || len(events[0].Text) != maxEventText {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// Whatever the files hold, reading ends and gives only events.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("{\"at\":\"2026-01-02T03:04:05Z\",\"kind\":\"x\",\"text\":\"y\"}\n"), []byte("\n\n{}\n{\"at\":1}\n"))
	f.Add([]byte{}, []byte{0xff, '\n'})
	f.Fuzz(func(t *testing.T, older, newer []byte) {
		dir := t.TempDir()
		if err := errors.Join(os.WriteFile(filepath.Join(dir, olderEvents), older, 0o600), os.WriteFile(filepath.Join(dir, EventsFile), newer, 0o600)); err != nil {
			t.Fatal(err)
		}
		r := ReadEvents(dir)
		events, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if e.At.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		if more, err := r.Next(); err != nil || len(more) > 0 {
			t.Errorf("the same again: %+v, %v", more, err)
		}
	})
}
