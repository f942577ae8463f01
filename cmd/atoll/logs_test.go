package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node/status"
)

// folderWithEvents is a node's folder in which things have happened.
func folderWithEvents(t *testing.T, texts ...string) (dir string, l *status.EventLog) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{keyName, genesisName} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := status.OpenEventLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for i, text := range texts {
		tell(t, l, i, text)
	}
	return dir, l
}

func tell(t *testing.T, l *status.EventLog, i int, text string) {
	t.Helper()
	if err := l.Append(status.Event{At: time.Date(2026, 1, 2, 3, 4, i, 0, time.Local), Kind: "refused", Peer: strings.Repeat("ab", 32), Text: text}); err != nil {
		t.Fatal(err)
	}
}

func TestLogs(t *testing.T) {
	dir, _ := folderWithEvents(t, "first", "a \x1b[2Jname\nof its own", "third")
	code, stdout, stderr := typed(t, "logs", dir)
	want := "2026-01-02 03:04:00 refused ababababab: first\n2026-01-02 03:04:01 refused ababababab: a \ufffd[2Jname of its own\n2026-01-02 03:04:02 refused ababababab: third\n"
	if code != exitDone || stdout != want || stderr != "" {
		t.Errorf("exit code %d, %q, %s", code, stdout, stderr)
	}
	if _, stdout, _ := typed(t, "logs", dir, "--last", "1", "--json"); !strings.HasPrefix(stdout, `{"at":"2026-01-02T03:04:02`) || strings.Count(stdout, "\n") != 1 {
		t.Errorf("%q", stdout)
	}
	for _, c := range []struct {
		want string
		code int
		args []string
	}{
		{"--last is -1", exitUsage, []string{"logs", dir, "--last=-1"}},
		{"no node has left a record of events here; start one with", exitFailed, []string{"logs", t.TempDir()}},
	} {
		if code, _, stderr := typed(t, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// lines hands on what is written, line by line.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

func TestLogsFollow(t *testing.T) {
	dir, l := folderWithEvents(t, "first")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, ended := make(lines), make(chan int)
	go func() {
		ended <- run(ctx, []string{"logs", dir, "--follow"}, &cli.Console{Out: out, Err: io.Discard})
	}()
	if got := <-out; !strings.HasSuffix(got, ": first\n") {
		t.Error(got)
	}
	tell(t, l, 1, "second")
	if got := <-out; !strings.HasSuffix(got, ": second\n") {
		t.Error(got)
	}
	cancel()
	if code := <-ended; code != exitDone {
		t.Errorf("exit code %d", code)
	}
}
